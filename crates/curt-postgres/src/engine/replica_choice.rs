//! Which of several good replicas a look-up goes to.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rand::RngExt as _;

use crate::settings::ReplicaChoice;

/// What the newest answer counts in the average, as a power of two: an eighth.
const NEWEST_PART: u32 = 3;
/// What a failed or late look-up counts as.
const FAILURE_COST: Duration = Duration::from_secs(1);

/// How long a replica took lately, and how many look-ups wait for it.
#[derive(Debug, Default)]
pub(super) struct ReplicaLoad {
    /// Moving average, in microseconds.
    latency: AtomicU64,
    waiting: AtomicU64,
}

impl ReplicaLoad {
    /// Counts a look-up until [`WaitingLookUp::finish`], or until it is given up.
    pub(super) fn begin(&self) -> WaitingLookUp<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingLookUp(self)
    }

    /// What one more look-up would wait, about.
    fn cost(&self) -> u64 {
        let waiting = self.waiting.load(Ordering::Relaxed);
        let latency = self.latency.load(Ordering::Relaxed);
        (latency + 1).saturating_mul(waiting + 1)
    }

    fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let before = self.latency.load(Ordering::Relaxed);
        let after = match before {
            0 => took,
            _ => before - (before >> NEWEST_PART) + (took >> NEWEST_PART),
        };
        // Of two at the same time one is lost, which an average forgives.
        self.latency.store(after, Ordering::Relaxed);
    }
}

/// A look-up that a replica has not answered yet.
pub(super) struct WaitingLookUp<'a>(&'a ReplicaLoad);

impl WaitingLookUp<'_> {
    /// Notes how long the answer took; `None`: there was none.
    pub(super) fn finish(self, took: Option<Duration>) {
        self.0.note(took.unwrap_or(FAILURE_COST));
    }
}

impl Drop for WaitingLookUp<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Chooses among replicas.
#[derive(Debug)]
pub(super) struct ReplicaChooser {
    choice: ReplicaChoice,
    turns: AtomicUsize,
}

impl ReplicaChooser {
    pub(super) fn new(choice: ReplicaChoice) -> Self {
        Self {
            choice,
            turns: AtomicUsize::new(0),
        }
    }

    /// Returns one of `replicas`, if there is any.
    pub(super) fn choose<'a, T>(
        &self,
        replicas: &[&'a T],
        load: impl Fn(&T) -> &ReplicaLoad,
    ) -> Option<&'a T> {
        let count = replicas.len();
        if count <= 1 {
            return replicas.first().copied();
        }
        match self.choice {
            ReplicaChoice::RoundRobin => {
                let turn = self.turns.fetch_add(1, Ordering::Relaxed);
                Some(replicas[turn % count])
            }
            // The better one of two: the best of all would be everybody's choice at the same time.
            ReplicaChoice::Latency => {
                let mut random = rand::rng();
                let one = random.random_range(0..count);
                let other = (one + random.random_range(1..count)) % count;
                let (one, other) = (replicas[one], replicas[other]);
                match load(one).cost() <= load(other).cost() {
                    true => Some(one),
                    false => Some(other),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each of three replicas is chosen that take so many milliseconds.
    fn chosen(choice: ReplicaChoice, millis: [u64; 3]) -> [usize; 3] {
        let loads: [ReplicaLoad; 3] = Default::default();
        let replicas: Vec<&ReplicaLoad> = loads.iter().collect();
        let chooser = ReplicaChooser::new(choice);
        let mut counts = [0; 3];
        for _ in 0..3_000 {
            let one = chooser.choose(&replicas, |load| load).unwrap();
            let place = loads
                .iter()
                .position(|load| std::ptr::eq(load, one))
                .unwrap();
            counts[place] += 1;
            one.begin()
                .finish(Some(Duration::from_millis(millis[place])));
        }
        counts
    }

    #[test]
    fn slow_replicas_are_asked_less_unless_they_take_turns() {
        assert_eq!(chosen(ReplicaChoice::RoundRobin, [1, 1, 50]), [1_000; 3]);
        let [one, other, slow] = chosen(ReplicaChoice::Latency, [1, 1, 50]);
        assert!(slow < 30, "{slow} to the slow one");
        assert!(one > 1_000 && other > 1_000, "{one} and {other}");
        let even = chosen(ReplicaChoice::Latency, [2, 2, 2]);
        assert!(even.iter().all(|count| *count > 500), "{even:?}");
    }

    #[test]
    fn waiting_look_ups_and_failures_count() {
        let [busy, failing, idle]: [ReplicaLoad; 3] = Default::default();
        for load in [&busy, &failing, &idle] {
            load.begin().finish(Some(Duration::from_millis(1)));
        }
        let chooser = ReplicaChooser::new(ReplicaChoice::Latency);
        let waiting: Vec<_> = (0..8).map(|_| busy.begin()).collect();
        failing.begin().finish(None);
        for worse in [&busy, &failing] {
            for _ in 0..20 {
                let one = chooser.choose(&[worse, &idle], |load| load).unwrap();
                assert!(std::ptr::eq(one, &raw const idle));
            }
        }
        drop(waiting);
        assert_eq!(busy.cost(), idle.cost());
    }
}
