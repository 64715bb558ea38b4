use async_trait::async_trait;

use crate::error::PortResult;
use crate::ports::StreamPartition;

/// The windows of partitions in a fast store that processes share, between aggregate and flush.
///
/// A partition has one window at most: what the records from one offset to another add up to. Counts and offsets change
/// together (C-1). A window may be lost whole at any time (it expires, and its store may be emptied or fall back to an older
/// state), and never in part: the clicks database has the offset that it began at, and the stream its records.
#[async_trait]
pub trait ClickCounters: Send + Sync {
    /// Adds what the records from `seen` to `next` add up to, in one step, if the window goes from `from` to `seen`, and
    /// returns about how many bytes it has now; or begins it at `from`, if there is none and `seen` is `from`.
    ///
    /// - *Another window, or none where one was*: `None`, and nothing changes.
    /// - *Called twice*: the second is refused and adds nothing.
    /// - *Timed out*: unknown; [`window`](Self::window) tells what happened.
    async fn add(
        &self,
        partition: StreamPartition,
        addition: CounterAddition,
    ) -> PortResult<Option<u64>>;

    /// The window as it is. It stays. Absent: `None`. Not what was written: `Corrupt`, and the window is gone.
    async fn window(&self, partition: StreamPartition) -> PortResult<Option<CounterWindow>>;

    /// Drops the window that began at `from`. Absent, or another one: no change.
    async fn forget(&self, partition: StreamPartition, from: u64) -> PortResult<()>;
}

/// What some records add to a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterAddition {
    /// Where the window began.
    pub from: u64,
    /// Up to where it goes.
    pub seen: u64,
    /// Up to where it goes with this.
    pub next: u64,
    /// A name may come more than once.
    pub counts: Vec<Counted>,
    /// What cannot be added up, kept as it is; empty: nothing.
    pub piece: Vec<u8>,
}

/// A sum under its name; the name says subject, hour, dimension and value, and only `curt-clicks` reads it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counted {
    pub name: Box<[u8]>,
    pub count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterWindow {
    pub from: u64,
    pub to: u64,
    /// Sorted by name, each once.
    pub counts: Vec<Counted>,
    /// In the order of their records.
    pub pieces: Vec<Vec<u8>>,
}
