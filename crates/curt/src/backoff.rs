use std::time::Duration;

use rand::RngExt as _;

/// Pauses between the tries of something that fails: each twice as long as the one before, up to a limit, and varied by a
/// quarter, so that many processes do not come back at the same moment.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, max: Duration) -> Self {
        Self {
            first,
            max,
            next: first,
        }
    }

    pub(crate) fn next_pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.max);
        pause.mul_f64(rand::rng().random_range(0.75..=1.0))
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit_and_start_over() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(3));
        for seconds in [1, 2, 3, 3] {
            let (pause, most) = (backoff.next_pause(), Duration::from_secs(seconds));
            assert!(pause <= most && pause >= most.mul_f64(0.75), "{pause:?}");
        }
        backoff.reset();
        assert!(backoff.next_pause() <= Duration::from_secs(1));
    }
}
