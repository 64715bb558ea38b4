use async_trait::async_trait;

use crate::error::PortResult;
use crate::key::Key;
use crate::ports::BatchId;

/// A first-in-first-out queue of keys between keysync and the servers: one pool shard. It outlives the
/// processes around it: a batch that was pushed is safe. A hint like every pool: a fail-over may bring popped keys
/// back, and only the insert decides.
#[async_trait]
pub trait KeyPool: Send + Sync {
    /// Appends the batch's keys, as many as fit under the pool's cap, and returns how many that were: always a prefix
    /// of `keys`. Called again with the same batch name: no key is added and the first answer is repeated.
    async fn push(&self, batch: &BatchId, keys: &[Key]) -> PortResult<usize>;

    /// Removes and returns up to `limit` keys from the front. Empty pool: an empty list, at once.
    async fn pop(&self, limit: usize) -> PortResult<Vec<Key>>;

    /// Up to `limit` keys from position `first` on, which stay where they are. While others push and pop, one may be
    /// met twice or not at all.
    async fn peek(&self, first: u64, limit: usize) -> PortResult<Vec<Key>>;

    /// How many keys are waiting.
    async fn depth(&self) -> PortResult<u64>;
}
