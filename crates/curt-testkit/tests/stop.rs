//! Threads end when what they wait for has failed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use curt_testkit::stop::{Rendezvous, SetOnDrop};

/// As a failing assertion does, without a message.
fn fail() {
    resume_unwind(Box::new("failed"));
}

#[test]
fn a_failed_body_stops_the_threads_of_its_scope() {
    let stop = AtomicBool::new(false);
    let body = AssertUnwindSafe(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            });
            let _end = SetOnDrop::of(&stop);
            fail();
        });
    });
    assert!(catch_unwind(body).is_err());
}

#[test]
fn a_rendezvous_keeps_threads_in_step() {
    const THREADS: usize = 4;
    let (together, arrived) = (Rendezvous::of(THREADS), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for step in 1..=100 {
                    arrived.fetch_add(1, Ordering::Relaxed);
                    together.wait();
                    assert!(arrived.load(Ordering::Relaxed) >= step * THREADS);
                }
            });
        }
    });
    assert_eq!(arrived.load(Ordering::Relaxed), 100 * THREADS);
}

#[test]
fn a_rendezvous_fails_when_a_thread_does_not_come() {
    let together = Rendezvous::of(3).within(Duration::from_millis(100));
    let failed = thread::scope(|scope| {
        let waiting = [(); 2].map(|()| scope.spawn(|| together.wait()));
        waiting.map(|thread| thread.join().is_err())
    });
    assert_eq!(failed, [true, true]);
}
