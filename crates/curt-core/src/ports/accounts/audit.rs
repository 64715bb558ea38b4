use async_trait::async_trait;

use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::owner::OwnerId;

/// What was done that touches security. Entries are only ever added.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Adds an entry. Called twice: there are two.
    async fn record(&self, entry: &AuditEntry) -> PortResult<()>;

    /// Up to `limit` entries with a number below `before`, newest first. Numbers grow in the order in which entries came.
    async fn audit(&self, before: Option<u64>, limit: usize) -> PortResult<Vec<(u64, AuditEntry)>>;
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuditEntry {
    pub at: UnixMillis,
    /// Who did it; `None` when nobody was signed in.
    pub actor: Option<OwnerId>,
    /// One of [`names::audit`](crate::names::audit).
    pub action: Box<str>,
    /// What it was done to: an email, a key's prefix, a link's key.
    pub subject: Box<str>,
    /// Where the request came from, if it came by network.
    pub address: Option<Box<str>>,
}
