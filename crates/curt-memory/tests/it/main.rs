//! The memory adapters.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod clicks;
mod suites;
