//! What moves with a shard, and what is remembered and counted of it.

use std::collections::BTreeMap;
use std::ops::Bound;

use curt_core::ports::{LinkCounts, ShardItem, StoredRow};
use curt_core::{KeyOrigin, LinkId, OwnerId, ShardId};

use super::{Row, Rows};

/// Something of a shard that changed.
#[derive(Clone, Debug)]
pub(in crate::link_store) enum Changed {
    Link(LinkId),
    Request((OwnerId, Box<str>)),
}

impl Changed {
    pub(in crate::link_store) fn shard(&self) -> ShardId {
        match self {
            Self::Link(id) => ShardId::of(id),
            Self::Request((owner, key)) => ShardId::of_request(*owner, key),
        }
    }
}

/// A difference of totals.
#[derive(Clone, Debug, Default)]
pub(in crate::link_store) struct Offset {
    pub(super) created: BTreeMap<u8, i64>,
    pub(super) live: i64,
    pub(super) deleted: i64,
    pub(super) deleted_from_ledger: i64,
    pub(super) seeded: i64,
}

impl Offset {
    pub(in crate::link_store) fn add(&mut self, counts: &LinkCounts, sign: i64) {
        let signed = |count: u64| count.cast_signed() * sign;
        for (origin, count) in &counts.created {
            *self.created.entry(*origin as u8).or_default() += signed(*count);
        }
        self.live += signed(counts.live);
        self.deleted += signed(counts.deleted);
        self.deleted_from_ledger += signed(counts.deleted_from_ledger);
        self.seeded += signed(counts.seeded);
    }
}

impl Rows {
    /// Everything that is kept under an id.
    pub(in crate::link_store) fn item_of(&self, id: &LinkId) -> ShardItem {
        let stored = self.get(id).map(|row| {
            Box::new(StoredRow {
                link: row.link.clone(),
                was_permanent: row.was_permanent,
                clicks_spent: row.clicks_spent,
                token: row.token,
            })
        });
        ShardItem::Link {
            id: id.clone(),
            stored,
            former_generation: self.former_generation(id),
        }
    }

    /// Puts, or removes, everything that is kept under an id, and leaves the totals as they are.
    pub(in crate::link_store) fn import(
        &mut self,
        id: &LinkId,
        stored: Option<&StoredRow>,
        former_generation: Option<u32>,
    ) {
        let counted = |rows: &Self| {
            [
                rows.live,
                rows.deleted,
                rows.deleted_from_ledger,
                rows.seeds.len() as u64,
            ]
            .map(u64::cast_signed)
        };
        let before = counted(self);
        match stored {
            Some(stored) => self.put(Row {
                link: stored.link.clone(),
                was_permanent: stored.was_permanent,
                clicks_spent: stored.clicks_spent,
                token: stored.token,
            }),
            None => self.remove(id),
        }
        let after = counted(self);
        self.offset.live -= after[0] - before[0];
        self.offset.deleted -= after[1] - before[1];
        self.offset.deleted_from_ledger -= after[2] - before[2];
        self.offset.seeded -= after[3] - before[3];
        match former_generation {
            Some(former) => self.former_generations.insert(id.clone(), former),
            None => self.former_generations.remove(id),
        };
    }

    /// The ids of a shard among the next rows behind `after`, and the last row that was looked at, if there are more.
    pub(in crate::link_store) fn ids_of(
        &self,
        shard: ShardId,
        after: Option<&LinkId>,
        rows: usize,
    ) -> (Vec<LinkId>, Option<LinkId>) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.by_id.range::<LinkId, _>((from, Bound::Unbounded));
        let looked_at: Vec<&LinkId> = range.map(|(id, _)| id).take(rows).collect();
        let last = looked_at.last().filter(|_| looked_at.len() == rows);
        let own = looked_at.iter().filter(|id| ShardId::of(id) == shard);
        (
            own.map(|id| (*id).clone()).collect(),
            last.map(|id| (*id).clone()),
        )
    }

    /// The ids of a shard under which links were released.
    pub(in crate::link_store) fn former_ids_of(&self, shard: ShardId) -> Vec<LinkId> {
        let ids = self.former_generations.keys();
        ids.filter(|id| ShardId::of(id) == shard).cloned().collect()
    }

    pub(in crate::link_store) fn released_of(&self, shard: ShardId) -> Vec<ShardItem> {
        let counts = KeyOrigin::ALL.map(|origin| (origin, self.released.get(&(shard, origin))));
        let counts = counts
            .into_iter()
            .filter_map(|(origin, count)| Some((origin, *count?)));
        counts
            .map(|(origin, count)| ShardItem::Released { origin, count })
            .collect()
    }

    pub(in crate::link_store) fn import_released(
        &mut self,
        shard: ShardId,
        origin: KeyOrigin,
        count: u64,
    ) {
        self.released.insert((shard, origin), count);
    }

    pub(in crate::link_store) fn forget_released(&mut self, shard: ShardId) {
        self.released.retain(|(known, _), _| *known != shard);
    }
}
