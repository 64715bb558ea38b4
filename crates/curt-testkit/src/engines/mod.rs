//! Real engines for tests: on free loopback ports, with private data, gone when the tests are.
//!
//! ```text
//! use curt_testkit::engines::postgres;
//!
//! let server = curt_testkit::need!(postgres::shared()); // skips the test, loudly, where PostgreSQL is missing
//! let database = server.database("ledger").unwrap();
//! println!("{}", database.url());
//! ```
//!
//! `shared()` is one instance for all tests of a process, each in its own database, prefix or folder; it is dear to
//! start or nobody wants to hurt it. `start()` is an instance of one's own, to be killed, paused and started again on
//! the same port and data: see [`Engine`]. [`proxy`] stands between a client and an engine and breaks the line.
//!
//! Everything here blocks. That is no harm in a test, but in an asynchronous test nothing else moves meanwhile unless
//! the call is made from a thread for blocking work.

mod account;
pub mod browser;
mod cache;
pub mod cassandra;
mod certificates;
mod command;
pub mod dynamodb;
mod engine;
pub mod haproxy;
pub mod hdfs;
mod home;
mod java;
pub mod kafka;
pub mod mariadb;
pub mod memcached;
pub mod minio;
mod missing;
mod port;
pub mod postgres;
pub mod proxy;
pub mod redis;
mod shared;
mod wait;
pub mod web_proxy;
pub mod zookeeper;

pub use engine::Engine;
pub use missing::{Missing, unless_missing};
pub use port::Port;

use std::sync::atomic::{AtomicU32, Ordering};

/// A name that no other test of this process has: for databases, prefixes, topics and folders in a shared engine.
#[must_use]
pub fn unique(name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{name}_{number}")
}
