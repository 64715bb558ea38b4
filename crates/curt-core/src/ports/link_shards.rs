use std::sync::Arc;

use async_trait::async_trait;

use super::{LinkCounts, SeededDatabase};
use crate::error::PortResult;
use crate::placement::{Epoch, ShardId, ShardMap};

/// A links database that is one node of many. An engine that spreads its links by itself does without.
///
/// Every write of a link carries the epoch that the link's shard has in the map by which the write was routed. The ports
/// that [`routed_by`](Self::routed_by) returns see to it; those that were opened without a map write at the first epoch.
#[async_trait]
pub trait LinkShards: Send + Sync {
    /// Returns the ports of this database for writes that were routed by `map`. Costs no call to the engine.
    fn routed_by(&self, map: Arc<ShardMap>) -> Arc<dyn SeededDatabase>;

    /// Returns a name by which this database is known from all others, made by chance at the first call and kept for good:
    /// a copy or a restored backup has it, another database at the same address has not.
    async fn identity(&self) -> PortResult<Box<str>>;

    /// Refuses from now on writes to links of `shard` that carry an older epoch than `epoch` (L-4): when this returns,
    /// those that were not refused are done, and no later one changes anything.
    ///
    /// - *What is refused*: [`insert_if_absent`](super::LinkStore::insert_if_absent), as a whole if one of its links is, and
    ///   [`update_at`](super::LinkStore::update_at), [`delete_at`](super::LinkStore::delete_at) and
    ///   [`spend_click`](super::LinkStore::spend_click), whether there is such a link or not, with
    ///   [`StaleEpoch`](crate::ErrorKind::StaleEpoch). Writes that look for links to change (`purge`, `release`, `seed`,
    ///   `claim`) pass over those of the shard. Reads are answered as before.
    /// - *Called twice*, or with an older epoch than before: no change.
    /// - *Timed out*: unknown; safe to call again.
    async fn seal(&self, shard: ShardId, epoch: Epoch) -> PortResult<()>;

    /// What [`counts`](super::LinkTotals::counts) holds of one shard, so that it can move with its links. Reads all links
    /// of the shard, and is exact when it is sealed.
    async fn shard_counts(&self, shard: ShardId) -> PortResult<LinkCounts>;
}
