use std::time::Duration;

use async_trait::async_trait;

use crate::error::PortResult;

/// Who is at work, and what each process says about itself. A hint: what is said is a moment old, and what a process
/// said that died stays for a while.
#[async_trait]
pub trait Roster: Send + Sync {
    /// Writes what `member` says about itself, in place of what it said before. Not said again within `ttl`: it is
    /// gone. An engine that notices the end of a process may keep it for as long as the process is there.
    /// Names are made of letters, digits and `-`. Timed out: unknown; the next announcement settles it.
    async fn announce(&self, member: &str, says: &str, ttl: Duration) -> PortResult<()>;

    /// Takes `member` off. Absent: no change.
    async fn leave(&self, member: &str) -> PortResult<()>;

    /// Everybody who is there, by name.
    async fn members(&self) -> PortResult<Vec<Member>>;
}

/// A process that is at work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub name: Box<str>,
    pub says: Box<str>,
}
