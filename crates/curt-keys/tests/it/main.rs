//! The KEYS line over the memory adapters: distinct keys, crashes, faults and accounts.

mod accounts;
mod crash;
mod distinct;
mod dry;
mod faults;
mod file;
mod pools;
mod world;
