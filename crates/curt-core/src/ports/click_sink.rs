use async_trait::async_trait;

use crate::error::PortResult;
use crate::varint;

/// The write end of a click stream that many processes share. A server with a spool of its own writes through
/// [`ClickWriter`] instead: a redirect crosses no port.
#[async_trait]
pub trait ClickSink: Send + Sync {
    /// Appends the records of a producer, all of them or none, behind those that it appended before, where both are in one
    /// partition; durable when it returns. The producer's sequence numbers rise from record to record, with or without gaps.
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
    fn write(&mut self, record: SplitRecord<'_>) -> bool;
}

/// How many shared texts a record may have.
pub const SHARED_TEXTS: usize = 5;

/// An encoded click in parts: what is its own, and texts that many clicks have in common, such as the agent. A stream
/// may store such a text once; readers get the record [joined](Self::join).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRecord<'a> {
    pub own: &'a [u8],
    /// Empty where the click has none.
    pub shared: [&'a [u8]; SHARED_TEXTS],
}

impl<'a> SplitRecord<'a> {
    /// A record that shares nothing.
    #[must_use]
    pub fn whole(own: &'a [u8]) -> Self {
        Self {
            own,
            shared: [&[]; SHARED_TEXTS],
        }
    }

    /// Appends the record's own part, and then each shared text after its length, up to the last that is not empty.
    pub fn join(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.own);
        let last = self.shared.iter().rposition(|text| !text.is_empty());
        for text in &self.shared[..last.map_or(0, |last| last + 1)] {
            varint::push(out, text.len() as u64);
            out.extend_from_slice(text);
        }
    }
}
