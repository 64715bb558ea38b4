use std::sync::Arc;

use async_trait::async_trait;

use super::{IdempotencyRecord, LinkCounts, RequestToken, SeededDatabase};
use crate::error::PortResult;
use crate::key::LinkId;
use crate::link::{KeyOrigin, Link};
use crate::owner::OwnerId;
use crate::placement::{Epoch, ShardId, ShardMap};

/// A links database that is one node of many. An engine that spreads its links by itself does without.
///
/// Every write of a link carries the epoch that the link's shard has in the map by which the write was routed. The ports
/// that [`routed_by`](Self::routed_by) returns see to it; those that were opened without a map write at the first epoch.
///
/// # Moves
/// A shard that moves is copied while its owner goes on with it, and what changes meanwhile is copied again:
///
/// | the owner | the next owner |
/// |---|---|
/// | [`track_changes`](Self::track_changes) | [`begin_import`](Self::begin_import) |
/// | [`export`](Self::export), [`changes`](Self::changes), `forget_changes` | [`import`](Self::import) |
/// | [`seal`](Self::seal), `changes` to the end | `import` |
/// | *the map names the next owner* | |
/// | [`retire`](Self::retire), [`shard_counts`](Self::shard_counts) | [`adopt`](Self::adopt) |
/// | [`discount`](Self::discount), [`stop_tracking`](Self::stop_tracking), [`drop_copy`](Self::drop_copy) | |
///
/// Every call can be repeated. What changes a copy carries a fence, a number that grows with each mover: a mover that was
/// replaced and does not know it gets [`StaleEpoch`](crate::ErrorKind::StaleEpoch), and changes nothing.
#[async_trait]
pub trait LinkShards: Send + Sync {
    /// Returns the ports of this database for calls that were routed by `map`. Costs no call to the engine.
    ///
    /// Through them, a link of a shard that was [retired](Self::retire) here since the map was made is not read: `get`,
    /// `get_many`, `clicks_spent` and `list` fail with [`StaleEpoch`](crate::ErrorKind::StaleEpoch). A map of version 0 is
    /// none.
    fn routed_by(&self, map: Arc<ShardMap>) -> Arc<dyn SeededDatabase>;

    /// Returns a name by which this database is known from all others, made by chance at the first call and kept for good:
    /// a copy or a restored backup has it, another database at the same address has not.
    async fn identity(&self) -> PortResult<Box<str>>;

    /// Refuses from now on writes to links of `shard` that carry an older epoch than `epoch` (L-4): when this returns,
    /// those that were not refused are done, and no later one changes anything.
    ///
    /// - *What is refused*: [`insert_if_absent`](super::LinkStore::insert_if_absent), as a whole if one of its links is,
    ///   [`update_at`](super::LinkStore::update_at), [`delete_at`](super::LinkStore::delete_at) and
    ///   [`spend_click`](super::LinkStore::spend_click), whether there is such a link or not, and the calls of
    ///   [`Idempotency`](super::Idempotency) for requests [of the shard](ShardId::of_request), with
    ///   [`StaleEpoch`](crate::ErrorKind::StaleEpoch). Writes that look for links to change (`purge`, `release`, `seed`,
    ///   `claim`) pass over those of the shard. Reads are answered as before.
    /// - *Called twice*, or with an older epoch than before: no change.
    /// - *Timed out*: unknown; safe to call again.
    async fn seal(&self, shard: ShardId, epoch: Epoch) -> PortResult<()>;

    /// What [`counts`](super::LinkTotals::counts) holds of one shard, so that it can move with its links. Reads all links
    /// of the shard, and is exact when it is sealed.
    async fn shard_counts(&self, shard: ShardId) -> PortResult<LinkCounts>;

    /// Remembers from now on, durably, what changes in `shard`: when this returns, every change is either to be seen by
    /// [`export`](Self::export) or remembered. Called twice: no change. After a greater fence: `StaleEpoch`.
    async fn track_changes(&self, shard: ShardId, fence: u64) -> PortResult<()>;

    /// Forgets what was remembered of `shard`, and remembers no more. Called twice: no change. After a greater fence:
    /// `StaleEpoch`.
    async fn stop_tracking(&self, shard: ShardId, fence: u64) -> PortResult<()>;

