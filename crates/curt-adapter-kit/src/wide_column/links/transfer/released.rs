//! How many keys were released: here by key, and by shard where that was imported.

use std::collections::BTreeMap;

use curt_core::ports::{LinkItem, Replacement, ShardItem, Transferred as _};
use curt_core::{ErrorKind, KeyOrigin, PortError, PortResult, ShardId};

use super::{OP_EXPORT, OP_IMPORT};
use crate::wide_column::links::WideLinks;
use crate::wide_column::links::record::{FORMER, RowName};
use crate::wide_column::{Decided, pause};

/// Released keys by shard and origin.
pub(super) type ReleasedKeys = BTreeMap<(ShardId, i8), i64>;

impl WideLinks {
    /// Reads all rows.
    pub(super) async fn count_released(&self) -> PortResult<ReleasedKeys> {
        let mut totals = ReleasedKeys::new();
        let mut after: Option<Box<str>> = None;
        loop {
            let scan = self.rows.scan(OP_EXPORT, after.as_deref(), true);
            let part = self.deadlines.list(OP_EXPORT, scan).await?;
            for row in part.rows {
                let shard = match &row.name {
                    RowName::Link(id) => ShardId::of(id),
                    RowName::Released(shard) => *shard,
                };
                let released = row.released.into_iter();
                for (origin, count) in released.filter(|(origin, _)| *origin != FORMER) {
                    *totals.entry((shard, origin)).or_default() += count;
                }
            }
            after = part.next;
            if after.is_none() {
                return Ok(totals);
            }
        }
    }

    pub(super) async fn released_items(&self) -> PortResult<Vec<LinkItem>> {
        let totals = self.count_released().await?.into_iter();
        let item = |((shard, origin), count): ((ShardId, i8), i64)| {
            let origin = KeyOrigin::from_stored(origin.cast_unsigned()).ok_or_else(|| {
                let detail = "a row holds what this version does not write: released keys";
                let backend = self.deadlines.backend;
                PortError::new(ErrorKind::Corrupt, backend, OP_EXPORT, detail)
            })?;
            let count = count.cast_unsigned();
            let item = ShardItem::Released { origin, count };
            Ok(LinkItem { shard, item })
        };
        totals.filter(|(_, count)| *count > 0).map(item).collect()
    }

    /// Notes that so many keys of the shard were released, `known` being how many are known to be.
    pub(super) async fn import_released(
        &self,
        item: &LinkItem,
        known: &ReleasedKeys,
    ) -> PortResult<Replacement> {
        let ShardItem::Released { origin, count } = item.item else {
            return Ok(Replacement::Same);
        };
        let shard = item.shard;
        let there = known.get(&(shard, origin as i8)).copied();
        let there = there.unwrap_or(0);
        let decided = item.replaces(&LinkItem {
            shard,
            item: ShardItem::Released {
                origin,
                count: there.cast_unsigned(),
            },
        });
        if decided == Replacement::Write {
            let add = self.add_released(shard, origin, count.cast_signed() - there);
            self.deadlines.change(OP_IMPORT, add).await?;
        }
        Ok(decided)
    }

    async fn add_released(&self, shard: ShardId, origin: KeyOrigin, more: i64) -> PortResult<()> {
        loop {
            let before = self.rows.get_released(OP_IMPORT, shard).await?;
            let mut after = before.clone().unwrap_or_default();
            *after.entry(origin as i8).or_default() += more;
            let put = self
                .rows
                .put_released(OP_IMPORT, shard, before.as_ref(), &after);
            match put.await? {
                Decided::Applied => return Ok(()),
                Decided::Refused => pause().await,
                // What is added would be added twice: the caller reads the totals again.
                Decided::Unknown(error) => return Err(error),
            }
        }
    }
}
