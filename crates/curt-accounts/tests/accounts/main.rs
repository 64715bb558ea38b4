//! Accounts over the memory adapters, with a clock that the tests move. Each module is one subject.

#![allow(clippy::unwrap_used, reason = "in a test, an unwrap is an assertion")]

mod api_keys;
mod audit;
mod limits;
mod passwords;
mod permissions;
mod probed;
mod secrets;
mod sessions;
mod setup;
mod shared_quotas;
mod sign_up;
mod users;
mod world;