    /// Returns a part of what the database has of `shard`, behind the position `after`. Reads a bounded number of rows: a
    /// part may be empty and still have a `next`. Not of one instant: what changes meanwhile may or may not be in it.
    async fn export(&self, shard: ShardId, after: Option<&str>) -> PortResult<ShardPart>;

    /// Returns what has changed in `shard` and was not [forgotten](Self::forget_changes), as it is now, a bounded number of
    /// items; how many keys were released is always among them.
    async fn changes(&self, shard: ShardId) -> PortResult<ChangedItems>;

    /// Forgets changes that [`changes`](Self::changes) returned, because they were imported. Called twice: no change.
    async fn forget_changes(&self, changes: &ChangedItems) -> PortResult<()>;

    /// Begins a copy of `shard`, or goes on with one, for the mover with this fence: it is read, written and counted by
    /// nobody, and writes to it are refused that carry an older epoch than `epoch`, at which it is to be owned. Called
    /// twice: no change. After a greater fence, or for a shard that is owned by that epoch: `StaleEpoch`.
    async fn begin_import(&self, shard: ShardId, fence: u64, epoch: Epoch) -> PortResult<()>;

    /// Puts items into the copy of `shard`, each in place of what it has under the same name. Called twice: no change.
    /// With another fence than the copy began with, or after [`adopt`](Self::adopt): `StaleEpoch`.
    async fn import(&self, shard: ShardId, fence: u64, items: &[ShardItem]) -> PortResult<()>;

    /// Ends the copy: the shard is this database's own, and counts `counts` more than it did. Called twice: no change.
    /// After a greater fence: `StaleEpoch`.
    async fn adopt(&self, shard: ShardId, fence: u64, counts: &LinkCounts) -> PortResult<()>;

    /// Gives up a shard that another node owns since `epoch`: from now on it is not read through older maps. Called
    /// twice: no change. After a greater fence, or while it is being copied to here: `StaleEpoch`.
    async fn retire(&self, shard: ShardId, fence: u64, epoch: Epoch) -> PortResult<()>;

    /// Counts `counts` less than before, because the shard was retired and is counted by its owner. Called twice: no
    /// change. After a greater fence: `StaleEpoch`.
    async fn discount(&self, shard: ShardId, fence: u64, counts: &LinkCounts) -> PortResult<()>;

    /// Removes a bounded part of a copy that was discounted or not adopted, behind the position `after`, and returns
    /// where to go on. `None`: nothing is left. A shard that is owned is left alone, and so is one after a greater
    /// fence: `StaleEpoch`.
    async fn drop_copy(
        &self,
        shard: ShardId,
        fence: u64,
        after: Option<&str>,
    ) -> PortResult<Option<Box<str>>>;
}

/// Something that a node keeps of a shard, under its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ShardItem {
    Link {
        id: LinkId,
        /// `None`: there is no row under this id.
        stored: Option<Box<StoredRow>>,
        /// Of the last link that had the key and was released.
        former_generation: Option<u32>,
    },
    /// The record of a request with an idempotency key.
    Request {
        owner: OwnerId,
        key: Box<str>,
        /// `None`: it is gone.
        record: Option<Box<IdempotencyRecord>>,
    },
    /// How many keys of this origin were released.
    Released { origin: KeyOrigin, count: u64 },
}

/// A link in any state with what an engine keeps beside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredRow {
    pub link: Link,
    /// Whether it ever redirected with a status that browsers keep.
    pub was_permanent: bool,
    pub clicks_spent: u64,
    /// Of the request that made it.
    pub token: Option<RequestToken>,
}

/// A part of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardPart {
    pub items: Vec<ShardItem>,
    /// `None`: this was the last.
    pub next: Option<Box<str>>,
    /// Rows that were read for it.
    pub scanned: u64,
}

/// What has changed, and by which numbers it is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedItems {
    pub items: Vec<ShardItem>,
    pub numbers: Vec<i64>,
    /// Whether nothing else was remembered when this was read.
    pub is_end: bool,
}
