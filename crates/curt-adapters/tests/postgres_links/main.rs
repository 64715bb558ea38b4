//! The links of PostgreSQL on real servers.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]
#![cfg(feature = "postgres")]

mod claims;
mod deadlines;
mod lists;
mod races;
mod records;
mod replays;
mod standby;
mod suites;
mod unknown;
mod world;
