//! The link store.
//!
//! Uniqueness is decided by one conditional insert against the primary key (K-1). Every other change names the revision
//! that it is for, or locks the row first. Inserts share statements (`queue.rs`), and so do look-ups (`lookups`). Every
//! write of a link tells at which epoch it was routed, and does nothing where the shard has another owner by now
//! (`shards.rs`).

mod change;
mod claim;
mod copies;
mod dialect;
mod distributed;
mod idempotency;
mod insert;
mod list;
mod lookups;
mod page;
mod queue;
mod recent;
mod record;
mod shards;
mod spend;
mod sql;
mod transfer;

use std::collections::HashMap;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{
    ChangeReply, Inserted, LinkChange, LinkCounts, LinkIndex, LinkStore, LinkTotals, ListOrder,
    ListPage, ListQuery, RequestToken, SeededLinks, SpendReply,
};
use curt_core::{
    ErrorKind, KeyOrigin, Link, LinkId, LinkState, OwnerId, PortError, PortResult, Revision,
    ShardId, ShardMap, UnixMillis, Visibility,
};
use tokio_postgres::Row;

use self::dialect::Dialect;
use self::lookups::Lookups;
use self::page::Position;
use self::queue::{Call, Queue};
use self::recent::RecentWrites;
use self::record::epoch_of;
use super::engine::{Engine, column};
use super::failure::BACKEND;
use super::schema::{LINKS, Tables};

pub(super) use self::distributed::DistributedLinks;

const OP_INSERT: &str = "insert links";
const OP_COUNT: &str = "count links";

pub(super) struct PostgresLinks {
    tables: Arc<Tables>,
    inserts: Arc<Queue>,
    lookups: Arc<Lookups>,
    recent: Arc<RecentWrites>,
    /// Writes are routed by it.
    map: Arc<ShardMap>,
}

impl PostgresLinks {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        let lookups = Lookups::new(engine.lookup_connections());
        Self {
            tables: Arc::new(Tables::new(engine, &LINKS)),
            inserts: Arc::default(),
            lookups,
            recent: Arc::default(),
            map: Arc::default(),
        }
    }

    pub(super) fn with_map(self, map: Arc<ShardMap>) -> Self {
        Self { map, ..self }
    }

    /// Refuses an answer about links that were given up meanwhile, or before. Asked after the read: what is given up is
    /// removed later.
    async fn require_current(&self, op: &'static str, ids: &[LinkId]) -> PortResult<()> {
        let retired = self.retired(op).await?;
        let is_current = |id: &LinkId| !retired.contains(&ShardId::of(id));
        match retired.is_empty() || ids.iter().all(is_current) {
            true => Ok(()),
            false => Err(PortError::stale_epoch(BACKEND, op)),
        }
    }

    async fn require_all_current(&self, op: &'static str) -> PortResult<()> {
        match self.retired(op).await?.is_empty() {
            true => Ok(()),
            false => Err(PortError::stale_epoch(BACKEND, op)),
        }
    }

    /// The shards that have another owner than the map says.
    async fn retired(&self, op: &'static str) -> PortResult<Vec<ShardId>> {
        // What was opened without a map is no node of many.
        if self.map.version() == 0 {
            return Ok(Vec::new());
        }
        let engine = self.tables.engine().await?;
        let mut retired = Vec::new();
        for row in engine.read_latest(op, sql::RETIRED, &[]).await? {
            let (shard, epoch): (i16, i64) = (column(op, &row, 0)?, column(op, &row, 1)?);
            let shard = ShardId::new(shard.cast_unsigned());
            let stale = |shard: &ShardId| self.map.epoch(*shard).0.cast_signed() < epoch;
            retired.extend(shard.filter(stale));
        }
        Ok(retired)
    }

    /// Remembers that the link was changed, whatever the answer was: it may have been.
    fn note_write(&self, id: &LinkId) {
        self.recent.note(id, self.tables.replica_lag_max());
    }

    /// The engine for what no request waits for.
    async fn background(&self) -> PortResult<Arc<Engine>> {
        Ok(self.tables.engine().await?.in_background())
    }
}

