use std::time::Duration;

use async_trait::async_trait;

use crate::error::PortResult;

/// Who works on what. For efficiency only: a holder may lose its lock without noticing, so nothing may rest on there
/// being one holder, except what carries the `fence` to a store that refuses lower ones.
#[async_trait]
pub trait Locks: Send + Sync {
    /// Takes the lock `name` for `ttl` if it is free or has run out. Held by somebody else: `None`, at once.
    /// Timed out: unknown; it frees itself after `ttl`.
    async fn acquire(&self, name: &str, ttl: Duration) -> PortResult<Option<Lease>>;

    /// Prolongs a lease that is still ours by `ttl` from now. Lost: `false`, and the holder must stop.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> PortResult<bool>;

    /// Frees the lock if the lease is still ours. Lost already: no change.
    async fn release(&self, lease: Lease) -> PortResult<()>;

    /// Who holds `name`, as its holder described itself. Free: `None`.
    async fn holder(&self, name: &str) -> PortResult<Option<Box<str>>>;
}

/// The proof of holding a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub name: Box<str>,
    /// Tells this holder from every other; never reused.
    pub token: Box<str>,
    /// Grows with every new holder of the same name.
    pub fence: u64,
}
