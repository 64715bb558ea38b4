//! The SQLite adapter.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod agreement;
mod click_scale;
mod commits;
mod faults;
mod suites;
