//! The KEYS line over the memory adapters: distinct keys, crashes, faults and accounts.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where the world around it fails; the lint exempts test functions only"
)]

mod accounts;
mod balance;
mod crash;
mod distinct;
mod dry;
mod faults;
mod file;
mod pools;
mod processes;
mod wording;
mod world;
