//! Whether the stream takes clicks, for health, metrics and one log line per change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::names::event;
use curt_core::{PortError, UnixMillis};

use crate::consume::CountingProblem;

/// Cheap to clone; clones tell the same.
#[derive(Clone, Debug, Default)]
pub struct ForwardState(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By partition.
    stopped: BTreeMap<u32, CountingProblem>,
    /// By partition, the time of the oldest click that is on its way.
    waiting: BTreeMap<u32, UnixMillis>,
}

impl ForwardState {
    /// What keeps clicks from being forwarded; `None`: they are.
    #[must_use]
    pub fn stopped(&self) -> Option<CountingProblem> {
        let state = self.lock();
        let first = state.stopped.values().min_by_key(|stopped| stopped.since)?;
        Some(first.clone())
    }

    /// How old the oldest click is that the stream does not have.
    #[must_use]
    pub fn lag(&self, now: UnixMillis) -> Duration {
        let state = self.lock();
        let oldest = state.waiting.values().min();
        let age = oldest.map_or(0, |oldest| now.0.saturating_sub(oldest.0));
        Duration::from_millis(u64::try_from(age).unwrap_or(0))
    }

    pub(super) fn note_lag(&self, partition: u32, oldest: Option<UnixMillis>) {
        let mut state = self.lock();
        match oldest {
            Some(oldest) => state.waiting.insert(partition, oldest),
            None => state.waiting.remove(&partition),
        };
    }

    pub(super) fn note_success(&self, partition: u32) {
        let mut state = self.lock();
        if state.stopped.remove(&partition).is_some() && state.stopped.is_empty() {
            tracing::info!(
                event = event::CLICK_FORWARDING_CHANGED,
                forwarding = true,
                "click stream takes clicks again"
            );
        }
    }

    pub(super) fn note_failure(&self, partition: u32, error: &PortError, now: UnixMillis) {
        let mut state = self.lock();
        if state.stopped.is_empty() {
            tracing::warn!(
                event = event::CLICK_FORWARDING_CHANGED,
                forwarding = false,
                backend = error.backend,
                kind = error.kind.as_str(),
                "clicks wait in the spool: {error}"
            );
        }
        state.stopped.entry(partition).or_insert(CountingProblem {
            since: now,
            reason: error.to_string(),
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
