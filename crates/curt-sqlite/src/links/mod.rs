//! The link store.
//!
//! Every change reads the row first, decides, and writes by row id: nobody else can write in between, so that needs no
//! conditions in the statements.

mod change;
mod claim;
mod copies;
mod generations;
mod idempotency;
mod list;
mod page;
mod record;
mod shards;
mod spend;
mod totals;
mod transfer;

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{
    ChangeReply, Inserted, LinkChange, LinkCounts, LinkIndex, LinkStore, LinkTotals, ListOrder,
    ListPage, ListQuery, RequestToken, SeededLinks, SpendReply,
};
use curt_core::{
    ErrorKind, Link, LinkId, OwnerId, PortError, PortResult, Revision, ShardId, ShardMap,
    UnixMillis,
};

use super::Sqlite;
use super::disk;
use super::engine::writer::Work;
use super::failure::{BACKEND, disk_full};

/// Reads how many live links a file has.
pub(super) fn count_live(connection: &rusqlite::Connection) -> rusqlite::Result<u64> {
    totals::read(connection).map(|counts| counts.live)
}

/// What the disk must have for creates to go on: about what a bulk of links takes in the write-ahead log.
const FREE_BYTES_MIN: u64 = 1024 * 1024;

pub(super) struct SqliteLinks {
    db: Arc<Sqlite>,
    /// Writes are routed by it.
    map: Arc<ShardMap>,
}

impl SqliteLinks {
    pub(super) fn new(db: Arc<Sqlite>) -> Self {
        let map = Arc::default();
        Self { db, map }
    }

    pub(super) fn with_map(self, map: Arc<ShardMap>) -> Self {
        Self { map, ..self }
    }

    /// Runs `write` unless another node owns one of the links.
    async fn write_owned<T: Send + 'static>(
        &self,
        op: &'static str,
        ids: Vec<LinkId>,
        mut write: impl FnMut(&mut Work<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> PortResult<T> {
        let map = Arc::clone(&self.map);
        let done = self.db.writer.write(op, ids.len(), move |work| {
            for id in &ids {
                if !work.seals.admit(work.connection, &map, id)? {
                    return Ok(None);
                }
            }
            write(work).map(Some)
        });
        let done = done.await?;
        done.ok_or_else(|| PortError::stale_epoch(BACKEND, op))
    }
}

impl SqliteLinks {
    /// Runs `write` unless another node owns the shard.
    async fn write_owned_shard<T: Send + 'static>(
        &self,
        op: &'static str,
        shard: ShardId,
        mut write: impl FnMut(&mut Work<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> PortResult<T> {
        let map = Arc::clone(&self.map);
        let done = self.db.writer.write(op, 1, move |work| {
            match work.seals.admit_shard(work.connection, &map, shard)? {
                true => write(work).map(Some),
                false => Ok(None),
            }
        });
        let done = done.await?;
        done.ok_or_else(|| PortError::stale_epoch(BACKEND, op))
    }

    /// Runs a read of what belongs to `id`, unless another node owns it and may have changed it.
    fn read_owned<T>(
        &self,
        op: &'static str,
        id: &LinkId,
        read: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> PortResult<T> {
        let read = self.db.readers.look_up(op, |connection| {
            match copies::is_retired(connection, &self.map, ShardId::of(id))? {
                true => Ok(None),
                false => read(connection).map(Some),
            }
        })?;
        read.ok_or_else(|| PortError::stale_epoch(BACKEND, op))
    }
}

#[async_trait]
impl LinkStore for SqliteLinks {
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        let ids = links.iter().map(|link| link.id.clone()).collect();
        let insert_all = move |work: &mut Work<'_>| {
            let insert = |link| record::insert_if_absent(work, link, token);
            links.iter().map(insert).collect()
        };
        self.write_owned("insert links", ids, insert_all).await
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        self.read_owned("read a link", id, |connection| {
            Ok(record::find(connection, id)?.map(|stored| stored.link))
        })
    }

    async fn update_at(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        const OP: &str = "update a link";
        if !link.state.is_kept() {
            return Err(invalid(
                OP,
                "an edit cannot make a tombstone or a seeded row",
            ));
        }
        let ids = vec![link.id.clone()];
        let update = move |work: &mut Work<'_>| change::update(work, &link, seen);
        self.write_owned(OP, ids, update).await
    }

