//! The Redis adapter on real servers.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod faults;
mod lost_messages;
mod quotas;
mod suites;
