use std::time::Duration;

use async_trait::async_trait;

use crate::error::PortResult;

/// The registry of running instances, each with a short text about itself. A hint: texts are a moment old, and the record of
/// an instance that died stays until its time is over.
#[async_trait]
pub trait Heartbeats: Send + Sync {
    /// Writes the record of `instance` in place of its last one, to end after `ttl` unless it is written again. An engine
    /// that notices the end of a process may keep it for as long as the process lives. Names are made of letters, digits
    /// and `-`. Timed out: unknown; the next heartbeat settles it.
    async fn beat(&self, instance: &str, text: &str, ttl: Duration) -> PortResult<()>;

    /// Removes the record of `instance`. Absent: no change.
    async fn remove(&self, instance: &str) -> PortResult<()>;

    /// Returns the records that have not ended, by name.
    async fn records(&self) -> PortResult<Vec<HeartbeatRecord>>;
}

/// What an instance wrote with its last heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeartbeatRecord {
    pub instance: Box<str>,
    pub text: Box<str>,
}
