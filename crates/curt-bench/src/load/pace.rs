//! When the next request may leave. Times are nanoseconds since the start of the run.

/// The schedule of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    issued: u64,
    requests_max: u64,
    deadline: u64,
    /// Nanoseconds between two requests of an open loop.
    interval: Option<f64>,
}

impl Pace {
    pub(super) fn new(requests_max: Option<u64>, deadline: u64, rate: Option<f64>) -> Self {
        Self {
            issued: 0,
            requests_max: requests_max.unwrap_or(u64::MAX),
            deadline,
            interval: rate.map(|rate| 1e9 / rate),
        }
    }

    /// Takes the next request if one may leave at `now`, and says from when its latency counts.
    pub(super) fn take(&mut self, now: u64) -> Option<u64> {
        if self.is_over(now) {
            return None;
        }
        let from = match self.interval {
            None => now,
            Some(interval) => Some(due(interval, self.issued)).filter(|&due| due <= now)?,
        };
        self.issued += 1;
        Some(from)
    }

    /// Whether no further request will leave.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.issued >= self.requests_max || now >= self.deadline
    }

    pub(super) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// When the next request of an open loop falls due.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.interval.map(|interval| due(interval, self.issued))
    }

    /// The due times of requests that should have left before the deadline and did not.
    pub(super) fn overdue(&self) -> impl Iterator<Item = u64> + '_ {
        let interval = self.interval.unwrap_or(f64::INFINITY);
        (self.issued..self.requests_max)
            .map(move |place| due(interval, place))
            .take_while(|&due| due < self.deadline)
    }
}

fn due(interval: f64, place: u64) -> u64 {
    // Nothing times infinity would be no number: a closed loop has nothing due.
    if interval.is_finite() {
        (interval * place as f64) as u64
    } else {
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loop_counts_from_now_until_its_limits() {
        let mut pace = Pace::new(Some(2), 100, None);
        assert_eq!(pace.take(7), Some(7));
        assert_eq!(pace.take(9), Some(9));
        assert_eq!(pace.take(9), None);
        assert!(pace.is_over(9));
        assert_eq!(pace.overdue().count(), 0);
        assert_eq!(Pace::new(None, 100, None).take(100), None);
        assert_eq!(Pace::new(None, 100, None).overdue().count(), 0);
    }

    #[test]
    fn an_open_loop_counts_from_when_requests_fell_due() {
        let mut pace = Pace::new(None, 1_000, Some(1e7));
        assert_eq!(pace.take(250), Some(0));
        assert_eq!(pace.take(250), Some(100));
        assert_eq!(pace.take(250), Some(200));
        assert_eq!(pace.take(250), None);
        assert_eq!(pace.next_due(), Some(300));
        assert_eq!(
            pace.overdue().collect::<Vec<_>>(),
            [300, 400, 500, 600, 700, 800, 900]
        );
    }
}
