//! The links of PostgreSQL on real servers.

mod claims;
mod deadlines;
mod distributed;
mod lists;
mod lookups;
mod races;
mod replays;
mod replicas;
mod standby;
mod suites;
mod unknown;
pub(crate) mod world;
