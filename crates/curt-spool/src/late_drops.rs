//! Tells of clicks that were dropped because the next segment was not ready in time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use curt_core::clock::monotonic_now;
use curt_core::names::event;

/// Between two lines in the log: a disk that is late is late for many clicks.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// What the log has told so far.
#[derive(Debug, Default)]
pub(super) struct LateDrops(Mutex<Reported>);

#[derive(Debug, Default)]
struct Reported {
    dropped: u64,
    at: Option<Instant>,
}

impl LateDrops {
    /// Writes a line when there are new drops and the last one is long enough ago. `dropped` counts them all.
    pub(super) fn report_new(&self, dropped: u64) {
        if let Some(clicks) = self.take_unreported(dropped, monotonic_now()) {
            tracing::warn!(
                event = event::CLICKS_LATE,
                clicks,
                "clicks dropped, raise clicks.spool_segment"
            );
        }
    }

    fn take_unreported(&self, dropped: u64, now: Instant) -> Option<u64> {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_soon = |at: Instant| now.duration_since(at) < REPORT_EVERY;
        if dropped <= reported.dropped || reported.at.is_some_and(is_soon) {
            return None;
        }
        let unreported = dropped - reported.dropped;
        *reported = Reported {
            dropped,
            at: Some(now),
        };
        Some(unreported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drop_is_told_once_and_not_one_by_one() {
        let (drops, start) = (LateDrops::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(drops.take_unreported(0, start), None);
        assert_eq!(drops.take_unreported(3, start), Some(3));
        assert_eq!(drops.take_unreported(500, after(1)), None);
        assert_eq!(drops.take_unreported(700, after(11)), Some(697));
        assert_eq!(drops.take_unreported(700, after(60)), None);
    }
}
