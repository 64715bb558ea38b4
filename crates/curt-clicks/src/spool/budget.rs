use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes the spool's files may take, and do.
#[derive(Debug)]
pub(super) struct Budget {
    total: u64,
    segment: u64,
    used: AtomicU64,
}

impl Budget {
    pub(super) fn new(total: u64, segment: u64) -> Self {
        Self {
            total,
            segment,
            used: AtomicU64::new(0),
        }
    }

    pub(super) fn segment_bytes(&self) -> u64 {
        self.segment
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
