use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long an engine that failed is not asked.
const PAUSE: Duration = Duration::from_millis(500);

/// Circuit breaker: after a failure one call in each [`PAUSE`] tries the engine, until one succeeds.
#[derive(Default)]
pub(super) struct Breaker {
    /// When the next call may try. `None`: closed, every call may.
    retry_at: Mutex<Option<Instant>>,
}

impl Breaker {
    /// Whether this call may go to the engine.
    pub(super) fn admits(&self) -> bool {
        let mut retry_at = self.retry_at.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match *retry_at {
            None => true,
            Some(at) if now < at => false,
            // The others wait for what becomes of this one.
            Some(_) => {
                *retry_at = Some(now + PAUSE);
                true
            }
        }
    }

    /// Notes a failure. Returns whether it is the first.
    pub(super) fn open(&self) -> bool {
        let mut retry_at = self.retry_at.lock().unwrap_or_else(PoisonError::into_inner);
        retry_at.replace(Instant::now() + PAUSE).is_none()
    }

    /// Notes a success. Returns whether there were failures before.
    pub(super) fn close(&self) -> bool {
        let mut retry_at = self.retry_at.lock().unwrap_or_else(PoisonError::into_inner);
        retry_at.take().is_some()
    }

    pub(super) fn is_open(&self) -> bool {
        let retry_at = self.retry_at.lock().unwrap_or_else(PoisonError::into_inner);
        retry_at.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_call_in_each_pause_tries_an_engine_that_failed() {
        let breaker = Breaker::default();
        assert!(breaker.admits() && !breaker.is_open());
        assert!(breaker.open(), "the first failure");
        assert!(!breaker.open(), "the second");
        assert!(!breaker.admits());
        for _ in 0..3 {
            tokio::time::advance(PAUSE).await;
            assert!(breaker.admits());
            assert!(!breaker.admits(), "a second one in the same pause");
        }
        assert!(breaker.close());
        assert!(!breaker.close());
        assert!(breaker.admits() && breaker.admits() && !breaker.is_open());
    }
}
