//! The Cassandra adapter on a real node.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod accounts;
mod clicks;
mod links;
mod world;
