//! Whether clicks are counted, and what is in the way: for health, metrics and one log line per change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::names::event;
use curt_core::{PortError, UnixMillis};

/// Failures in a row before counting is said to stand still: one is waited out in a second.
const FAILURES_MIN: u32 = 3;
/// Counting that is this far behind redirects is told of.
const LAG_TOLD: Duration = Duration::from_secs(30);

/// What the consumers of a process tell about themselves. Cheap to clone; clones tell the same.
#[derive(Clone, Debug, Default)]
pub struct CountingState(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By partition.
    stopped: BTreeMap<u32, Stopped>,
    /// Since when single clicks are counted and not kept.
    skipping_since: Option<UnixMillis>,
    /// By partition, the time of the last click that was read, where more are waiting.
    behind: BTreeMap<u32, UnixMillis>,
    is_lag_told: bool,
}

#[derive(Debug)]
struct Stopped {
    since: UnixMillis,
    failures: u32,
    reason: String,
}

/// Why clicks are not counted, or not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountingProblem {
    pub since: UnixMillis,
    pub reason: String,
}

impl CountingState {
    /// What keeps clicks from being counted; `None`: they are.
    #[must_use]
    pub fn stopped(&self) -> Option<CountingProblem> {
        let state = self.lock();
        let stopped = state
            .stopped
            .values()
            .filter(|stopped| stopped.failures >= FAILURES_MIN);
        let first = stopped.min_by_key(|stopped| stopped.since)?;
        Some(CountingProblem {
            since: first.since,
            reason: first.reason.clone(),
        })
    }

    /// Since when single clicks are not kept for want of room; `None`: they are.
    #[must_use]
    pub fn skipping_since(&self) -> Option<UnixMillis> {
        self.lock().skipping_since
    }

    /// How old the oldest click is that no consumer has read; zero when all are read.
    #[must_use]
    pub fn lag(&self, now: UnixMillis) -> Duration {
        self.lock().lag(now)
    }

    /// Notes up to when the partition is read while more is waiting, or with `None` that all of it is read.
    pub(crate) fn note_read(&self, partition: u32, until: Option<UnixMillis>, now: UnixMillis) {
        let mut state = self.lock();
        match until {
            Some(until) => drop(state.behind.insert(partition, until)),
            None => drop(state.behind.remove(&partition)),
        }
        let lag = state.lag(now);
        // Told again only after it has caught up.
        if !state.is_lag_told && lag >= LAG_TOLD {
            state.is_lag_told = true;
            let seconds = lag.as_secs();
            tracing::warn!(
                event = event::CLICK_COUNTING_CHANGED,
                seconds,
                "click counting falls behind"
            );
        } else if state.is_lag_told && state.behind.is_empty() {
            state.is_lag_told = false;
            tracing::info!(
                event = event::CLICK_COUNTING_CHANGED,
                "click counting caught up"
            );
        }
    }

    /// Returns whether this is worth a line in the log: the first failure, and then one after twice as many.
    pub(super) fn failed(&self, partition: u32, error: &PortError, now: UnixMillis) -> bool {
        let mut state = self.lock();
        let stopped = state.stopped.entry(partition).or_insert_with(|| Stopped {
            since: now,
            failures: 0,
            reason: String::new(),
        });
        stopped.failures = stopped.failures.saturating_add(1);
        stopped.reason = error.to_string();
        stopped.failures.is_power_of_two()
    }

    pub(super) fn goes_on(&self, partition: u32, now: UnixMillis) {
        let stopped = self.lock().stopped.remove(&partition);
        if let Some(stopped) = stopped
            && stopped.failures >= FAILURES_MIN
        {
            tracing::info!(
                event = event::CLICK_COUNTING_CHANGED,
                partition,
                seconds = now.since(stopped.since).as_secs(),
                "clicks are counted again"
            );
        }
    }

    pub(super) fn skips(&self, now: UnixMillis) {
        let mut state = self.lock();
        if state.skipping_since.is_none() {
            state.skipping_since = Some(now);
            tracing::warn!(
                event = event::CLICK_COUNTING_CHANGED,
                "single clicks skipped, disk nearly full"
            );
        }
    }

    pub(super) fn keeps(&self) {
        let mut state = self.lock();
        if state.skipping_since.take().is_some() {
            tracing::info!(
                event = event::CLICK_COUNTING_CHANGED,
                "single clicks are kept again"
            );
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn lag(&self, now: UnixMillis) -> Duration {
        let oldest = self.behind.values().min();
        oldest.map_or(Duration::ZERO, |oldest| now.since(*oldest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_that_of_the_partition_that_is_furthest_behind() {
        let state = CountingState::default();
        let now = UnixMillis(1_000_000);
        assert_eq!(state.lag(now), Duration::ZERO);
        state.note_read(0, Some(UnixMillis(990_000)), now);
        state.note_read(1, Some(UnixMillis(940_000)), now);
        assert_eq!(state.lag(now), Duration::from_secs(60));
        state.note_read(1, None, now);
        assert_eq!(state.lag(now), Duration::from_secs(10));
        state.note_read(0, None, now);
        assert_eq!(state.lag(now), Duration::ZERO);
    }
}