#[async_trait]
impl LinkStore for PostgresLinks {
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        links
            .iter()
            .try_for_each(|link| check_link(OP_INSERT, link))?;
        // Before the deadline begins: tables are made once, and take their time.
        self.tables.engine().await?;
        let tables = Arc::clone(&self.tables);
        let timeout = tables.write_timeout();
        let run = move |group| insert_group(Arc::clone(&tables), group);
        let request = (links, token, Arc::clone(&self.map));
        self.inserts.call(OP_INSERT, request, timeout, run).await
    }

    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<Link>>> {
        const OP: &str = "read links";
        let (domains, keys) = record::id_columns(ids);
        let engine = self.tables.engine().await?;
        let rows = engine
            .read_latest(OP, sql::FIND_MANY, &[&domains, &keys])
            .await?;
        self.require_current(OP, ids).await?;
        let links = rows.iter().map(|row| record::link_of(OP, row));
        let links = links.map(|link| link.map(|link| (link.id.clone(), link)));
        let links = links.collect::<PortResult<HashMap<LinkId, Link>>>()?;
        Ok(ids.iter().map(|id| links.get(id).cloned()).collect())
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        self.find(id, false).await
    }

    async fn get_nearby(&self, id: &LinkId) -> PortResult<Option<Link>> {
        self.find(id, !self.recent.contains(id)).await
    }

    async fn update_at(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        const OP: &str = "update a link";
        if !link.state.is_kept() {
            return Err(invalid(
                OP,
                "an edit cannot make a tombstone or a seeded row",
            ));
        }
        check_link(OP, &link)?;
        let epoch = epoch_of(&self.map, &link.id);
        let engine = self.tables.engine().await?;
        let reply = change::update(engine, OP, &link, (seen, epoch)).await;
        self.note_write(&link.id);
        reply
    }

    async fn hand_over_at(
        &self,
        id: &LinkId,
        seen: Revision,
        owner: OwnerId,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let engine = self.tables.engine().await?;
        let reply = change::hand_over(engine, &self.map, id, seen, (owner, now)).await;
        self.note_write(id);
        reply
    }

    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let engine = self.tables.engine().await?;
        let reply = change::delete(engine, &self.map, id, seen, now).await;
        self.note_write(id);
        reply
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        let epoch = epoch_of(&self.map, id);
        spend::spend(self.tables.engine().await?, id, (seen, epoch)).await
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        let spent = self.clicks_spent_many(slice::from_ref(id)).await?;
        Ok(spent.first().copied().unwrap_or_default())
    }

    async fn clicks_spent_many(&self, ids: &[LinkId]) -> PortResult<Vec<u64>> {
        let spent = spend::spent(self.tables.engine().await?, ids).await?;
        self.require_current("count spent clicks", ids).await?;
        Ok(spent)
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
        let engine = self.tables.engine().await?;
        let page = list::list(engine, query, after, Dialect::Plain).await?;
        self.require_all_current(list::OP).await?;
        Ok(page)
    }

    async fn cursor_behind(&self, link: &Link, order: ListOrder) -> PortResult<Option<Box<str>>> {
        Ok(Some(Position::of(link).cursor(order)))
    }

    async fn ended(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        change::ended(&*self.background().await?, before, limit).await
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        before: UnixMillis,
        now: UnixMillis,
    ) -> PortResult<Vec<LinkChange>> {
        const OP: &str = "purge links";
        let engine = self.background().await?;
        change::to_tombstones(&engine, OP, &self.map, batch, (now, Some(before))).await
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkChange>> {
        change::release(&*self.background().await?, &self.map, before, limit).await
    }
}

#[async_trait]
impl SeededLinks for PostgresLinks {
    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64> {
        claim::seed(&*self.background().await?, &self.map, ids).await
    }

    async fn claim(&self, links: Vec<Link>) -> PortResult<Vec<Link>> {
        links
            .iter()
            .try_for_each(|link| check_link(claim::OP, link))?;
        claim::claim(self.tables.engine().await?, &self.map, &links).await
    }
}

#[async_trait]
impl LinkTotals for PostgresLinks {
    async fn counts(&self) -> PortResult<LinkCounts> {
        let engine = self.tables.engine().await?;
        counts_in(engine.read(OP_COUNT, sql::COUNTS, &[]).await?.first())
    }
}

async fn insert_group(tables: Arc<Tables>, group: Vec<Call>) {
    match tables.engine().await {
        Ok(engine) => insert::run(engine, group).await,
        Err(error) => insert::answer_all(group, error),
    }
}

fn is_open_to_all(link: &Link) -> bool {
    link.state == LinkState::Active
        && link.visibility == Visibility::Public
        && link.max_clicks.is_none()
        && link.password_hash.is_none()
}

fn counts_in(row: Option<&Row>) -> PortResult<LinkCounts> {
    let total = |index| -> PortResult<u64> {
        let sum: i64 = row.map_or(Ok(0), |row| column(OP_COUNT, row, index))?;
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

/// One request that the engine cannot take would fail with every other that shares its statement.
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
