//! The Kafka adapter on a real broker.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod conformance;
mod group;
mod repeated;
mod secured;
mod world;
