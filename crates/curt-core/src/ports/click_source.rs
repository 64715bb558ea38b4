use std::time::Duration;

use async_trait::async_trait;

use crate::error::PortResult;

/// The read end of a click stream: ordered, partitioned, and kept until it is committed.
#[async_trait]
pub trait ClickSource: Send + Sync {
    /// Which stream this is. It stays the same for as long as offsets mean the same records.
    fn id(&self) -> StreamId;

    /// The partitions that this process consumes. No partition is assigned to two processes at the same time; one that
    /// moved is found by [`ClickStore::apply`](super::ClickStore::apply), which refuses the former consumer.
    async fn assignment(&self) -> PortResult<Vec<u32>>;

    /// The partitions that are known to be assigned now, without a wait.
    fn assigned(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Returns when [`assignment`](Self::assignment) would give other partitions than it gave last. Dropped while it waits:
    /// no change.
    async fn assignment_changed(&self) {
        std::future::pending().await
    }

    /// Up to `limit` records of the partition from offset `from` on, in order. Where there are none, it waits up to
    /// `wait` for the first one and then returns what is there, or an empty list. Records before the oldest kept one are
    /// skipped. Called twice: the same records. Dropped while it waits: no change.
    async fn poll(
        &self,
        partition: u32,
        from: u64,
        limit: usize,
        wait: Duration,
    ) -> PortResult<Vec<StreamRecord>>;

    /// Everything before `offset` will not be asked for again and may be deleted. A lower offset than before: no change.
    async fn commit(&self, partition: u32, offset: u64) -> PortResult<()>;
}

/// Tells streams apart whose records are counted in one store: every spool has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// A partition of a stream, for which an offset is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamPartition {
    pub stream: StreamId,
    pub number: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRecord {
    pub offset: u64,
    pub bytes: Box<[u8]>,
    /// What the stream keeps for it until it is committed, in bytes: less than the record where it shares texts.
    pub stored_bytes: u32,
}
