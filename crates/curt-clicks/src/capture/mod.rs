//! What the redirect path does about a visit: write it down, and go on.

use crate::record::{RECORD_BYTES_MAX, Visit, encode};
use crate::spool::Writer;

/// A redirect worker's pen. One per worker: it is moved to the worker's thread and writes without asking anybody (C-2).
#[derive(Debug)]
pub struct Capture {
    writer: Writer,
    /// The visit in bytes; reused.
    encoded: Vec<u8>,
}

impl Capture {
    pub(crate) fn new(writer: Writer) -> Self {
        Self {
            writer,
            encoded: Vec::with_capacity(RECORD_BYTES_MAX),
        }
    }

    /// Writes the visit to the spool. When this returns true, it outlives the process. False: there was no room, and the
    /// spool has counted that.
    pub fn record(&mut self, visit: &Visit<'_>) -> bool {
        self.encoded.clear();
        encode(visit, &mut self.encoded);
        self.writer.write(&self.encoded)
    }
}
