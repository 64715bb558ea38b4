//! Copies of shards that move: what [`LinkShards`](curt_core::ports::LinkShards) says about moves.

use std::collections::BTreeMap;

use curt_core::ports::{ChangedItems, LinkCounts, ShardItem, ShardPart};
use curt_core::{Epoch, LinkId, PortError, PortResult, ShardId, ShardMap};

use super::Tables;
use super::rows::Changed;
use crate::BACKEND;

/// Rows that one export, or one part of a removal, looks at, and changes that are read at once.
const ROWS_AT_ONCE: usize = 1_000;

/// What is known of the shards that have moved, or are moving.
#[derive(Debug, Default)]
pub(super) struct Copies(BTreeMap<ShardId, ShardCopy>);

#[derive(Clone, Copy, Debug)]
struct ShardCopy {
    fence: u64,
    /// The epoch since which another node has owned it.
    retired: Epoch,
    state: CopyState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyState {
    /// Nothing is left of it.
    Gone,
    /// Not owned yet.
    Copying,
    Own,
    /// Another node's.
    Retired,
    /// Another node's, and not in the totals.
    Discounted,
}

impl Copies {
    /// Whether a map is too old to read this shard here.
    pub(super) fn is_retired(&self, map: &ShardMap, shard: ShardId) -> bool {
        let copy = self.0.get(&shard);
        copy.is_some_and(|copy| copy.retired > map.epoch(shard))
    }

    /// Whether a map is too old to read everything here.
    pub(super) fn is_any_retired(&self, map: &ShardMap) -> bool {
        self.0.keys().any(|shard| self.is_retired(map, *shard))
    }

    /// Whether what was released of a shard is in the totals.
    pub(super) fn is_counted(&self, shard: ShardId) -> bool {
        let copy = self.0.get(&shard);
        copy.is_none_or(|copy| matches!(copy.state, CopyState::Own | CopyState::Retired))
    }

    /// Leads a shard from one of `from` to `to`. `false`: it is there already. `None` counts as owned.
    fn lead(
        &mut self,
        op: &'static str,
        shard: ShardId,
        fence: u64,
        (from, to): (&[CopyState], CopyState),
    ) -> PortResult<bool> {
        let copy = self.0.entry(shard).or_insert(ShardCopy {
            fence: 0,
            retired: Epoch::default(),
            state: CopyState::Own,
        });
        let is_there = copy.state == to;
        if fence < copy.fence || !(is_there || from.contains(&copy.state)) {
            return Err(stale(op));
        }
        (copy.fence, copy.state) = (fence, to);
        Ok(!is_there)
    }
}

fn stale(op: &'static str) -> PortError {
    let mut refused = PortError::stale_epoch(BACKEND, op);
    refused.detail = "another mover has taken over, or the shard has another state".to_owned();
    refused
}

impl Tables {
    pub(super) fn track(&mut self, shard: ShardId, fence: u64) -> PortResult<()> {
        self.check_tracking(shard, fence)?;
        self.rows.tracked.insert(shard, fence);
        Ok(())
    }

    pub(super) fn stop_tracking(&mut self, shard: ShardId, fence: u64) -> PortResult<()> {
        self.check_tracking(shard, fence)?;
        self.rows.tracked.remove(&shard);
        self.rows
            .changes
            .retain(|_, changed| changed.shard() != shard);
        Ok(())
    }

    fn check_tracking(&self, shard: ShardId, fence: u64) -> PortResult<()> {
        match self.rows.tracked.get(&shard) {
            Some(known) if *known > fence => Err(stale("track changes of a shard")),
            _ => Ok(()),
        }
    }

    pub(super) fn export(&self, shard: ShardId, after: Option<&str>) -> ShardPart {
        let after = after.and_then(LinkId::parse);
        let (ids, next) = self.rows.ids_of(shard, after.as_ref(), ROWS_AT_ONCE);
        let mut items: Vec<ShardItem> = ids.iter().map(|id| self.rows.item_of(id)).collect();
        if next.is_none() {
            let released = self.rows.former_ids_of(shard);
            items.extend(released.iter().map(|id| self.rows.item_of(id)));
            let requests = self.records.names_of(shard);
            items.extend(requests.into_iter().map(|name| self.records.item_of(name)));
            items.extend(self.rows.released_of(shard));
        }
        ShardPart {
            scanned: ROWS_AT_ONCE as u64,
            items,
            next: next.map(|id| id.to_string().into()),
        }
    }

