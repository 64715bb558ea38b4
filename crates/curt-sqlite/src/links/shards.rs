//! Shards that move to another node.

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{LinkCounts, LinkShards, SeededDatabase};
use curt_core::{Epoch, KeyOrigin, LinkId, LinkState, PortResult, ShardId, ShardMap};
use rusqlite::Connection;

use super::{SqliteLinks, record};
use crate::decode;

#[async_trait]
impl LinkShards for SqliteLinks {
    fn routed_by(&self, map: Arc<ShardMap>) -> Arc<dyn SeededDatabase> {
        let db = Arc::clone(&self.db);
        Arc::new(Self { db, map })
    }

    async fn identity(&self) -> PortResult<Box<str>> {
        self.db
            .writer
            .write("read the identity", 1, |work| {
                work.connection.execute(
                    "INSERT INTO node_identity (one, identity) SELECT 1, lower(hex(randomblob(16))) WHERE true \
                     ON CONFLICT (one) DO NOTHING",
                    (),
                )?;
                let read = "SELECT identity FROM node_identity";
                let identity: String = work.connection.query_row(read, (), |row| row.get(0))?;
                Ok(identity.into_boxed_str())
            })
            .await
    }

    async fn seal(&self, shard: ShardId, epoch: Epoch) -> PortResult<()> {
        self.db
            .writer
            .write("seal a shard", 1, move |work| {
                work.seals.put(work.connection, shard, epoch)
            })
            .await
    }

    async fn shard_counts(&self, shard: ShardId) -> PortResult<LinkCounts> {
        self.db
            .readers
            .scan_in_background("count links", move |connection| count(connection, shard))
            .await
    }
}

/// Reads all links: there is no index by shard, which every create would pay for.
fn count(connection: &Connection, shard: ShardId) -> rusqlite::Result<LinkCounts> {
    let mut counts = LinkCounts::default();
    let mut created = KeyOrigin::ALL.map(|origin| (origin, 0));
    let mut statement =
        connection.prepare_cached("SELECT domain, key, state, origin FROM links")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        if ShardId::of(&record::id_of(row)?) != shard {
            continue;
        }
        let state = decode::number(row, 2, LinkState::from_stored)?;
        let origin = decode::number(row, 3, KeyOrigin::from_stored)?;
        match state {
            LinkState::Active | LinkState::Disabled => counts.live += 1,
            LinkState::Tombstone | LinkState::Deleted | LinkState::DeletedDisabled => {
                counts.deleted += 1;
                counts.deleted_from_ledger += u64::from(origin == KeyOrigin::Ledger);
            }
            LinkState::Seeded => {
                counts.seeded += 1;
                continue;
            }
        }
        let created = created.iter_mut().find(|(known, _)| *known == origin);
        created.into_iter().for_each(|(_, count)| *count += 1);
    }
    for (origin, count) in &mut created {
        *count += released(connection, Some(shard), *origin)?;
    }
    counts.created = created
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    counts.released_from_ledger = released(connection, Some(shard), KeyOrigin::Ledger)?;
    Ok(counts)
}

pub(super) fn count_released(
    connection: &Connection,
    id: &LinkId,
    origin: KeyOrigin,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO released_keys (shard, origin, count) VALUES (?1, ?2, 1) \
             ON CONFLICT (shard, origin) DO UPDATE SET count = count + 1",
        )?
        .execute((ShardId::of(id).number(), origin as u8))
        .map(drop)
}

/// How many keys of an origin were released, of one shard or of all.
pub(super) fn released(
    connection: &Connection,
    shard: Option<ShardId>,
    origin: KeyOrigin,
) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(
            "SELECT coalesce(sum(count), 0) FROM released_keys \
             WHERE shard = coalesce(?1, shard) AND origin = ?2",
        )?
        .query_row((shard.map(ShardId::number), origin as u8), |row| {
            Ok(row.get::<_, i64>(0)?.cast_unsigned())
        })
}
