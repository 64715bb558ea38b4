//! The PostgreSQL adapter on real servers.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]
#![cfg(feature = "postgres")]

mod down;
mod encryption;
mod failover;
mod migration;
mod plan;
mod runtimes;
mod suites;
mod takers;
mod unknown;
mod upkeep;
mod world;