    pub(super) fn changes(&self, shard: ShardId) -> ChangedItems {
        let changes = self.rows.changes.iter();
        let own: Vec<_> = changes
            .filter(|(_, changed)| changed.shard() == shard)
            .take(ROWS_AT_ONCE)
            .collect();
        let item = |(_, changed): &(&i64, &Changed)| match changed {
            Changed::Link(id) => self.rows.item_of(id),
            Changed::Request(name) => self.records.item_of(name.clone()),
        };
        let mut items: Vec<ShardItem> = own.iter().map(item).collect();
        items.extend(self.rows.released_of(shard));
        ChangedItems {
            is_end: own.len() < ROWS_AT_ONCE,
            numbers: own.iter().map(|(number, _)| **number).collect(),
            items,
        }
    }

    pub(super) fn begin_import(
        &mut self,
        shard: ShardId,
        fence: u64,
        epoch: Epoch,
    ) -> PortResult<()> {
        const OP: &str = "import a shard";
        let copy = self.copies.0.entry(shard).or_insert(ShardCopy {
            fence: 0,
            retired: Epoch::default(),
            state: CopyState::Gone,
        });
        let is_free = matches!(copy.state, CopyState::Gone | CopyState::Copying);
        if fence < copy.fence || !is_free {
            return Err(stale(OP));
        }
        (copy.fence, copy.state) = (fence, CopyState::Copying);
        self.seals.put(shard, epoch);
        Ok(())
    }

    pub(super) fn import(
        &mut self,
        shard: ShardId,
        fence: u64,
        items: &[ShardItem],
    ) -> PortResult<()> {
        let copy = self.copies.0.get(&shard);
        if copy.is_none_or(|copy| copy.fence != fence || copy.state != CopyState::Copying) {
            return Err(stale("import a shard"));
        }
        for item in items {
            match item {
                ShardItem::Link {
                    id,
                    stored,
                    former_generation,
                } => self.rows.import(id, stored.as_deref(), *former_generation),
                ShardItem::Request { owner, key, record } => {
                    self.records
                        .import((*owner, key.clone()), record.as_deref());
                }
                ShardItem::Released { origin, count } => {
                    self.rows.import_released(shard, *origin, *count);
                }
            }
        }
        Ok(())
    }

    pub(super) fn adopt(
        &mut self,
        shard: ShardId,
        fence: u64,
        counts: &LinkCounts,
    ) -> PortResult<()> {
        let way = (&[CopyState::Copying][..], CopyState::Own);
        if self.copies.lead("adopt a shard", shard, fence, way)? {
            self.rows.offset.add(counts, 1);
        }
        Ok(())
    }

    pub(super) fn retire(&mut self, shard: ShardId, fence: u64, epoch: Epoch) -> PortResult<()> {
        const OP: &str = "retire a shard";
        let state = self.copies.0.get(&shard).map(|copy| copy.state);
        let is_past = matches!(state, Some(CopyState::Gone | CopyState::Discounted));
        let way = match state {
            // Done, and further on by now.
            Some(state) if is_past => (&[][..], state),
            _ => (&[CopyState::Own][..], CopyState::Retired),
        };
        self.copies.lead(OP, shard, fence, way)?;
        if let Some(copy) = self.copies.0.get_mut(&shard) {
            copy.retired = copy.retired.max(epoch);
        }
        Ok(())
    }

    pub(super) fn discount(
        &mut self,
        shard: ShardId,
        fence: u64,
        counts: &LinkCounts,
    ) -> PortResult<()> {
        let way = (&[CopyState::Retired][..], CopyState::Discounted);
        if self.copies.lead("discount a shard", shard, fence, way)? {
            self.rows.offset.add(counts, -1);
        }
        Ok(())
    }

    pub(super) fn drop_copy(
        &mut self,
        shard: ShardId,
        fence: u64,
        after: Option<&str>,
    ) -> PortResult<Option<Box<str>>> {
        let copy = self.copies.0.get_mut(&shard);
        let copy = copy.filter(|copy| {
            let is_left = matches!(
                copy.state,
                CopyState::Gone | CopyState::Copying | CopyState::Discounted
            );
            is_left && copy.fence <= fence
        });
        let copy = copy.ok_or_else(|| stale("drop a copy of a shard"))?;
        copy.fence = fence;
        let after = after.and_then(LinkId::parse);
        let (ids, next) = self.rows.ids_of(shard, after.as_ref(), ROWS_AT_ONCE);
        for id in &ids {
            self.rows.import(id, None, None);
        }
        if next.is_none() {
            for id in self.rows.former_ids_of(shard) {
                self.rows.import(&id, None, None);
            }
            for name in self.records.names_of(shard) {
                self.records.import(name, None);
            }
            self.rows.forget_released(shard);
            copy.state = CopyState::Gone;
        }
        Ok(next.map(|id| id.to_string().into()))
    }
}
