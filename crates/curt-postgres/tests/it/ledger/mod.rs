//! The PostgreSQL adapter on real servers.

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
pub(crate) mod world;
