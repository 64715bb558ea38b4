//! How late event loops are: what they cannot do in time because they, or the process, do not get to run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

const PROBE_EVERY: Duration = Duration::from_millis(10);
/// What a timer is late by on an idle machine.
const SLACK: Duration = Duration::from_millis(2);

/// The lateness of several event loops, each of which runs [`probe`](Self::probe).
#[derive(Debug)]
pub struct LoopLag {
    began: Instant,
    loops: Box<[LoopRecord]>,
}

#[derive(Debug, Default)]
struct LoopRecord {
    /// Microseconds by which probes were late since the last look.
    late: AtomicU64,
    /// When the last probe came, in microseconds since the beginning. 0: none came yet.
    seen: AtomicU64,
}

impl LoopLag {
    #[must_use]
    pub fn new(loops: usize) -> Self {
        Self {
            began: Instant::now(),
            loops: (0..loops).map(|_| LoopRecord::default()).collect(),
        }
    }

    /// Notes for ever how late the loop is that this runs on.
    pub async fn probe(&self, number: usize) {
        let Some(record) = self.loops.get(number) else {
            return;
        };
        loop {
            let asked = Instant::now();
            record.seen.store(self.now(), Ordering::Relaxed);
            tokio::time::sleep(PROBE_EVERY).await;
            let late = asked.elapsed().saturating_sub(PROBE_EVERY + SLACK);
            record.late.fetch_add(micros(late), Ordering::Relaxed);
        }
    }

    /// Returns the part of the last `elapsed` in which the latest of the loops stood still, and begins anew.
    #[must_use]
    pub fn take_share(&self, elapsed: Duration) -> f64 {
        let now = self.now();
        let late = self.loops.iter().map(|record| {
            let seen = record.seen.load(Ordering::Relaxed);
            let overdue = match seen {
                0 => 0,
                // A loop that stands still tells nothing.
                seen => now.saturating_sub(seen + micros(PROBE_EVERY + SLACK)),
            };
            record.late.swap(0, Ordering::Relaxed).max(overdue)
        });
        let late = Duration::from_micros(late.max().unwrap_or(0));
        (late.as_secs_f64() / elapsed.as_secs_f64().max(f64::EPSILON)).min(1.0)
    }

    fn now(&self) -> u64 {
        micros(self.began.elapsed())
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_loop_that_stands_still_is_late_and_an_idle_one_is_not() {
        let lag = Arc::new(LoopLag::new(1));
        let probed = Arc::clone(&lag);
        let probe = tokio::spawn(async move { probed.probe(0).await });
        let began = Instant::now();
        for _ in 0..5 {
            // Of 40 ms, the loop stands still for 30.
            tokio::time::sleep(Duration::from_millis(10)).await;
            std::thread::sleep(Duration::from_millis(30));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        let busy = lag.take_share(began.elapsed());
        assert!((0.3..=1.0).contains(&busy), "{busy}");
        // One quiet stretch is enough: the machine may be busy.
        let mut quiet: f64 = 1.0;
        for _ in 0..50 {
            let began = Instant::now();
            tokio::time::sleep(Duration::from_millis(100)).await;
            quiet = quiet.min(lag.take_share(began.elapsed()));
        }
        assert!(quiet < 0.1, "{quiet}");
        probe.abort();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let silent = lag.take_share(Duration::from_millis(50));
        assert!(silent > 0.5, "{silent}");
    }
}
