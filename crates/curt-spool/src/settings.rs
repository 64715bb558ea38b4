use std::time::Duration;

use curt_core::{ErrorKind, PortError, PortResult};

use super::BACKEND;
use super::frame::{PAYLOAD_BYTES_MAX, framed_bytes};
use super::segment::{HEADER_BYTES, SEGMENT_BYTES_MAX};

pub(super) const PAGE_BYTES: u64 = 4_096;
/// Segments that each partition must be able to have: one that is written, one that is ready, and two to be read.
const SEGMENTS_EACH_MIN: u64 = 4;
const SEGMENT_BYTES_MIN: u64 = 128 * 1_024;

const _: () = assert!(SEGMENT_BYTES_MIN > HEADER_BYTES + framed_bytes(PAYLOAD_BYTES_MAX) as u64);

#[derive(Clone, Debug)]
pub struct SpoolSettings {
    /// Partitions that can be written, each by one worker.
    pub writers: u32,
    /// Size of one file; lowered if the total leaves no room for four per writer.
    pub segment_bytes: u64,
    /// What all files may take together. Beyond it clicks are dropped and counted.
    pub total_bytes: u64,
    /// How much of the last clicks a power cut may take.
    pub sync_every: Duration,
    /// Room that is left on the disk to others: a link that cannot be made is worse than a click that is not counted.
    pub disk_reserve_bytes: u64,
    /// How far the file of dead letters may grow.
    pub dead_letter_bytes: u64,
    /// Whether records that cannot be read are kept there byte by byte, with the visitor's address.
    pub keeps_dead_records: bool,
}

impl Default for SpoolSettings {
    fn default() -> Self {
        Self {
            writers: 1,
            segment_bytes: 8 << 20,
            total_bytes: 256 << 20,
            sync_every: Duration::from_millis(100),
            disk_reserve_bytes: 16 << 20,
            dead_letter_bytes: 4 << 20,
            keeps_dead_records: false,
        }
    }
}

impl SpoolSettings {
    /// Whether a spool can work like this.
    pub fn check(&self) -> PortResult<()> {
        let refused = |detail: String| {
            Err(PortError::new(
                ErrorKind::Invalid,
                BACKEND,
                "open the spool",
                detail,
            ))
        };
        if self.writers == 0 {
            return refused("it needs at least one writer".into());
        }
        if self.sync_every.is_zero() {
            return refused("the time between syncs must be more than zero".into());
        }
        let least = u64::from(self.writers) * SEGMENTS_EACH_MIN * SEGMENT_BYTES_MIN;
        if self.total_bytes < least {
            let writers = self.writers;
            return refused(format!(
                "{writers} writers need a total of {least} bytes or more"
            ));
        }
        Ok(())
    }

    /// The size of segments in whole pages, such that every writer can have its share of them.
    pub(super) fn fitting_segment_bytes(&self) -> u64 {
        let share = self.total_bytes / u64::from(self.writers) / SEGMENTS_EACH_MIN;
        let bytes = self.segment_bytes.min(share);
        let bytes = bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        bytes / PAGE_BYTES * PAGE_BYTES
    }
}
