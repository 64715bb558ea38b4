//! The router, called directly over memory adapters: every endpoint with good and bad requests.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod bad_input;
mod harness;
mod links;
mod matrix;
mod original;
mod pages;
mod repeat;
mod semantics;
