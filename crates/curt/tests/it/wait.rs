//! Waiting for something that the server does in its own time.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

/// Asks `look` again and again until it gives something; fails with its last reason when the time is over.
pub(crate) fn eventually<T, E: Display>(
    time: Duration,
    mut look: impl FnMut() -> Result<T, E>,
) -> T {
    let end = Instant::now() + time;
    loop {
        match look() {
            Ok(found) => return found,
            Err(reason) if Instant::now() >= end => panic!("not within {time:?}: {reason}"),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}
