//! The link store.
//!
//! Every change reads the row first, decides, and writes by row id: nobody else can write in between, so that needs no
//! conditions in the statements.

mod change;
mod claim;
mod generations;
mod idempotency;
mod list;
mod page;
mod record;
mod spend;
mod totals;

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{
    ChangeReply, Inserted, LinkChange, LinkCounts, LinkIndex, LinkStore, LinkTotals, ListPage,
    ListQuery, RequestToken, SeededLinks, SpendReply,
};
use curt_core::{ErrorKind, Link, LinkId, LinkState, PortError, PortResult, Revision, UnixMillis};

use super::Sqlite;
use super::failure::BACKEND;

pub(super) struct SqliteLinks {
    db: Arc<Sqlite>,
}

impl SqliteLinks {
    pub(super) fn new(db: Arc<Sqlite>) -> Self {
        Self { db }
    }
}

#[async_trait]
impl LinkStore for SqliteLinks {
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        self.db
            .writer
            .write("insert links", links.len(), move |work| {
                let insert = |link| record::insert_if_absent(work, link, token);
                links.iter().map(insert).collect()
            })
            .await
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        self.db.readers.look_up("read a link", |connection| {
            Ok(record::find(connection, id)?.map(|stored| stored.link))
        })
    }

    async fn update_at(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        const OP: &str = "update a link";
        if !matches!(link.state, LinkState::Active | LinkState::Disabled) {
            return Err(invalid(OP, "an edit can only enable or disable a link"));
        }
        self.db
            .writer
            .write(OP, 1, move |work| change::update(work, &link, seen))
            .await
    }

    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let id = id.clone();
        self.db
            .writer
            .write("delete a link", 1, move |work| {
                change::delete(work, &id, seen, now)
            })
            .await
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        let id = id.clone();
        self.db
            .writer
            .write("spend a click", 1, move |work| {
                spend::spend(work.connection, &id, seen)
            })
            .await
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        self.db.readers.look_up("count spent clicks", |connection| {
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
        self.db.readers.look_up(OP, totals::read).map(drop)
    }
}

#[async_trait]
impl LinkIndex for SqliteLinks {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        const OP: &str = "list links";
        let position = page::Position::of_query(query)
            .map_err(|()| invalid(OP, "the cursor is not one of this list"))?;
        let query = query.clone();
        self.db
            .readers
            .scan(OP, move |connection| {
                list::list(connection, &query, position)
            })
            .await
    }

    async fn expired(&self, now: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        self.db
            .readers
            .scan_in_background("find expired links", move |connection| {
                change::expired(connection, now, limit)
            })
            .await
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        now: UnixMillis,
    ) -> PortResult<Vec<LinkChange>> {
        let batch = batch.to_vec();
        self.db
            .writer
            .write("purge links", batch.len(), move |work| {
                change::purge(work, &batch, now)
            })
            .await
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkChange>> {
        self.db
            .writer
            .write("release keys", limit, move |work| {
                change::release(work, before, limit)
            })
            .await
    }
}

#[async_trait]
impl SeededLinks for SqliteLinks {
    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64> {
        let ids = ids.to_vec();
        self.db
            .writer
            .write("seed links", ids.len(), move |work| claim::seed(work, &ids))
            .await
    }

    async fn claim(&self, links: Vec<Link>) -> PortResult<Vec<Link>> {
        self.db
            .writer
            .write("claim links", links.len(), move |work| {
                claim::claim(work, &links)
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
