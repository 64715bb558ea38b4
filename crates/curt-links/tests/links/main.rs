//! The LINKS line over the memory adapters, with a clock that the tests move.

#![allow(clippy::unwrap_used, reason = "in a test, an unwrap is an assertion")]

mod access;
mod admit;
mod blocklist;
mod create;
mod elsewhere;
mod gated;
mod given;
mod guarded;
mod idempotency;
mod interleave;
mod killed;
mod leaving;
mod lifecycle;
mod manage;
mod metrics;
mod purge;
mod purge_nodes;
mod resolve;
mod shared;
mod world;
