//! Short by default, long on request: the same assertions either way, except on times.

use std::time::Duration;

/// Longer than any step of a test takes on a machine that is busy with other things.
const HANG: Duration = Duration::from_secs(120);

/// `short` in `make test`, `full` in `make soak` (`CURT_TEST_LENGTH=full`).
pub fn length<T>(short: T, full: T) -> T {
    if is_full() { full } else { short }
}

#[must_use]
pub fn is_full() -> bool {
    std::env::var("CURT_TEST_LENGTH").is_ok_and(|length| length == "full")
}

/// A bound on how long something takes: `exact` in `make soak`, where one test runs after the other. `make test` runs
/// beside other work, which makes everything late; there, this finds what hangs and nothing else.
#[must_use]
pub fn time_max(exact: Duration) -> Duration {
    length(exact.max(HANG), exact)
}
