//! How fast the PostgreSQL adapter is. A program of its own, so that no other test runs beside it.

mod dead_rows;
mod throughput;
mod unknown_table;

use tokio::sync::Mutex;

/// Held while something is measured.
static ALONE: Mutex<()> = Mutex::const_new(());
