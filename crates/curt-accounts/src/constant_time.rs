//! Refusals that must not be told apart by how long they took.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Longer than what a refusal takes on a machine that keeps up, and too short to be noticed after a typing error.
const STEP: Duration = Duration::from_millis(5);

/// When the work on a request began whose refusal is a constant-time response. Finding a row takes longer than finding
/// none, and a client that asks often enough can measure that; so a refusal waits for the end of a step, and only the
/// number of steps shows.
#[derive(Clone, Copy, Debug)]
pub struct ConstantTime(Instant);

impl ConstantTime {
    #[must_use]
    pub fn begin() -> Self {
        Self(Instant::now())
    }

    /// Waits for the end of the step that has begun.
    pub async fn wait_for_step_end(self) {
        sleep_until(self.end_of_step(Instant::now())).await;
    }

    fn end_of_step(self, now: Instant) -> Instant {
        let past = now.duration_since(self.0).as_nanos() % STEP.as_nanos();
        let past = Duration::from_nanos(u64::try_from(past).unwrap_or_default());
        now + (STEP - past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_one_step_ends_at_one_moment() {
        let begun = ConstantTime::begin();
        let ends_after = |micros| {
            let now = begun.0 + Duration::from_micros(micros);
            (begun.end_of_step(now) - begun.0).as_micros()
        };
        assert_eq!([0, 1, 40, 4_999].map(ends_after), [5_000; 4]);
        assert_eq!([5_000, 9_999].map(ends_after), [10_000; 2]);
    }
}
