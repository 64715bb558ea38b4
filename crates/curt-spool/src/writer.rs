//! The hot side of a partition: no system call, no lock and no wait for a record (C-2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use super::background::ThreadWaker;
use super::frame::{self, FrameKind};
use super::map::MappedWriter;
use super::segment::{HEADER_LEN, Segment, to_usize};
use super::shared_texts::{TextNumbers, framed_bytes_max};
use curt_adapter_kit::LockFile;
use curt_core::ports::{ClickWriter, SplitRecord};

/// Why a record found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum DropReason {
    /// The next segment was not ready yet.
    Late = 0,
    /// The spool has reached its bound: the consumer is behind.
    Full = 1,
    /// The disk gives no more segments.
    Disk = 2,
}

impl DropReason {
    pub(super) const ALL: [Self; 3] = [Self::Late, Self::Full, Self::Disk];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Full => "full",
            Self::Disk => "disk",
        }
    }
}

/// What the writer and the rest of the partition tell each other. Aligned so that nobody else's data moves between
/// cores with it.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct WriterState {
    /// Address after the last record.
    tail: AtomicU64,
    written: AtomicU64,
    dropped: [AtomicU64; DropReason::ALL.len()],
    /// Why there is no next segment, as long as there is none.
    drop_reason: AtomicU8,
    /// Whether the writer waits for its next segment.
    wanted: AtomicBool,
}

impl WriterState {
    pub(super) fn new() -> Self {
        Self {
            tail: AtomicU64::new(0),
            written: AtomicU64::new(0),
            dropped: Default::default(),
            drop_reason: AtomicU8::new(DropReason::Late as u8),
            wanted: AtomicBool::new(true),
        }
    }

    pub(super) fn tail(&self) -> u64 {
        self.tail.load(Ordering::Acquire)
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(super) fn dropped(&self, drop_reason: DropReason) -> u64 {
        self.dropped[drop_reason as usize].load(Ordering::Relaxed)
    }

    pub(super) fn wants_segment(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// To be said before the segment is handed over: the writer may want the next one at once.
    pub(super) fn expect_segment(&self) {
        self.wanted.store(false, Ordering::Release);
    }

    /// Notes why there is no next segment; says whether that is news.
    pub(super) fn note(&self, drop_reason: DropReason) -> bool {
        self.drop_reason.swap(drop_reason as u8, Ordering::Relaxed) != drop_reason as u8
    }
}

/// Only the writer counts: a plain store does, and costs less than an atomic addition.
fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// A segment that is being written, and how far.
#[derive(Debug)]
pub(super) struct OpenSegment {
    segment: Arc<Segment>,
    mapped: MappedWriter,
    at: usize,
    capacity: usize,
}

impl OpenSegment {
    pub(super) fn new(segment: Arc<Segment>, mapped: MappedWriter) -> Self {
        let capacity = to_usize(segment.limit - segment.first);
        Self {
            segment,
            mapped,
            at: HEADER_LEN,
            capacity,
        }
    }

    fn fits(&self, bytes: usize) -> bool {
        self.capacity - self.at >= bytes
    }

    fn address(&self) -> u64 {
        self.segment.first + self.at as u64
    }

    fn write(&mut self, kind: FrameKind, payload: &[u8]) {
        let word = frame::word(kind, payload, self.address(), self.segment.salt);
        self.mapped.write(self.at, word, payload);
        self.at += frame::framed_bytes(payload.len());
    }
}

/// The one that writes to a partition.
#[derive(Debug)]
pub(super) struct Writer {
    writer_state: Arc<WriterState>,
    open: Option<OpenSegment>,
    /// Of the open segment.
    texts: TextNumbers,
    ready: Receiver<OpenSegment>,
    segment_waker: Arc<ThreadWaker>,
    /// As long as somebody writes, no other process may have the folder.
    _lock: Arc<LockFile>,
}

impl Writer {
    pub(super) fn new(
        writer_state: Arc<WriterState>,
        ready: Receiver<OpenSegment>,
        segment_waker: Arc<ThreadWaker>,
        lock: Arc<LockFile>,
    ) -> Self {
        Self {
            writer_state,
            open: None,
            texts: TextNumbers::new(),
            ready,
            segment_waker,
            _lock: lock,
        }
    }

    /// Whether there is a segment with so much room, this one or the next.
    fn has_room(&mut self, bytes: usize) -> bool {
        let fits = |open: &Option<OpenSegment>| open.as_ref().is_some_and(|open| open.fits(bytes));
        if fits(&self.open) {
            return true;
        }
        self.turn_to_next();
        fits(&self.open)
    }

    /// Goes on to the next segment if it is ready; once in thousands of records.
    #[cold]
    fn turn_to_next(&mut self) {
        let Ok(next) = self.ready.try_recv() else {
            return;
        };
        if let Some(full) = self.open.replace(next) {
            // Before the tail moves on: a reader that sees the tail in the next segment must see this one's end.
            full.segment.close(full.address());
        }
        self.texts.begin_segment();
        self.writer_state.wanted.store(true, Ordering::Release);
        self.segment_waker.wake();
    }

    #[cold]
    fn count_drop(&self) {
        let drop_reason = self.writer_state.drop_reason.load(Ordering::Relaxed);
        add_one(&self.writer_state.dropped[usize::from(drop_reason)]);
    }
}

impl ClickWriter for Writer {
    /// Writes a record that takes at most [`frame::PAYLOAD_BYTES_MAX`] bytes with its texts.
    fn write(&mut self, record: SplitRecord<'_>) -> bool {
        // Asked before anything is written: a text without its record would be the last thing in its segment.
        if !self.has_room(framed_bytes_max(&record)) {
            self.count_drop();
            return false;
        }
        let Some(open) = &mut self.open else {
            return false;
        };
        self.texts
            .encode(&record, |kind, payload| open.write(kind, payload));
        let tail = open.address();
        self.writer_state.tail.store(tail, Ordering::Release);
        add_one(&self.writer_state.written);
        true
    }
}
