use std::time::Duration;

use async_trait::async_trait;

use crate::error::PortResult;

/// How a process that reports has the consumers of all processes write what they have aggregated.
#[async_trait]
pub trait FlushChannel: Send + Sync {
    /// Asks the consumers of every partition, and returns whether all of them said within `wait` that they have written
    /// everything that was in the stream when they heard of it. *Called twice*: asks twice, and does no harm.
    async fn ask(&self, wait: Duration) -> PortResult<bool>;

    /// Returns what was asked since the last call, as soon as there is something; what was asked before the first call, or
    /// while nobody could hear it, is left out. Dropped while it waits: no change.
    async fn asked(&self) -> PortResult<Vec<FlushAsk>>;

    /// Answers for the partitions of this process.
    async fn answer(
        &self,
        asked: &[FlushAsk],
        partitions: &[u32],
        is_whole: bool,
    ) -> PortResult<()>;
}

/// Tells one question from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlushAsk(pub u64);
