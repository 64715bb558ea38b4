use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::settings::SpoolSettings;

/// Size of a writer's first segment: enough for the time that it takes to make the next one ready.
const FIRST_SEGMENT_BYTES: u64 = 256 << 10;

/// How many bytes the spool's files may take, and do.
#[derive(Debug)]
pub(super) struct Budget {
    total: u64,
    segment: u64,
    /// Not of the spool but of its disk.
    disk_reserve: u64,
    used: AtomicU64,
}

impl Budget {
    pub(super) fn new(settings: &SpoolSettings) -> Self {
        Self {
            total: settings.total_bytes,
            segment: settings.fitting_segment_bytes(),
            disk_reserve: settings.disk_reserve_bytes,
            used: AtomicU64::new(0),
        }
    }

    /// Size of the segment that a writer gets after so many in this run. The first ones are small: most servers have few
    /// clicks, and pages that are made ready for them count as memory of the process.
    pub(super) fn segment_bytes(&self, made: u32) -> u64 {
        let growth = 4_u64.saturating_pow(made);
        self.segment.min(FIRST_SEGMENT_BYTES.saturating_mul(growth))
    }

    /// Whether the disk of `folder` has room for `bytes` without what is left to others.
    pub(super) fn disk_has(&self, folder: &Path, bytes: u64) -> io::Result<bool> {
        let disk = rustix::fs::statvfs(folder)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        Ok(free >= self.disk_reserve.saturating_add(bytes))
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes` if they fit.
    pub(super) fn reserve(&self, bytes: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.total);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Takes what is there already, bound or not.
    pub(super) fn add(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
