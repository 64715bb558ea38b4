//! How fast the PostgreSQL adapter is. A program of its own, so that no other test runs beside it.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]
#![cfg(feature = "postgres")]

mod dead_rows;
mod throughput;
mod unknown_table;
#[path = "../postgres/world.rs"]
#[expect(dead_code, reason = "shared with the other tests of this engine")]
mod world;

use tokio::sync::Mutex;

/// Held while something is measured.
static ALONE: Mutex<()> = Mutex::const_new(());
