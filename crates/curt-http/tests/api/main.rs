//! The router, called directly over memory adapters: every endpoint with good and bad requests.

mod bad_input;
mod harness;
mod links;
mod matrix;
mod original;
mod pages;
mod repeat;
mod semantics;
