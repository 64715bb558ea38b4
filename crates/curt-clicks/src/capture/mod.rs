//! What the redirect path does about a visit: write it down, and go on.

use curt_core::ports::ClickWriter;

use crate::record::{RECORD_BYTES_MAX, Visit, encode};

/// Encodes and writes the visits of one redirect worker, to whose thread it is moved: nothing is shared (C-2).
#[derive(Debug)]
pub struct Capture {
    writer: Box<dyn ClickWriter>,
    /// The visit in bytes; reused.
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

    /// Writes the visit to the click stream, as [`ClickWriter::write`] does.
    pub fn record(&mut self, visit: &Visit<'_>) -> bool {
        self.encoded.clear();
        encode(visit, &mut self.encoded);
        self.writer.write(&self.encoded)
    }
}
