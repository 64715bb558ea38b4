//! How many keys were released: here by key, and by shard where that was imported.

use std::collections::BTreeMap;

use curt_core::ports::{LinkItem, Replacement, ShardItem, Transferred as _};
use curt_core::{KeyOrigin, PortResult, ShardId};

use super::export::RowName;
use super::{OP_EXPORT, OP_IMPORT, cql};
use crate::failure::corrupt;
use crate::links::CassandraLinks;
use crate::links::record::FORMER;
use crate::pause::pause;
use crate::statement::Decided;

/// The domain of rows that are not of a link.
const TOTALS_DOMAIN: i64 = -1;

/// Released keys by shard and origin.
pub(super) type ReleasedKeys = BTreeMap<(u16, i8), i64>;

impl CassandraLinks {
    /// Reads all rows.
    pub(super) async fn count_released(&self) -> PortResult<ReleasedKeys> {
        let mut totals = ReleasedKeys::new();
        let mut hash = i64::MIN;
        loop {
            let (rows, last) = self.engine.list(OP_EXPORT, self.scan_rows(hash)).await?;
            for row in rows {
                let Some(released) = row.released.as_ref().filter(|all| !all.is_empty()) else {
                    continue;
                };
                let shard = match row.name()? {
                    RowName::Link(id) => ShardId::of(&id).number(),
                    RowName::Totals(shard) => shard,
                };
                for (origin, count) in released.iter().filter(|(origin, _)| **origin != FORMER) {
                    *totals.entry((shard, *origin)).or_default() += count;
                }
            }
            match last {
                Some(last) => hash = last,
                None => return Ok(totals),
            }
        }
    }

    pub(super) async fn released_items(&self) -> PortResult<Vec<LinkItem>> {
        let totals = self.count_released().await?.into_iter();
        let item = |((shard, origin), count): ((u16, i8), i64)| {
            let wrong = || corrupt(OP_EXPORT, "totals of released keys");
            let shard = ShardId::new(shard).ok_or_else(wrong)?;
            let origin = KeyOrigin::from_stored(origin.cast_unsigned()).ok_or_else(wrong)?;
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
        let there = known.get(&(shard.number(), origin as i8)).copied();
        let there = there.unwrap_or(0);
        let decided = item.replaces(&LinkItem {
            shard,
            item: ShardItem::Released {
                origin,
                count: there.cast_unsigned(),
            },
        });
        if decided == Replacement::Write {
            self.add_released(shard, origin, count.cast_signed() - there)
                .await?;
        }
        Ok(decided)
    }

    async fn add_released(&self, shard: ShardId, origin: KeyOrigin, more: i64) -> PortResult<()> {
        let (namespace, key) = (&*self.namespace, shard.number().to_string());
        loop {
            let name = (namespace, TOTALS_DOMAIN, &key);
            let found: Option<(Option<BTreeMap<i8, i64>>,)> =
                self.engine.first(OP_IMPORT, cql::GET_TOTALS, name).await?;
            let before = found.map(|(totals,)| totals.unwrap_or_default());
            let mut after = before.clone().unwrap_or_default();
            *after.entry(origin as i8).or_default() += more;
            let decided = match before {
                None => {
                    let values = (namespace, TOTALS_DOMAIN, &key, &after);
                    self.engine
                        .decide(OP_IMPORT, cql::INSERT_TOTALS, values)
                        .await?
                }
                Some(before) => {
                    let values = (&after, namespace, TOTALS_DOMAIN, &key, before);
                    self.engine
                        .decide(OP_IMPORT, cql::UPDATE_TOTALS, values)
                        .await?
                }
            };
            match decided {
                Decided::Applied => return Ok(()),
                Decided::Refused => pause().await,
                // What is added would be added twice: the caller reads the totals again.
                Decided::Unknown(error) => return Err(error),
            }
        }
    }
}
