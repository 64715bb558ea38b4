//! How slowly a body may arrive.

use std::time::Duration;

use tokio::time::Instant;

/// What a body must arrive with on average, in bytes per second.
pub(crate) const BYTES_PER_SECOND: u64 = 64 * 1_024;

/// When a body that still arrives is given up. Each byte moves the deadline by the time that it may take, but never
/// further than the timeout from now: a body on a slow line arrives, and a client that sent much at once may not be silent
/// for longer than any other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyRate {
    timeout: Duration,
    deadline: Instant,
}

impl BodyRate {
    /// A body that begins now.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            deadline: Instant::now() + timeout,
        }
    }

    pub(crate) fn received(&mut self, bytes: usize) {
        let nanos = (bytes as u64).saturating_mul(1_000_000_000) / BYTES_PER_SECOND;
        let moved = self.deadline + Duration::from_nanos(nanos);
        self.deadline = moved.min(Instant::now() + self.timeout);
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    /// For how many seconds a client can send so many bytes each second.
    async fn lasts(bytes_per_second: usize) -> u64 {
        let began = Instant::now();
        let mut rate = BodyRate::new(TIMEOUT);
        for _ in 0..1_000 {
            tokio::time::advance(Duration::from_secs(1)).await;
            if rate.deadline() <= Instant::now() {
                break;
            }
            rate.received(bytes_per_second);
        }
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_judged_by_its_rate() {
        assert_eq!(lasts(0).await, 10);
        assert_eq!(lasts(1).await, 11);
        assert_eq!(lasts(32 * 1_024).await, 19);
        assert_eq!(lasts(64 * 1_024).await, 1_000);
        assert_eq!(lasts(1_024 * 1_024).await, 1_000);
    }

    #[tokio::test(start_paused = true)]
    async fn much_at_once_earns_no_silence() {
        let mut rate = BodyRate::new(TIMEOUT);
        rate.received(4 * 1_024 * 1_024);
        assert_eq!(rate.deadline(), Instant::now() + TIMEOUT);
        // A byte now and then is silence.
        for _ in 0..9 {
            tokio::time::advance(Duration::from_secs(1)).await;
            rate.received(1);
        }
        assert!(rate.deadline() < Instant::now() + Duration::from_secs(2));
    }
}
