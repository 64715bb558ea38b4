//! What the redirect path does about a click: write it down, and go on.

use curt_core::ports::ClickWriter;

use crate::record::{ClickRecord, RECORD_BYTES_MAX, encode};

/// Encodes and writes the clicks of one redirect worker, to whose thread it is moved: nothing is shared (C-2).
#[derive(Debug)]
pub struct Capture {
    writer: Box<dyn ClickWriter>,
    /// The click in bytes; reused.
    encoded: Vec<u8>,
}

impl Capture {
    #[must_use]
    pub fn new(writer: Box<dyn ClickWriter>) -> Self {
        Self {
            writer,
            encoded: Vec::with_capacity(RECORD_BYTES_MAX),
        }
    }

    /// Writes the click to the click stream, as [`ClickWriter::write`] does.
    pub fn record(&mut self, click: &ClickRecord<'_>) -> bool {
        self.encoded.clear();
        encode(click, &mut self.encoded);
        self.writer.write(&self.encoded)
    }
}
