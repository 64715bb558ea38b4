use async_trait::async_trait;

use super::LinkChange;
use crate::clock::UnixMillis;
use crate::error::PortResult;

/// Tells processes which links have changed, so that they drop their copies before these are too old. A hint: messages may
/// be lost, never unnoticed, and without the channel copies still end by their age.
#[async_trait]
pub trait Invalidations: Send + Sync {
    /// Sends one message with the changes to every subscriber there is, those of the same process too, and never waits
    /// for them to read it. No changes: nothing is sent. Without subscribers: nothing happens.
    ///
    /// To be called after the write. Called twice: sent twice, which is harmless. Timed out: unknown; send it again, or
    /// copies are served until they are too old.
    async fn publish(&self, changes: &[LinkChange]) -> PortResult<()>;

    /// Returns the messages that are published after this call, and none from before it: the caller drops the copies
    /// that it has by then. Called twice: two subscriptions, each with every message.
    async fn subscribe(&self) -> PortResult<Box<dyn InvalidationFeed>>;
}

/// One subscriber's messages.
#[async_trait]
pub trait InvalidationFeed: Send {
    /// Waits for the next message. Sequence numbers of the channel rise by one from message to message, whoever
    /// published them; a message that does not follow the one before it is not returned, but [`Invalidation::Gap`] is.
    /// So is a reader that fell behind further than the engine keeps messages, and one whose connection was lost, as
    /// soon as there is another: an unreachable engine is waited for.
    ///
    /// Dropped while it waits: no message is lost. `None`: the channel was closed for good.
    async fn next(&mut self) -> Option<Invalidation>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidation {
    Changed {
        sequence: u64,
        changes: Box<[LinkChange]>,
    },
    /// Messages were lost, any number of them: whatever was copied before this is to be dropped.
    Gap,
    /// The engine has answered a question that was asked at this time, by the clock of this machine: every message that
    /// was published before it has been returned by now. Comes a few times a second while the engine answers, and tells
    /// silence from a channel that is cut.
    Alive { asked_at: UnixMillis },
}
