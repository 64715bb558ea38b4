//! The clicks of PostgreSQL on real servers.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]
#![cfg(feature = "postgres")]

mod crowd;
mod damaged;
mod odd_texts;
mod pages;
mod suites;
mod unknown;
mod world;
