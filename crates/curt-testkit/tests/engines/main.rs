//! Every engine starts, serves, survives what tests do to it, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test whose engine fails should stop")]

mod leavings;
mod mariadb;
mod postgres;
mod redis;
mod skipping;
mod zookeeper;