    async fn hand_over_at(
        &self,
        id: &LinkId,
        seen: Revision,
        owner: OwnerId,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let (id, ids) = (id.clone(), vec![id.clone()]);
        let give = move |work: &mut Work<'_>| change::hand_over(work, &id, seen, (owner, now));
        self.write_owned("hand over a link", ids, give).await
    }

    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let (id, ids) = (id.clone(), vec![id.clone()]);
        let delete = move |work: &mut Work<'_>| change::delete(work, &id, seen, now);
        self.write_owned("delete a link", ids, delete).await
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        let (id, ids) = (id.clone(), vec![id.clone()]);
        let spend = move |work: &mut Work<'_>| spend::spend(work.connection, &id, seen);
        self.write_owned("spend a click", ids, spend).await
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        self.read_owned("count spent clicks", id, |connection| {
            spend::spent(connection, id)
        })
    }

    async fn ping(&self) -> PortResult<()> {
        const OP: &str = "answer";
        self.db
            .writer
            .write(OP, 1, |work| {
                work.counters.add(totals::PINGS, 1);
                Ok(())
            })
            .await?;
        self.db.readers.look_up(OP, totals::read).map(drop)?;
        // One page fits into the log after each checkpoint, also on a full disk, and a create does not.
        match disk::free_bytes(&self.db.path) {
            Some(free) if free < FREE_BYTES_MIN => Err(disk_full(OP, &self.db.path)),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl LinkIndex for SqliteLinks {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        const OP: &str = "list links";
        let position = page::Position::of_query(query)
            .map_err(|()| invalid(OP, "the cursor is not one of this list"))?;
        let (query, map) = (query.clone(), Arc::clone(&self.map));
        let listed = self.db.readers.scan(OP, move |connection| {
            match copies::is_any_retired(connection, &map)? {
                true => Ok(None),
                false => list::list(connection, &query, position).map(Some),
            }
        });
        let listed = listed.await?;
        listed.ok_or_else(|| PortError::stale_epoch(BACKEND, OP))
    }

    async fn cursor_behind(&self, link: &Link, order: ListOrder) -> PortResult<Option<Box<str>>> {
        let after = match order {
            ListOrder::KeyRising | ListOrder::KeyFalling => Some(link.id.to_string()),
            ListOrder::NewestFirst | ListOrder::OldestFirst => {
                let row = self.db.readers.look_up("find a link", |connection| {
                    record::find(connection, &link.id)
                })?;
                row.map(|stored| stored.row_id.to_string())
            }
        };
        Ok(after.map(|after| page::cursor(order, &after)))
    }

    async fn ended(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        self.db
            .readers
            .scan_in_background("find ended links", move |connection| {
                change::ended(connection, before, limit)
            })
            .await
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        before: UnixMillis,
        now: UnixMillis,
    ) -> PortResult<Vec<LinkChange>> {
        let (batch, map) = (batch.to_vec(), Arc::clone(&self.map));
        self.db
            .writer
            .write("purge links", batch.len(), move |work| {
                change::purge(work, &map, &batch, (before, now))
            })
            .await
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkChange>> {
        let map = Arc::clone(&self.map);
        self.db
            .writer
            .write("release keys", limit, move |work| {
                change::release(work, &map, before, limit)
            })
            .await
    }
}

#[async_trait]
impl SeededLinks for SqliteLinks {
    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64> {
        let (ids, map) = (ids.to_vec(), Arc::clone(&self.map));
        self.db
            .writer
            .write("seed links", ids.len(), move |work| {
                claim::seed(work, &map, &ids)
            })
            .await
    }

    async fn claim(&self, links: Vec<Link>) -> PortResult<Vec<Link>> {
        let map = Arc::clone(&self.map);
        self.db
            .writer
            .write("claim links", links.len(), move |work| {
                claim::claim(work, &map, &links)
            })
            .await
    }
}

#[async_trait]
impl LinkTotals for SqliteLinks {
    async fn counts(&self) -> PortResult<LinkCounts> {
        self.db.readers.look_up("count links", totals::read)
    }
}

fn invalid(op: &'static str, detail: &str) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, op, detail)
}
