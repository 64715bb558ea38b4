//! What the redirect path does about a click: write it down, and go on.

use curt_core::ports::ClickWriter;

use crate::record::{ClickRecord, RecordBuffers};

/// Encodes and writes the clicks of one redirect worker, to whose thread it is moved: nothing is shared (C-2).
#[derive(Debug)]
pub struct Capture {
    writer: Box<dyn ClickWriter>,
    buffers: RecordBuffers,
}

impl Capture {
    #[must_use]
    pub fn new(writer: Box<dyn ClickWriter>) -> Self {
        Self {
            writer,
            buffers: RecordBuffers::default(),
        }
    }

    /// Writes the click to the click stream, as [`ClickWriter::write`] does.
    pub fn record(&mut self, click: &ClickRecord<'_>) -> bool {
        self.writer.write(self.buffers.split(click))
    }
}
