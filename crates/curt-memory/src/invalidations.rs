use std::fmt;
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{Invalidation, InvalidationFeed, Invalidations, LinkChange};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

use super::locked;

/// A channel within one process. A subscriber that falls behind by more than the cap has a gap.
pub struct MemoryInvalidations {
    channel: Sender<Invalidation>,
    /// Held while a message is sent, so that messages arrive in the order of their numbers.
    next_sequence: Mutex<u64>,
}

impl MemoryInvalidations {
    /// Messages are kept for slow subscribers up to `cap`, at least one.
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self {
            channel: Sender::new(cap.max(1)),
            next_sequence: Mutex::new(0),
        }
    }
}

impl fmt::Debug for MemoryInvalidations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryInvalidations")
            .field("subscribers", &self.channel.receiver_count())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Invalidations for MemoryInvalidations {
    async fn publish(&self, changes: &[LinkChange]) -> PortResult<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut next = locked(&self.next_sequence);
        let message = Invalidation::Changed {
            sequence: *next,
            changes: changes.into(),
        };
        *next += 1;
        // Without subscribers the message comes back.
        drop(self.channel.send(message));
        Ok(())
    }

    async fn subscribe(&self) -> PortResult<Box<dyn InvalidationFeed>> {
        Ok(Box::new(MemoryFeed(self.channel.subscribe())))
    }
}

struct MemoryFeed(Receiver<Invalidation>);

#[async_trait]
impl InvalidationFeed for MemoryFeed {
    async fn next(&mut self) -> Option<Invalidation> {
        match self.0.recv().await {
            Ok(message) => Some(message),
            Err(RecvError::Lagged(_)) => {
                // Whatever is kept was published before the copies are dropped.
                self.0 = self.0.resubscribe();
                Some(Invalidation::Gap)
            }
            Err(RecvError::Closed) => None,
        }
    }
}
