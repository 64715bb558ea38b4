use async_trait::async_trait;

use crate::error::PortResult;

/// An ordered, partitioned log of encoded click records.
#[async_trait]
pub trait ClickStream: Send + Sync {
    /// Which stream this is. It stays the same for as long as offsets mean the same records.
    fn id(&self) -> StreamId;

    /// Appends records to a partition of the stream's choice; durable when it returns. Timed out: unknown, and a
    /// second call may append twice unless the engine is told otherwise.
    async fn append(&self, records: &[Box<[u8]>]) -> PortResult<()>;

    /// How many partitions there are; they are numbered from 0.
    async fn partitions(&self) -> PortResult<u32>;

    /// Up to `limit` records of the partition from `from` on, in order, each with its offset. Nothing there yet: an
    /// empty list. Records before the oldest kept one are skipped. Called twice: the same records.
    async fn poll(&self, partition: u32, from: u64, limit: usize) -> PortResult<Vec<StreamRecord>>;

    /// Everything before `offset` will not be asked for again and may be deleted. A lower offset than before: no change.
    async fn commit(&self, partition: u32, offset: u64) -> PortResult<()>;
}

/// The write end of one partition of a click stream, for the one worker that owns it.
pub trait ClickWriter: Send + std::fmt::Debug {
    /// Appends an encoded click without waiting for anything (C-2). True: it outlives the process. False: there was no
    /// room, and the stream has counted that.
    fn write(&mut self, record: &[u8]) -> bool;
}

/// Where records go that were polled and cannot be decoded.
pub trait DeadLetters: Send + Sync {
    /// Counts the record and keeps what helps to find out why, without failing or waiting. Called twice, as happens
    /// after a crash: counted twice.
    fn put(&self, partition: u32, offset: u64, reason: &'static str, record: &[u8]);
}

/// Tells streams apart whose records are counted in one store: every process on a machine of its own has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// A partition of a stream, for which a position is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamPartition {
    pub stream: StreamId,
    pub number: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRecord {
    pub offset: u64,
    pub bytes: Box<[u8]>,
}
