use async_trait::async_trait;

use crate::error::PortResult;

/// Named numbers that move by compare-and-set and survive everything. What an offset has been moved past is never
/// handed out by anybody else (K-4).
#[async_trait]
pub trait Cursor: Send + Sync {
    /// The number under `name`. Absent: 0.
    async fn get(&self, name: &str) -> PortResult<u64>;

    /// Sets `name` to `next` if it still is `seen`, durably, and says whether it did. Absent counts as 0.
    /// Timed out: unknown; read again before trying again. Called twice: the second is refused.
    async fn advance(&self, name: &str, seen: u64, next: u64) -> PortResult<bool>;
}
