//! The epochs from which on shards take writes, read once per commit group: only that thread changes them.

use std::collections::BTreeMap;

use curt_core::{Epoch, LinkId, ShardId, ShardMap};
use rusqlite::Connection;

#[derive(Debug, Default)]
pub(crate) struct Seals(Option<BTreeMap<u16, u64>>);

impl Seals {
    /// Whether a write to this link that was routed by `map` came to the shard's owner (L-4).
    pub(crate) fn admit(
        &mut self,
        connection: &Connection,
        map: &ShardMap,
        id: &LinkId,
    ) -> rusqlite::Result<bool> {
        let seals = self.known(connection)?;
        Ok(seals.is_empty() || is_open(seals, map, ShardId::of(id)))
    }

    /// Whether a write to something of this shard that was routed by `map` came to its owner.
    pub(crate) fn admit_shard(
        &mut self,
        connection: &Connection,
        map: &ShardMap,
        shard: ShardId,
    ) -> rusqlite::Result<bool> {
        Ok(is_open(self.known(connection)?, map, shard))
    }

    fn known(&mut self, connection: &Connection) -> rusqlite::Result<&BTreeMap<u16, u64>> {
        let seals = match self.0.take() {
            Some(seals) => seals,
            None => read(connection)?,
        };
        Ok(self.0.insert(seals))
    }

    pub(crate) fn put(
        &mut self,
        connection: &Connection,
        shard: ShardId,
        epoch: Epoch,
    ) -> rusqlite::Result<()> {
        self.0 = None;
        connection
            .prepare_cached(
                "INSERT INTO shard_seals (shard, epoch) VALUES (?1, ?2) \
                 ON CONFLICT (shard) DO UPDATE SET epoch = max(epoch, excluded.epoch)",
            )?
            .execute((shard.number(), epoch.0.cast_signed()))
            .map(drop)
    }
}

fn is_open(seals: &BTreeMap<u16, u64>, map: &ShardMap, shard: ShardId) -> bool {
    let lowest = seals.get(&shard.number());
    lowest.is_none_or(|lowest| map.epoch(shard).0 >= *lowest)
}

fn read(connection: &Connection) -> rusqlite::Result<BTreeMap<u16, u64>> {
    connection
        .prepare_cached("SELECT shard, epoch FROM shard_seals")?
        .query_map((), |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
        })?
        .collect()
}
