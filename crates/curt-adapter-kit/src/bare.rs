//! What an engine can do at most: the bare statements that keys are minted, taken, pushed and popped by, without the
//! promises of the ports. A yardstick for measurements, on a table or a list that nobody else uses.

use async_trait::async_trait;
use curt_core::{Key, PortResult};

#[async_trait]
pub trait BareKeys: Send + Sync {
    /// Puts keys in; those that are there already are passed over.
    async fn put(&self, keys: &[Key]) -> PortResult<()>;

    /// Takes up to `count` keys out, and says how many that were.
    async fn take(&self, count: usize) -> PortResult<u64>;

    /// Removes the table or list, and all other traces of a measurement.
    async fn remove(&self) -> PortResult<()>;
}
