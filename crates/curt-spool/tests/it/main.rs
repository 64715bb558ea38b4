//! What the spool promises, asked of it through its public side: whole records, in order, once, whatever happens.

#![expect(clippy::unwrap_used, reason = "in a test, an unwrap is an assertion")]

mod bounds;
mod conformance;
mod crash;
mod damage;
mod full_disk;
mod restart;
mod threads;
mod wiped;
mod world;
