//! Reading a partition.

use std::io;
use std::sync::PoisonError;

use curt_core::ports::StreamRecord;

use super::contents::Content;
use super::dead_letter_log::DeadLetterLog;
use super::frame_reader::{FrameReader, ScannedItem};
use super::partition::Partition;
use super::segment::Segment;
use super::shared_texts::TextTable;

/// Where the last poll ended, and the texts that records from there on may refer to.
#[derive(Debug, Default)]
pub(super) struct ReadPosition {
    /// Address after the last record that was given, and after all that was looked at.
    record_end: u64,
    address: u64,
    /// First address of the segment whose texts these are.
    segment: u64,
    texts: TextTable,
}

impl ReadPosition {
    /// Moves to where `from` can be read in the segment: on from the last poll, or from the segment's start, for its texts.
    fn seek(&mut self, segment: &Segment, from: u64) {
        let is_next = self.segment == segment.first && self.record_end == from;
        if !is_next || from < segment.data_start() {
            *self = Self {
                record_end: 0,
                address: segment.data_start(),
                segment: segment.first,
                texts: TextTable::default(),
            };
        }
    }
}

impl Partition {
    /// Up to `limit` records whose offset is `from` or later. A record's offset is the address of its last byte, so that
    /// the next one can only be found from the following address on.
    pub(super) fn poll(
        &self,
        from: u64,
        limit: usize,
        dead_letters: &DeadLetterLog,
    ) -> io::Result<Vec<StreamRecord>> {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records = Vec::new();
        for content in self.contents() {
            let is_read = content.end <= from || content.end == content.segment.data_start();
            if !is_read && records.len() < limit {
                position.seek(&content.segment, from);
                let read = self.read(
                    &content,
                    from,
                    limit,
                    &mut position,
                    &mut records,
                    dead_letters,
                );
                // Texts that were read halfway are read again.
                read.inspect_err(|_| *position = ReadPosition::default())?;
            }
        }
        Ok(records)
    }

    /// Adds records of one segment, from the position on.
    fn read(
        &self,
        content: &Content,
        from: u64,
        limit: usize,
        position: &mut ReadPosition,
        records: &mut Vec<StreamRecord>,
        dead_letters: &DeadLetterLog,
    ) -> io::Result<()> {
        let Content { segment, end } = content;
        let mut reader = FrameReader::new(segment, position.address, *end);
        // Zeros before it are no damage.
        let kept_start = segment.kept_start();
        let mut joined = Vec::new();
        while records.len() < limit
            && let Some(seen) = reader.next()?
        {
            let (start, next) = (position.address, seen.next());
            position.address = next;
            match seen {
                ScannedItem::Text { payload, .. } => position.texts.add(payload),
                ScannedItem::Record { payload, .. } if next > from => {
                    let Ok(record) = position.texts.resolve(payload) else {
                        self.report_dead_letter(next, "text", payload, dead_letters);
                        continue;
                    };
                    position.record_end = next;
                    joined.clear();
                    record.join(&mut joined);
                    records.push(StreamRecord {
                        offset: next - 1,
                        bytes: joined.as_slice().into(),
                        stored_bytes: u32::try_from(next - start).unwrap_or(u32::MAX),
                    });
                }
                ScannedItem::Damaged { bytes, .. } if next > from.max(kept_start) => {
                    let is_hole = bytes.iter().all(|byte| *byte == 0);
                    let reason = if is_hole { "hole" } else { "checksum" };
                    self.report_dead_letter(next, reason, bytes, dead_letters);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Each stretch once, however often it is polled.
    fn report_dead_letter(
        &self,
        next: u64,
        reason: &'static str,
        bytes: &[u8],
        dead_letters: &DeadLetterLog,
    ) {
        {
            let mut state = self.state();
            if next <= state.reported {
                return;
            }
            state.reported = next;
        }
        dead_letters.report(self.number, next - 1, reason, bytes);
    }
}
