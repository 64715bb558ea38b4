use async_trait::async_trait;

use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::key::LinkId;

/// Durable sums of clicks.
#[async_trait]
pub trait ClickStore: Send + Sync {
    /// The stream position that is durably applied for the partition. Absent: 0.
    async fn position(&self, partition: u32) -> PortResult<u64>;

    /// Adds the flush's sums and moves the partition's position from `from` to `to`, all in one transaction, if the
    /// position still is `from`; says whether it did (C-1). Called twice: the second is refused and adds nothing.
    async fn apply(&self, flush: ClickFlush) -> PortResult<bool>;

    /// The sums of one link in one dimension, for hours in `[from, before)`, by hour and then value.
    async fn read(
        &self,
        link: &LinkId,
        dimension: &str,
        from: UnixMillis,
        before: UnixMillis,
    ) -> PortResult<Vec<ClickSum>>;
}

#[derive(Clone, Debug)]
pub struct ClickFlush {
    pub partition: u32,
    pub from: u64,
    pub to: u64,
    pub sums: Vec<(LinkId, ClickSum)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClickSum {
    /// Start of the hour.
    pub hour: UnixMillis,
    pub dimension: Box<str>,
    pub value: Box<str>,
    pub count: u64,
}
