//! Waiting for something that the server does in its own time.

use std::fmt::Display;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::length::time_max;

/// Asks `look` again and again until it gives something; fails with its last reason when the time is over, which is
/// judged in `make soak` only: see [`time_max`].
pub(crate) fn eventually<T, E: Display>(
    time: Duration,
    mut look: impl FnMut() -> Result<T, E>,
) -> T {
    let time = time_max(time);
    let end = awake() + time;
    loop {
        match look() {
            Ok(found) => return found,
            Err(reason) if awake() >= end => panic!("not within {time:?}: {reason}"),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The time that has passed, by the system's clock and without allowances, since it was first asked for.
pub(crate) fn awake() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGUN.elapsed()
}
