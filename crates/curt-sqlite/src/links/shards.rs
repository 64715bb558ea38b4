//! Shards that move to another node.

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{
    ChangedItems, LinkCounts, LinkShards, SeededDatabase, ShardItem, ShardPart,
};
use curt_core::{Epoch, KeyOrigin, LinkId, LinkState, PortError, PortResult, ShardId, ShardMap};
use rusqlite::Connection;

use super::{SqliteLinks, copies, record};
use crate::decode;
use crate::engine::writer::Work;
use crate::failure::BACKEND;

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

    async fn track_changes(&self, shard: ShardId, fence: u64) -> PortResult<()> {
        let track = move |work: &mut Work<'_>| copies::track(work, shard, fence);
        self.write_fenced("track changes of a shard", track).await
    }

    async fn stop_tracking(&self, shard: ShardId, fence: u64) -> PortResult<()> {
        let stop = move |work: &mut Work<'_>| copies::stop_tracking(work, shard, fence);
        self.write_fenced("track changes of a shard", stop).await
    }

    async fn export(&self, shard: ShardId, after: Option<&str>) -> PortResult<ShardPart> {
        const OP: &str = "export a shard";
        let after = position(OP, after)?;
        self.db
            .readers
            .scan_in_background(OP, move |connection| {
                copies::export(connection, shard, after.as_ref())
            })
            .await
    }

    async fn changes(&self, shard: ShardId) -> PortResult<ChangedItems> {
        self.db
            .readers
            .scan_in_background("read changes of a shard", move |connection| {
                copies::changes(connection, shard)
            })
            .await
    }

    async fn forget_changes(&self, changes: &ChangedItems) -> PortResult<()> {
        let numbers = changes.numbers.clone();
        self.db
            .writer
            .write("forget changes of a shard", numbers.len(), move |work| {
                copies::forget_changes(work.connection, &numbers)
            })
            .await
    }

    async fn begin_import(&self, shard: ShardId, fence: u64, epoch: Epoch) -> PortResult<()> {
        let begin = move |work: &mut Work<'_>| copies::begin_import(work, shard, fence, epoch);
        self.write_fenced("import a shard", begin).await
    }

    async fn import(&self, shard: ShardId, fence: u64, items: &[ShardItem]) -> PortResult<()> {
        let items = items.to_vec();
        let import = move |work: &mut Work<'_>| copies::import(work, shard, fence, &items);
        self.write_fenced("import a shard", import).await
    }

    async fn adopt(&self, shard: ShardId, fence: u64, counts: &LinkCounts) -> PortResult<()> {
        let counts = counts.clone();
        let adopt = move |work: &mut Work<'_>| copies::adopt(work, shard, fence, &counts);
        self.write_fenced("adopt a shard", adopt).await
    }

    async fn retire(&self, shard: ShardId, fence: u64, epoch: Epoch) -> PortResult<()> {
        let retire = move |work: &mut Work<'_>| copies::retire(work, shard, fence, epoch);
        self.write_fenced("retire a shard", retire).await
    }

    async fn discount(&self, shard: ShardId, fence: u64, counts: &LinkCounts) -> PortResult<()> {
        let counts = counts.clone();
        let discount = move |work: &mut Work<'_>| copies::discount(work, shard, fence, &counts);
        self.write_fenced("discount a shard", discount).await
    }

    async fn drop_copy(
        &self,
        shard: ShardId,
        fence: u64,
        after: Option<&str>,
    ) -> PortResult<Option<Box<str>>> {
        const OP: &str = "drop a copy of a shard";
        let after = position(OP, after)?;
        let drop = move |work: &mut Work<'_>| copies::drop_copy(work, shard, fence, after.as_ref());
        let next = self.db.writer.write(OP, 1, drop).await?;
        let next = next.ok_or_else(|| refused(OP))?;
        Ok(next.map(|id| id.to_string().into()))
    }
}

impl SqliteLinks {
    /// Runs a write that says whether it was let in.
    async fn write_fenced(
        &self,
        op: &'static str,
        write: impl FnMut(&mut Work<'_>) -> rusqlite::Result<bool> + Send + 'static,
    ) -> PortResult<()> {
        match self.db.writer.write(op, 1, write).await? {
            true => Ok(()),
            false => Err(refused(op)),
        }
    }
}

fn refused(op: &'static str) -> PortError {
    let mut refused = PortError::stale_epoch(BACKEND, op);
    refused.detail = "another mover has taken over, or the shard has another state".to_owned();
    refused
}

fn position(op: &'static str, text: Option<&str>) -> PortResult<Option<LinkId>> {
    let parse = |text| {
        let id = LinkId::parse(text);
        id.ok_or_else(|| super::invalid(op, "the position is not one of this database"))
    };
    text.map(parse).transpose()
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

/// How many keys of an origin were released, of one shard or of all that are counted here.
pub(super) fn released(
    connection: &Connection,
    shard: Option<ShardId>,
    origin: KeyOrigin,
) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(
            "SELECT coalesce(sum(count), 0) FROM released_keys WHERE origin = ?2 AND CASE WHEN ?1 IS NULL \
             THEN shard NOT IN (SELECT shard FROM shard_copies WHERE state IN (1, 4)) ELSE shard = ?1 END",
        )?
        .query_row((shard.map(ShardId::number), origin as u8), |row| {
            Ok(row.get::<_, i64>(0)?.cast_unsigned())
        })
}
