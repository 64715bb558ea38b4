//! Whether the machine's clock can be trusted with what cannot be undone.
//!
//! Expiry is decided when a link is read, by whatever the clock says then, and so it heals with the clock. A purge does
//! not: it makes tombstones. A clock that was years ahead for five seconds must not end every link for good, so whatever
//! removes by time asks [`ClockGuard::trusted_now`].
//!
//! The clock is compared with the monotonic one while the process runs, and at the start with the last time that was
//! seen before. A jump ahead makes it suspect until it is back, or has run steadily for [`ClockGuardSettings::settle`]:
//! then it was the former time that was wrong, or the process was just not running. A jump back removes nothing too early.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock::{Clock, UnixMillis, monotonic_now};

#[derive(Clone, Copy, Debug)]
pub struct ClockGuardSettings {
    /// How far the clock may run ahead of what is expected.
    pub jump_max: Duration,
    /// How long a clock that jumped must run steadily before it is trusted again.
    pub settle: Duration,
}

impl Default for ClockGuardSettings {
    fn default() -> Self {
        Self {
            jump_max: Duration::from_secs(3_600),
            settle: Duration::from_secs(6 * 3_600),
        }
    }
}

/// Compares the clock with the monotonic one whenever it is asked.
pub struct ClockGuard {
    clock: Arc<dyn Clock>,
    settings: ClockGuardSettings,
    started: Instant,
    state: Mutex<State>,
}

/// Times are what the clock would have said when the guard started.
struct State {
    trusted_start: UnixMillis,
    suspect: Option<Suspect>,
}

#[derive(Clone, Copy)]
struct Suspect {
    start: UnixMillis,
    since: Instant,
}

/// A clock that is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// How far it is ahead of what is expected.
    pub ahead: Duration,
    /// How long it must run steadily until it is trusted.
    pub settles_in: Duration,
}

impl ClockGuard {
    /// `last_seen` is the last time that was noted before, by this process or another one.
    #[must_use]
    pub fn new(
        clock: Arc<dyn Clock>,
        settings: ClockGuardSettings,
        last_seen: Option<UnixMillis>,
    ) -> Self {
        let now = clock.now();
        let guard = Self {
            clock,
            settings,
            started: monotonic_now(),
            state: Mutex::new(State {
                trusted_start: last_seen.unwrap_or(now).min(now),
                suspect: None,
            }),
        };
        guard.look();
        guard
    }

    /// What the clock says; `None` while it is not trusted, and then nothing may be removed by time.
    #[must_use]
    pub fn trusted_now(&self) -> Option<UnixMillis> {
        let (now, jump) = self.look();
        jump.is_none().then_some(now)
    }

    /// Why the clock is not trusted; `None`: it is.
    #[must_use]
    pub fn jump(&self) -> Option<ClockJump> {
        self.look().1
    }

    fn look(&self) -> (UnixMillis, Option<ClockJump>) {
        let mut state = self.lock();
        let (now, running) = (self.clock.now(), self.started.elapsed());
        let start = now.minus(running);
        let jump = state.judge(start, &self.settings);
        (now, jump)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn judge(&mut self, start: UnixMillis, settings: &ClockGuardSettings) -> Option<ClockJump> {
        let ahead = start.since(self.trusted_start);
        if ahead <= settings.jump_max {
            self.suspect = None;
            // Also backwards, and slowly with a clock that is being adjusted.
            self.trusted_start = start;
            return None;
        }
        let suspect = match self.suspect {
            Some(suspect) if differ(suspect.start, start) <= settings.jump_max => suspect,
            _ => {
                let since = monotonic_now();
                *self.suspect.insert(Suspect { start, since })
            }
        };
        let settles_in = settings.settle.saturating_sub(suspect.since.elapsed());
        if settles_in.is_zero() {
            self.suspect = None;
            self.trusted_start = start;
            return None;
        }
        Some(ClockJump { ahead, settles_in })
    }
}

fn differ(one: UnixMillis, other: UnixMillis) -> Duration {
    one.since(other).max(other.since(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
    const YEAR: Duration = Duration::from_secs(365 * 86_400);

    fn guard(settle: Duration, last_seen: Option<UnixMillis>) -> (Arc<ManualClock>, ClockGuard) {
        let clock = Arc::new(ManualClock::at(NOW));
        let settings = ClockGuardSettings {
            settle,
            ..ClockGuardSettings::default()
        };
        let guard = ClockGuard::new(clock.clone(), settings, last_seen);
        (clock, guard)
    }

    #[test]
    fn a_clock_that_jumps_ahead_is_trusted_again_when_it_is_back() {
        let (clock, guard) = guard(YEAR, None);
        assert_eq!(guard.trusted_now(), Some(NOW));
        clock.advance(3 * YEAR);
        assert_eq!(guard.trusted_now(), None);
        assert!(guard.jump().is_some_and(|jump| jump.ahead > 2 * YEAR));
        clock.set(NOW);
        assert_eq!(guard.trusted_now(), Some(NOW));
    }

    #[test]
    fn a_clock_that_stays_ahead_is_trusted_after_it_has_settled() {
        let (clock, guard) = guard(Duration::from_millis(20), None);
        clock.advance(3 * YEAR);
        assert_eq!(guard.trusted_now(), None);
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(guard.trusted_now(), Some(NOW.plus(3 * YEAR)));
        // Back from what was believed meanwhile: nothing is removed too early.
        clock.set(NOW);
        assert_eq!(guard.trusted_now(), Some(NOW));
    }

    #[test]
    fn small_steps_and_steps_back_are_nothing_to_wait_for() {
        let (clock, guard) = guard(YEAR, None);
        for _ in 0..3 {
            clock.advance(Duration::from_secs(1_800));
            assert!(guard.trusted_now().is_some());
        }
        clock.set(NOW.minus(YEAR));
        assert_eq!(guard.trusted_now(), Some(NOW.minus(YEAR)));
    }

    #[test]
    fn a_start_long_after_the_last_seen_time_is_suspect() {
        let (clock, guard) = guard(YEAR, Some(NOW.minus(YEAR)));
        assert_eq!(guard.trusted_now(), None);
        clock.set(NOW.minus(YEAR));
        assert!(guard.trusted_now().is_some());
    }
}
