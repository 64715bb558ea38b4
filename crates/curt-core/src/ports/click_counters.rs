use async_trait::async_trait;

use crate::error::PortResult;

/// Counts in a fast store, between aggregate and flush. Each partition's counts and the offset that they reach change
/// together (C-1), so that losing the store loses only what the stream can give again.
#[async_trait]
pub trait ClickCounters: Send + Sync {
    /// The offset up to which the partition is counted. Absent: 0.
    async fn offset(&self, partition: u32) -> PortResult<u64>;

    /// Adds `counts` and moves the offset from `seen` to `next`, in one step, if it still is `seen`; says whether it
    /// did. Called twice: the second is refused and adds nothing.
    async fn add(
        &self,
        partition: u32,
        seen: u64,
        next: u64,
        counts: &[Counted],
    ) -> PortResult<bool>;

    /// Sets the partition's counts aside under `window` and returns them with the offset that they reach. Called again
    /// with the same window before `forget`: the same answer.
    async fn take_window(&self, partition: u32, window: &str) -> PortResult<CounterWindow>;

    /// Drops a window that has been flushed. Absent: no change.
    async fn forget(&self, partition: u32, window: &str) -> PortResult<()>;
}

/// A sum under its name; the name says link, hour, dimension and value, and only `curt-clicks` reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    pub name: Box<str>,
    pub count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterWindow {
    pub offset: u64,
    /// Sorted by name.
    pub counts: Vec<Counted>,
}
