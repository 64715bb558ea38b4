//! Links in an engine that spreads tables over its own servers: Citus, CockroachDB, YugabyteDB.
//!
//! Everything about a link is in its row, and a change is one statement about one key: so it is one server's, whichever
//! column spreads the table, and needs no lock. Totals are counted by reading, now and then. There are no seeded rows, moves
//! and copies: the engine moves links by itself.

mod change;
mod idempotency;
mod insert;
mod sql;
mod totals;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{
    ChangeReply, Inserted, LinkChange, LinkIndex, LinkStore, ListOrder, ListPage, ListQuery,
    RequestToken, SpendReply,
};
use curt_core::{Link, LinkId, OwnerId, PortResult, Revision, UnixMillis};

use self::totals::Totals;
use super::dialect::Dialect;
use super::list;
use super::page::Position;
use super::{check_link, check_no_nul, invalid, record};
use crate::decode::link_id;
use crate::engine::{Engine, column};
use crate::schema::{DISTRIBUTED_LINKS, Tables};

pub(crate) struct DistributedLinks {
    tables: Tables,
    totals: Totals,
}

impl DistributedLinks {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self {
            totals: Totals::new(engine.totals_interval()),
            tables: Tables::new(engine, &DISTRIBUTED_LINKS),
        }
    }

    async fn background(&self) -> PortResult<Arc<Engine>> {
        Ok(self.tables.engine().await?.in_background())
    }
}

#[async_trait]
impl LinkStore for DistributedLinks {
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        links
            .iter()
            .try_for_each(|link| check_link(insert::OP, link))?;
        insert::insert(self.tables.engine().await?, &links, token).await
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        const OP: &str = "read a link";
        let engine = self.tables.lookups().await?;
        let (domain, key) = (i64::from(id.domain.0), id.key.as_str());
        let row = engine
            .look_up(OP, super::sql::FIND, &[&domain, &key])
            .await?;
        row.map(|row| record::link_of(OP, &row)).transpose()
    }

    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<Link>>> {
        const OP: &str = "read links";
        let (domains, keys) = record::id_columns(ids);
        let engine = self.tables.engine().await?;
        let rows = engine
            .read_latest(OP, sql::FIND_MANY, &[&domains, &keys])
            .await?;
        let links = rows.iter().map(|row| record::link_of(OP, row));
        let links = links.map(|link| link.map(|link| (link.id.clone(), link)));
        let links = links.collect::<PortResult<HashMap<LinkId, Link>>>()?;
        Ok(ids.iter().map(|id| links.get(id).cloned()).collect())
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
        change::update(self.tables.engine().await?, OP, &link, seen).await
    }

    async fn hand_over_at(
        &self,
        id: &LinkId,
        seen: Revision,
        owner: OwnerId,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        change::hand_over(self.tables.engine().await?, id, seen, (owner, now)).await
    }

    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        const OP: &str = "delete a link";
        let engine = self.tables.engine().await?;
        match change::to_tombstone(engine, OP, id, seen, (now, None)).await? {
            Some(change) => Ok(ChangeReply::Changed(change)),
            None => change::refusal(engine, OP, id).await,
        }
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        change::spend(self.tables.engine().await?, id, seen).await
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        let spent = self.clicks_spent_many(std::slice::from_ref(id)).await?;
        Ok(spent.first().copied().unwrap_or_default())
    }

    async fn clicks_spent_many(&self, ids: &[LinkId]) -> PortResult<Vec<u64>> {
        const OP: &str = "count spent clicks";
        let (domains, keys) = record::id_columns(ids);
        let engine = self.tables.engine().await?;
        let mut spent = HashMap::new();
        for row in engine
            .read_latest(OP, sql::SPENT, &[&domains, &keys])
            .await?
        {
            let count: i64 = column(OP, &row, 2)?;
            spent.insert(link_id(OP, &row)?, count.cast_unsigned());
        }
        let spent = ids.iter().map(|id| spent.get(id).copied().unwrap_or(0));
        Ok(spent.collect())
    }

    async fn ping(&self) -> PortResult<()> {
        let engine = self.tables.engine().await?;
        let slot = i64::from(rand::random::<u8>());
        engine.write("answer", sql::PING, &[&slot]).await.map(drop)
    }

    async fn ping_reads(&self) -> PortResult<()> {
        const OP: &str = "answer a look-up";
        let engine = self.tables.lookups().await?;
        let row = engine.look_up(OP, sql::PING_READS, &[]).await?;
        let is_ordered = row.is_none_or(|row| column(OP, &row, 0).unwrap_or(true));
        match is_ordered {
            true => Ok(()),
            false => Err(invalid(
                OP,
                "texts are not in the order of their bytes: make the database with LOCALE 'C'",
            )),
        }
    }
}

#[async_trait]
impl LinkIndex for DistributedLinks {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        let after = Position::before_page(query)
            .map_err(|()| invalid(list::OP, "the cursor is not one of this list"))?;
        let texts = query.search.iter().chain(&query.tags);
        check_no_nul(list::OP, texts.map(|text| &**text))?;
        let engine = self.tables.engine().await?;
        list::list(engine, query, after, Dialect::Distributed).await
    }

    async fn cursor_behind(&self, link: &Link, order: ListOrder) -> PortResult<Option<Box<str>>> {
        Ok(Some(Position::of(link).cursor(order)))
    }

    async fn ended(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        super::change::ended(&*self.background().await?, before, limit).await
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        before: UnixMillis,
        now: UnixMillis,
    ) -> PortResult<Vec<LinkChange>> {
        change::purge(&*self.background().await?, batch, (now, before)).await
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkChange>> {
        change::release(&*self.background().await?, before, limit).await
    }
}
