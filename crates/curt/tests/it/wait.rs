//! Waiting for something that the server does in its own time.

use std::fmt::Display;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often the clock of [`awake`] is moved.
const TICK: Duration = Duration::from_millis(10);
/// What counts of a longer tick: a busy machine may take this long to run a thread again.
const TICK_MAX: Duration = Duration::from_millis(500);

/// Asks `look` again and again until it gives something; fails with its last reason when the time is over.
pub(crate) fn eventually<T, E: Display>(
    time: Duration,
    mut look: impl FnMut() -> Result<T, E>,
) -> T {
    let end = awake() + time;
    loop {
        match look() {
            Ok(found) => return found,
            Err(reason) if awake() >= end => panic!("not within {time:?}: {reason}"),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// A clock that stands still while this process does: when a machine is halted for a while, everybody on it is, and
/// nobody is late.
pub(crate) fn awake() -> Duration {
    static TICKING: Once = Once::new();
    static MICROS: AtomicU64 = AtomicU64::new(0);
    TICKING.call_once(|| {
        thread::spawn(|| {
            loop {
                let before = Instant::now();
                thread::sleep(TICK);
                let passed = before.elapsed().min(TICK_MAX);
                MICROS.fetch_add(passed.as_micros() as u64, Ordering::Relaxed);
            }
        });
    });
    Duration::from_micros(MICROS.load(Ordering::Relaxed))
}
