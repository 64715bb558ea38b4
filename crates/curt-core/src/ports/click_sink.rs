use async_trait::async_trait;

use crate::error::PortResult;

/// The write end of a click stream that many processes share. A server with a spool of its own writes through
/// [`ClickWriter`] instead: a redirect crosses no port.
#[async_trait]
pub trait ClickSink: Send + Sync {
    /// Appends the records of a producer, all of them or none, behind those that it appended before; durable when it
    /// returns. The producer's sequence numbers rise from record to record, with or without gaps.
    ///
    /// - *Called twice*: records whose number is not above the producer's last one are skipped, so nothing changes.
    /// - *Timed out*: unknown; calling again with the same records is safe.
    /// - *Full*: `Throttled`.
    async fn append(&self, producer: ProducerId, records: &[SequencedRecord]) -> PortResult<()>;
}

/// Tells the producers of a stream apart. It stays the same over restarts, for as long as sequence numbers go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerId(pub u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequencedRecord {
    pub sequence: u64,
    pub bytes: Box<[u8]>,
}

/// The write end of one partition of an embedded click stream, for the one worker that owns it.
pub trait ClickWriter: Send + std::fmt::Debug {
    /// Appends an encoded click without waiting for anything (C-2). True: it outlives the process. False: there was no
    /// room, and the stream has counted that.
    fn write(&mut self, record: &[u8]) -> bool;
}
