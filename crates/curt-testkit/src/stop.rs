//! A failed assertion is a failure and never a hang: ends for threads that work until they are told to stop, and for
//! threads that wait for each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a [`Rendezvous`] waits before it gives up: far longer than any step of a test takes.
const RENDEZVOUS_TIME_MAX: Duration = Duration::from_secs(120);

/// Sets a stop flag when dropped, also by a panic. `std::thread::scope` waits for every thread, so those that loop until
/// a flag is set would otherwise keep a failed test from ending.
///
/// ```
/// # use std::sync::atomic::{AtomicBool, Ordering};
/// # use curt_testkit::stop::SetOnDrop;
/// let stop = AtomicBool::new(false);
/// std::thread::scope(|scope| {
///     scope.spawn(|| while !stop.load(Ordering::Relaxed) {});
///     let end = SetOnDrop::of(&stop);
///     assert_eq!(1 + 1, 2); // what may fail
///     drop(end);
/// });
/// ```
#[derive(Debug)]
#[must_use = "the flag is set when this is dropped"]
pub struct SetOnDrop<'a>(&'a AtomicBool);

impl<'a> SetOnDrop<'a> {
    pub fn of(flag: &'a AtomicBool) -> Self {
        Self(flag)
    }
}

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A barrier for threads that start each step together. Unlike the one of the standard library it fails when one of them
/// does not come any more.
#[derive(Debug)]
pub struct Rendezvous {
    threads: usize,
    time_max: Duration,
    /// How many have come, over all steps.
    arrivals: Mutex<u64>,
    changed: Condvar,
}

impl Rendezvous {
    #[must_use]
    pub fn of(threads: usize) -> Self {
        Self {
            threads,
            time_max: RENDEZVOUS_TIME_MAX,
            arrivals: Mutex::new(0),
            changed: Condvar::new(),
        }
    }

    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.time_max = time;
        self
    }

    /// Returns when every thread has come to this step.
    ///
    /// # Panics
    /// When they have not in time.
    pub fn wait(&self) {
        let threads = self.threads as u64;
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let step = *arrivals / threads;
        *arrivals += 1;
        self.changed.notify_all();
        let is_awaited = |arrivals: &mut u64| *arrivals / threads == step;
        let waited = self
            .changed
            .wait_timeout_while(arrivals, self.time_max, is_awaited);
        let (arrivals, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        let missing = threads - *arrivals % threads;
        drop(arrivals);
        assert!(
            !waited.timed_out(),
            "{missing} of {threads} threads did not come to step {step}"
        );
    }
}
