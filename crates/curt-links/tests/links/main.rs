//! The LINKS line over the memory adapters, with a clock that the tests move.

#![allow(clippy::unwrap_used, reason = "in a test, an unwrap is an assertion")]

mod admit;
mod create;
mod gated;
mod interleave;
mod manage;
mod metrics;
mod once;
mod purge;
mod resolve;
mod world;
