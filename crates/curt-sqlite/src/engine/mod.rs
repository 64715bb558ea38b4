//! The threads and connections behind every port of this adapter.
//!
//! - [`writer`]: one thread with the only connection that writes; calls that wait together share one commit.
//! - [`readers`]: connections for look-ups, used on the caller's thread, and for long reads.
//! - [`scanner`]: a queue of long reads, each of which ends when its caller leaves.
//! - [`seals`]: shards that take no more writes from routers with an old map.
//! - [`log`]: the write-ahead log is kept short.
//! - [`connection`]: how each of them is opened.

pub(super) mod connection;
pub(super) mod counters;
pub(super) mod readers;
mod scanner;
mod seals;
mod wal;
pub(super) mod writer;
