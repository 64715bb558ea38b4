//! The link store.
//!
//! Uniqueness is decided by one conditional insert against the primary key (K-1). Every other change names the revision
//! that it is for, or locks the row first. Inserts share statements (`queue.rs`).

mod change;
mod claim;
mod insert;
mod list;
mod once;
mod page;
mod queue;
mod record;
mod spend;
mod sql;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{
    ChangeReply, ClaimReply, InsertReply, InsertRequest, LinkCounts, LinkIndex, LinkStore,
    LinkTotals, ListPage, ListQuery, Released, SeededLinks, SpendReply,
};
use curt_core::{
    ErrorKind, KeyOrigin, Link, LinkId, LinkState, PortError, PortResult, Revision, UnixMillis,
};

use self::page::Position;
use self::queue::{Call, Queue};
use super::engine::{Engine, column};
use super::failure::BACKEND;
use super::schema::{LINKS, Tables};

const OP_INSERT: &str = "insert links";

pub(super) struct PostgresLinks {
    tables: Arc<Tables>,
    inserts: Arc<Queue>,
    /// Those with an `Idempotency-Key`, and how many there have been.
    inserts_once: Arc<Queue>,
    count_once: Arc<AtomicU64>,
}

impl PostgresLinks {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            tables: Arc::new(Tables::new(engine, &LINKS)),
            inserts: Arc::default(),
            inserts_once: Arc::default(),
            count_once: Arc::default(),
        }
    }

    /// The engine for what no request waits for.
    async fn background(&self) -> PortResult<Arc<Engine>> {
        Ok(self.tables.engine().await?.in_background())
    }
}

#[async_trait]
impl LinkStore for PostgresLinks {
    async fn insert(&self, request: InsertRequest) -> PortResult<InsertReply> {
        check_texts(OP_INSERT, &request)?;
        // Before the deadline begins: tables are made once, and take their time.
        self.tables.engine().await?;
        let tables = Arc::clone(&self.tables);
        let timeout = tables.write_timeout();
        match request.once {
            None => {
                let run = move |group| insert_group(Arc::clone(&tables), group);
                self.inserts.call(OP_INSERT, request, timeout, run).await
            }
            Some(_) => {
                let count = Arc::clone(&self.count_once);
                let run =
                    move |group| insert_group_once(Arc::clone(&tables), Arc::clone(&count), group);
                self.inserts_once
                    .call(OP_INSERT, request, timeout, run)
                    .await
            }
        }
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        const OP: &str = "read a link";
        let engine = self.tables.lookups().await?;
        let (domain, key) = (i64::from(id.domain.0), id.key.as_str());
        let row = engine.look_up(OP, sql::FIND, &[&domain, &key]).await?;
        row.map(|row| record::link_of(OP, &row)).transpose()
    }

    async fn update(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        const OP: &str = "update a link";
        if !matches!(link.state, LinkState::Active | LinkState::Disabled) {
            return Err(invalid(OP, "an edit can only enable or disable a link"));
        }
        check_link(OP, &link)?;
        change::update(self.tables.engine().await?, OP, &link, seen).await
    }

    async fn delete(
        &self,
        id: &LinkId,
        seen: Option<Revision>,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let engine = self.tables.engine().await?;
        change::delete(engine, "delete a link", id, seen, now).await
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        spend::spend(self.tables.engine().await?, id, seen).await
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        spend::spent(self.tables.engine().await?, id).await
    }

    async fn ping(&self) -> PortResult<()> {
        let engine = self.tables.engine().await?;
        engine.write("answer", sql::PING, &[]).await.map(drop)
    }

    async fn ping_reads(&self) -> PortResult<()> {
        const OP: &str = "answer a look-up";
        let engine = self.tables.lookups().await?;
        let row = engine.look_up(OP, sql::PING_READS, &[]).await?;
        let position = row.map(|row| column::<Option<i64>>(OP, &row, 0));
        if let Some(position) = position.transpose()?.flatten() {
            engine.note_primary(position);
        }
        Ok(())
    }
}

#[async_trait]
impl LinkIndex for PostgresLinks {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        let after = Position::before_page(query)
            .map_err(|()| invalid(list::OP, "the cursor is not one of this list"))?;
        let texts = query.search.iter().chain(&query.tags);
        check_no_nul(list::OP, texts.map(|text| &**text))?;
        list::list(self.tables.engine().await?, query, after).await
    }

    async fn expired(&self, now: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        change::expired(&*self.background().await?, now, limit).await
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        now: UnixMillis,
    ) -> PortResult<Vec<LinkId>> {
        const OP: &str = "purge links";
        let engine = self.background().await?;
        once::forget_old(&engine, OP, now).await?;
        change::purge(&engine, OP, batch, now).await
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<Released>> {
        change::release(&*self.background().await?, before, limit).await
    }
}

#[async_trait]
impl SeededLinks for PostgresLinks {
    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64> {
        claim::seed(&*self.background().await?, ids).await
    }

    async fn claim(&self, request: InsertRequest) -> PortResult<ClaimReply> {
        check_texts(claim::OP, &request)?;
        claim::claim(self.tables.engine().await?, &request).await
    }
}

#[async_trait]
impl LinkTotals for PostgresLinks {
    async fn counts(&self) -> PortResult<LinkCounts> {
        counts(self.tables.engine().await?).await
    }
}

async fn insert_group(tables: Arc<Tables>, group: Vec<Call>) {
    match tables.engine().await {
        Ok(engine) => insert::run(engine, group).await,
        Err(error) => insert::answer_all(group, error),
    }
}

async fn insert_group_once(tables: Arc<Tables>, count: Arc<AtomicU64>, group: Vec<Call>) {
    match tables.engine().await {
        Ok(engine) => once::run(engine, group, &count).await,
        Err(error) => insert::answer_all(group, error),
    }
}

async fn counts(engine: &Engine) -> PortResult<LinkCounts> {
    const OP: &str = "count links";
    let rows = engine.read(OP, sql::COUNTS, &[]).await?;
    let total = |index| -> PortResult<u64> {
        let sum: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, index))?;
        Ok(u64::try_from(sum).unwrap_or(0))
    };
    let mut created = Vec::new();
    for (index, origin) in KeyOrigin::ALL.into_iter().enumerate() {
        created.push((origin, total(index)?));
    }
    created.retain(|(_, count)| *count > 0);
    Ok(LinkCounts {
        created,
        live: total(7)?,
        deleted: total(8)?,
        deleted_from_ledger: total(9)?,
        released_from_ledger: total(10)?,
        seeded: total(11)?,
        lag: Duration::ZERO,
    })
}

/// One request that the engine cannot take would fail with everybody who shares its statement.
fn check_texts(op: &'static str, request: &InsertRequest) -> PortResult<()> {
    check_no_nul(op, request.once.iter().map(|once| &*once.key))?;
    request
        .links
        .iter()
        .try_for_each(|link| check_link(op, link))
}

fn check_link(op: &'static str, link: &Link) -> PortResult<()> {
    let texts = link.tags.iter().chain(&link.title);
    let texts = texts.chain(&link.password_hash);
    check_no_nul(op, texts.map(|text| &**text))
}

fn check_no_nul<'a>(op: &'static str, mut texts: impl Iterator<Item = &'a str>) -> PortResult<()> {
    match texts.any(|text| text.contains('\0')) {
        true => Err(invalid(op, "PostgreSQL keeps no text with a NUL in it")),
        false => Ok(()),
    }
}

fn invalid(op: &'static str, detail: &str) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, op, detail)
}
