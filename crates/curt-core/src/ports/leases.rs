use std::time::Duration;

use async_trait::async_trait;

use crate::error::PortResult;

/// Rights to work on a shard for a time. For efficiency only: a holder may lose its lease without noticing, so nothing may
/// rest on there being one holder, except what carries the fencing token to a store that refuses lower ones.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Acquires the lease `name` for `ttl` if it is free or has run out. Held by another: `None`, at once. Timed out:
    /// unknown; it frees itself after `ttl`.
    async fn acquire(&self, name: &str, ttl: Duration) -> PortResult<Option<Lease>>;

    /// Prolongs a lease that is still ours by `ttl` from now. Lost: `false`, and the holder must stop.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> PortResult<bool>;

    /// Frees the lease if it is still ours. Lost already: no change.
    async fn release(&self, lease: Lease) -> PortResult<()>;

    /// Returns the holder of `name` as it described itself. Free: `None`.
    async fn holder(&self, name: &str) -> PortResult<Option<Box<str>>>;
}

/// The proof of holding a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub name: Box<str>,
    /// Tells this holder from every other; never reused.
    pub token: Box<str>,
    /// Grows with every new holder of the same name.
    pub fencing_token: u64,
}
