use async_trait::async_trait;

use super::{Replacement, ShardItem, StoredRow, Transfer, Transferred};
use crate::error::PortResult;
use crate::link::LinkState;
use crate::placement::ShardId;

/// A links database as a whole, so that it can be copied to another one, whichever engine each has. Optional.
///
/// - Exported are links in any state with all that is kept beside them, generations of released keys, records of requests
///   with idempotency keys, and how many keys were released. Links that lists show come in the order of their creation.
/// - Imported is an item as it is, with its generation, revision, spent clicks and token, and counted in the totals. One
///   without a link removes the link that is there, if that is the one whose key was released. A key that belongs to another
///   link stays with it (K-1). A shard that moved to another node is refused with
///   [`StaleEpoch`](crate::ErrorKind::StaleEpoch).
///
/// | from | to |
/// |---|---|
/// | [`follow_changes`](Self::follow_changes), if it is in use | |
/// | [`export_all`](Transfer::export_all) | [`import_all`](Transfer::import_all) |
/// | [`followed_changes`](Self::followed_changes), again and again | `import_all` |
/// | [`forget_followed`](Self::forget_followed) | |
/// | *no more writes* | |
/// | `followed_changes` to the end | `import_all` |
/// | [`stop_following`](Self::stop_following) | |
///
/// Every call can be repeated. What is about one shard, while others stay where they are, is
/// [`LinkShards`](super::LinkShards): the items are the same.
#[async_trait]
pub trait LinkTransfer: Transfer<LinkItem> {
    /// Remembers from now on, durably, what changes, for the copy with this number, which is [`FOLLOWER_MIN`] or more: when
    /// this returns, every change is either to be seen by [`export_all`](Transfer::export_all) or remembered. Called twice:
    /// no change. While another copy follows, or a shard moves: `StaleEpoch`. Shards do not begin to move meanwhile.
    async fn follow_changes(&self, follower: u64) -> PortResult<()>;

    /// Returns what has changed and was not [forgotten](Self::forget_followed), as it is now, a bounded number of items; how
    /// many keys were released is always among them. For another copy than the one that follows: `StaleEpoch`, because
    /// changes are lost to it.
    async fn followed_changes(&self, follower: u64) -> PortResult<FollowedChanges>;

    /// Forgets changes that [`followed_changes`](Self::followed_changes) returned, because they were imported. Called twice:
    /// no change.
    async fn forget_followed(&self, numbers: &[i64]) -> PortResult<()>;

    /// Remembers no more, and forgets what was remembered. `None`: for whichever copy. Called twice: no change. While
    /// another copy follows: `StaleEpoch`.
    async fn stop_following(&self, follower: Option<u64>) -> PortResult<()>;
}

/// The lowest number of a copy that follows changes: above the fences of movers of shards.
pub const FOLLOWER_MIN: u64 = 1 << 62;

/// Something that a links database keeps, and the shard that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinkItem {
    pub shard: ShardId,
    pub item: ShardItem,
}

/// What has changed, and by which numbers it is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedChanges {
    pub items: Vec<LinkItem>,
    pub numbers: Vec<i64>,
    /// Whether nothing else was remembered when this was read.
    pub is_end: bool,
}

impl LinkItem {
    /// `None`: the item does not tell its shard.
    #[must_use]
    pub fn new(item: ShardItem) -> Option<Self> {
        let shard = match &item {
            ShardItem::Link { id, .. } => ShardId::of(id),
            ShardItem::Request { owner, key, .. } => ShardId::of_request(*owner, key),
            ShardItem::Released { .. } => return None,
        };
        Some(Self { shard, item })
    }
}

impl Transferred for LinkItem {
    fn name(&self) -> Box<str> {
        match &self.item {
            ShardItem::Link { id, .. } => id.to_string().into(),
            ShardItem::Request { owner, key, .. } => format!("request {}:{key}", owner.0).into(),
            ShardItem::Released { origin, .. } => format!(
                "released keys of shard {}, {}",
                self.shard.number(),
                origin.name()
            )
            .into(),
        }
    }

    fn replaces(&self, there: &Self) -> Replacement {
        if self == there {
            return Replacement::Same;
        }
        match (&self.item, &there.item) {
            (ShardItem::Link { .. }, ShardItem::Link { .. }) => {
                replace_link(&self.item, &there.item)
            }
            (ShardItem::Request { record: new, .. }, ShardItem::Request { record: old, .. }) => {
                let age = |record: &super::IdempotencyRecord| {
                    (
                        record.plan.at,
                        record.plan.version,
                        record.outcome.is_some(),
                    )
                };
                match (new, old) {
                    (Some(new), Some(old)) if age(new) < age(old) => Replacement::Outdated,
                    _ => Replacement::Write,
                }
            }
            (ShardItem::Released { count: new, .. }, ShardItem::Released { count: old, .. })
                if new < old =>
            {
                Replacement::Outdated
            }
            _ => Replacement::Write,
        }
    }
}

fn replace_link(new: &ShardItem, old: &ShardItem) -> Replacement {
    let (Some(new_rank), Some(old_rank)) = (rank(new), rank(old)) else {
        return Replacement::Conflict;
    };
    match (stored(new), stored(old)) {
        (Some(new), Some(old)) if is_other_link(new, old) => Replacement::Conflict,
        _ if new_rank < old_rank => Replacement::Outdated,
        // The same state of a link is the same row; only the generation beside it may have been noted meanwhile.
        (Some(new), Some(old)) if new_rank == old_rank && new != old => Replacement::Conflict,
        _ => Replacement::Write,
    }
}

/// Whether two rows of one generation are links of different creations.
fn is_other_link(new: &StoredRow, old: &StoredRow) -> bool {
    let is_seeded = [new, old].map(|row| row.link.state == LinkState::Seeded);
    let is_same = (new.link.created_at, new.link.origin) == (old.link.created_at, old.link.origin);
    new.link.revision.generation == old.link.revision.generation
        && is_seeded == [false, false]
        && !is_same
}

fn stored(item: &ShardItem) -> Option<&StoredRow> {
    match item {
        ShardItem::Link { stored, .. } => stored.as_deref(),
        _ => None,
    }
}

/// How late in the life of a key this is: links of the key that are gone, a row, a link, its edits, its clicks.
fn rank(item: &ShardItem) -> Option<(u32, bool, bool, u32, u64)> {
    let ShardItem::Link {
        stored,
        former_generation,
        ..
    } = item
    else {
        return None;
    };
    let Some(row) = stored else {
        return Some((former_generation.unwrap_or(0), false, false, 0, 0));
    };
    let revision = row.link.revision;
    Some(match row.link.state {
        // A seed has the generation of the link before it.
        LinkState::Seeded => (revision.generation, true, false, revision.version, 0),
        // Not by the generation beside it, which may be noted before the row goes.
        _ => {
            let before = revision.generation.saturating_sub(1);
            (before, true, true, revision.version, row.clicks_spent)
        }
    })
}
