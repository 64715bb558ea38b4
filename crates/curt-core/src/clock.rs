//! Injected time: nothing below the executable asks the system for it.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01 UTC. Signed, so that a bad clock gives a negative time and not a huge one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// The end of year 9999: the last instant that RFC 3339 can write, and the latest expiry that is accepted.
    pub const MAX: Self = Self(253_402_300_799_999);

    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(by))
    }

    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(by))
    }

    /// Time from `earlier` to `self`; zero when the clock stepped back.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// Wall-clock time as the product sees it.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> UnixMillis;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> UnixMillis {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Err(before) => UnixMillis(
                i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis),
            ),
        }
    }
}

/// Monotonic time, for code without a runtime. With one, it is `tokio::time::Instant`, which tests can pause.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn monotonic_now() -> Instant {
    Instant::now()
}

/// A clock that stands still until a test moves it.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    #[must_use]
    pub fn at(now: UnixMillis) -> Self {
        Self(AtomicI64::new(now.0))
    }

    pub fn set(&self, now: UnixMillis) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(
            UnixMillis(i64::MAX).plus(Duration::MAX),
            UnixMillis(i64::MAX)
        );
        assert_eq!(
            UnixMillis(i64::MIN).minus(Duration::MAX),
            UnixMillis(i64::MIN)
        );
        assert_eq!(UnixMillis(5).since(UnixMillis(9)), Duration::ZERO);
    }
}
