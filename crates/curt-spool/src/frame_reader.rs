use std::io;

use super::frame::{self, FrameKind, Step};
use super::segment::{Segment, to_usize};

/// Bytes that are read at once, unless a damaged stretch is longer.
const WINDOW_BYTES: usize = 256 * 1_024;

const _: () = assert!(WINDOW_BYTES > frame::framed_bytes(frame::PAYLOAD_BYTES_MAX));

/// Goes through the frames of a segment, damaged or not.
#[derive(Debug)]
pub(super) struct FrameReader<'a> {
    segment: &'a Segment,
    /// Address of what comes next.
    at: u64,
    /// Address where the content ends.
    end: u64,
    window: Vec<u8>,
    /// Bytes of the window that are done with.
    used: usize,
}

/// What stands at an address; `next` is the address after it.
#[derive(Debug)]
pub(super) enum ScannedItem<'a> {
    Record { payload: &'a [u8], next: u64 },
    Text { payload: &'a [u8], next: u64 },
    Damaged { bytes: &'a [u8], next: u64 },
}

impl ScannedItem<'_> {
    pub(super) fn next(&self) -> u64 {
        match *self {
            Self::Record { next, .. } | Self::Text { next, .. } | Self::Damaged { next, .. } => {
                next
            }
        }
    }
}

impl<'a> FrameReader<'a> {
    /// Starts at `at`, where a frame must start.
    pub(super) fn new(segment: &'a Segment, at: u64, end: u64) -> Self {
        Self {
            segment,
            at,
            end,
            window: Vec::new(),
            used: 0,
        }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<ScannedItem<'_>>> {
        loop {
            let rest = &self.window[self.used..];
            let last = self.at + rest.len() as u64 >= self.end;
            match frame::scan(rest, self.at, self.segment.salt, last) {
                Step::Frame {
                    kind,
                    payload,
                    taken,
                } => {
                    let payload = payload.start + self.used..payload.end + self.used;
                    self.advance(taken);
                    let (payload, next) = (&self.window[payload], self.at);
                    return Ok(Some(match kind {
                        FrameKind::Record => ScannedItem::Record { payload, next },
                        FrameKind::Text => ScannedItem::Text { payload, next },
                    }));
                }
                Step::Damaged { taken } => {
                    let bytes = self.used..self.used + taken;
                    self.advance(taken);
                    let (bytes, next) = (&self.window[bytes], self.at);
                    return Ok(Some(ScannedItem::Damaged { bytes, next }));
                }
                Step::More if last => return Ok(None),
                Step::More => self.load_more()?,
            }
        }
    }

    fn advance(&mut self, taken: usize) {
        self.used += taken;
        self.at += taken as u64;
    }

    /// Reads on; a window in which nothing was found grows, so that a damaged stretch is seen whole.
    fn load_more(&mut self) -> io::Result<()> {
        let seen = self.window.len() - self.used;
        let wanted = WINDOW_BYTES.max(seen * 2) as u64;
        let wanted = to_usize(wanted.min(self.end - self.at));
        self.used = 0;
        self.window.resize(wanted, 0);
        let read = self.segment.read(self.at, &mut self.window)?;
        self.window.truncate(read);
        if read < wanted {
            // Somebody shortened the file: what is gone is gone.
            self.end = self.at + read as u64;
        }
        Ok(())
    }
}
