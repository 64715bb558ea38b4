//! The threads and connections behind every port of this adapter.
//!
//! - [`writer`]: one thread with the only connection that writes; calls that wait together share one commit.
//! - [`readers`]: connections for look-ups, used on the caller's thread, and for long reads.
//! - [`scanner`]: a queue of long reads, each of which ends when its caller leaves.
//! - [`log`]: the write-ahead log is kept short.
//! - [`connection`]: how each of them is opened.

pub(super) mod connection;
pub(super) mod counters;
mod log;
pub(super) mod readers;
mod scanner;
pub(super) mod writer;
