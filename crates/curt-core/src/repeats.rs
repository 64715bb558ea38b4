//! Log lines of the same kind: the first at once, the others as a count.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::PortError;
use crate::clock::monotonic_now;

/// How long lines of a kind are only counted after one was written.
const WINDOW: Duration = Duration::from_secs(10);

/// What makes failures one kind: backend, operation and [`ErrorKind`](crate::ErrorKind).
type Kind = (&'static str, &'static str, &'static str);

/// Decides which of many failures of the same kind are written to the log, so that an engine that is away does not fill
/// it with a line per request.
#[derive(Debug)]
pub struct RepeatLimiter(Mutex<BTreeMap<Kind, Written>>);

#[derive(Debug)]
struct Written {
    at: Instant,
    left_out: u64,
}

impl RepeatLimiter {
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Returns how many lines of this kind were left out since the last one, if this one is to be written.
    pub fn admit(&self, failure: &PortError) -> Option<u64> {
        self.admit_at(failure, monotonic_now())
    }

    fn admit_at(&self, failure: &PortError, now: Instant) -> Option<u64> {
        let kind = (failure.backend, failure.op, failure.kind.as_str());
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(written) = kinds.get_mut(&kind) else {
            let written = Written {
                at: now,
                left_out: 0,
            };
            kinds.insert(kind, written);
            return Some(0);
        };
        if now.saturating_duration_since(written.at) < WINDOW {
            written.left_out += 1;
            return None;
        }
        written.at = now;
        Some(std::mem::take(&mut written.left_out))
    }
}

impl Default for RepeatLimiter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn the_first_of_a_kind_is_written_at_once_and_the_others_are_counted() {
        let limiter = RepeatLimiter::new();
        let start = Instant::now();
        let failure = |op| PortError::new(ErrorKind::Unavailable, "test", op, "away");
        assert_eq!(limiter.admit_at(&failure("read"), start), Some(0));
        for _ in 0..3 {
            assert_eq!(limiter.admit_at(&failure("read"), start), None);
        }
        assert_eq!(limiter.admit_at(&failure("write"), start), Some(0));
        let later = start + WINDOW;
        assert_eq!(limiter.admit_at(&failure("read"), later), Some(3));
        assert_eq!(limiter.admit_at(&failure("read"), later), None);
        assert_eq!(limiter.admit_at(&failure("write"), later), Some(0));
    }
}
