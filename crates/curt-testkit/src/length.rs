//! Short by default, long on request: the same assertions either way.

/// `short` in `make test`, `full` in `make soak` (`CURT_TEST_LENGTH=full`).
pub fn length<T>(short: T, full: T) -> T {
    if is_full() { full } else { short }
}

#[must_use]
pub fn is_full() -> bool {
    std::env::var("CURT_TEST_LENGTH").is_ok_and(|length| length == "full")
}
