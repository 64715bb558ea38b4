//! `LinkStore` in memory: [`rows`] holds the links with their indexes and totals, [`idempotency`] the requests that
//! may be repeated, [`list`] the paging, [`shards`] the refusal of writes that were routed by an old map.

mod copies;
mod idempotency;
mod list;
mod rows;
mod shards;
mod transfer;

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use curt_core::ports::{
    ChangeReply, Inserted, LinkChange, LinkCounts, LinkIndex, LinkStore, LinkTotals, ListOrder,
    ListPage, ListQuery, RequestToken, SeededLinks, SpendReply,
};
use curt_core::{
    DomainId, ErrorKind, KeyOrigin, Link, LinkId, LinkState, OwnerId, PortError, PortResult,
    RedirectStatus, Revision, ShardId, ShardMap, Target, UnixMillis, Visibility,
};

use self::copies::Copies;
use self::idempotency::Records;
use self::rows::{Row, Rows};
use self::shards::Seals;
use super::{BACKEND, locked};

#[derive(Debug, Default)]
pub struct MemoryLinkStore {
    tables: Arc<Mutex<Tables>>,
    /// Writes are routed by it.
    map: Arc<ShardMap>,
}

#[derive(Debug, Default)]
struct Tables {
    rows: Rows,
    records: Records,
    seals: Seals,
    copies: Copies,
    identity: Option<u64>,
}

impl MemoryLinkStore {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tables for a write to this link, unless another node owns its shard.
    fn owned<'a>(
        &self,
        op: &'static str,
        ids: impl IntoIterator<Item = &'a LinkId>,
    ) -> PortResult<MutexGuard<'_, Tables>> {
        let tables = locked(&self.tables);
        match ids.into_iter().all(|id| tables.seals.admit(&self.map, id)) {
            true => Ok(tables),
            false => Err(PortError::stale_epoch(BACKEND, op)),
        }
    }
}

impl MemoryLinkStore {
    /// The tables for a read of this link, unless another node owns its shard and may have changed it.
    fn readable(&self, op: &'static str, id: &LinkId) -> PortResult<MutexGuard<'_, Tables>> {
        let tables = locked(&self.tables);
        match tables.copies.is_retired(&self.map, ShardId::of(id)) {
            true => Err(PortError::stale_epoch(BACKEND, op)),
            false => Ok(tables),
        }
    }
}

#[async_trait]
impl LinkStore for MemoryLinkStore {
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        let ids = links.iter().map(|link| &link.id);
        let rows = &mut self.owned("insert links", ids)?.rows;
        Ok(links
            .into_iter()
            .map(|link| rows.insert_if_absent(link, token))
            .collect())
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        let tables = self.readable("read a link", id)?;
        Ok(tables.rows.get(id).map(|row| row.link.clone()))
    }

    async fn update_at(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        const OP: &str = "update a link";
        if !link.state.is_kept() {
            let detail = "an edit cannot make a tombstone or a seeded row";
            return Err(PortError::new(ErrorKind::Invalid, BACKEND, OP, detail));
        }
        let rows = &mut self.owned(OP, [&link.id])?.rows;
        let before = match rows.changeable(&link.id, seen) {
            Ok(row) => row,
            Err(refusal) => return Ok(refusal),
        };
        let after = Link {
            id: before.link.id.clone(),
            owner: before.link.owner,
            made_with: before.link.made_with,
            origin: before.link.origin,
            created_at: before.link.created_at,
            revision: seen.edited(),
            ..link
        };
        let row = before.followed_by(after);
        let reply = ChangeReply::Changed(LinkChange::of(&row.link));
        rows.put(row);
        Ok(reply)
    }

    async fn hand_over_at(
        &self,
        id: &LinkId,
        seen: Revision,
        owner: OwnerId,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let rows = &mut self.owned("hand over a link", [id])?.rows;
        let before = match rows.changeable(id, seen) {
            Ok(row) => row,
            Err(refusal) => return Ok(refusal),
        };
        let after = Link {
            owner,
            updated_at: now,
            revision: seen.edited(),
            ..before.link.clone()
        };
        let row = before.followed_by(after);
        let reply = ChangeReply::Changed(LinkChange::of(&row.link));
        rows.put(row);
        Ok(reply)
    }

    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let rows = &mut self.owned("delete a link", [id])?.rows;
        let row = match rows.changeable(id, seen) {
            Ok(row) => row.to_tombstone(now),
            Err(refusal) => return Ok(refusal),
        };
        let reply = ChangeReply::Changed(LinkChange::of(&row.link));
        rows.put(row);
        Ok(reply)
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        let mut tables = self.owned("spend a click", [id])?;
        Ok(tables.rows.spend_click(id, seen))
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        let tables = self.readable("count spent clicks", id)?;
        Ok(tables.rows.get(id).map_or(0, |row| row.clicks_spent))
    }

    async fn ping(&self) -> PortResult<()> {
        Ok(())
    }
}

#[async_trait]
impl LinkIndex for MemoryLinkStore {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        let tables = locked(&self.tables);
        if tables.copies.is_any_retired(&self.map) {
            return Err(PortError::stale_epoch(BACKEND, "list links"));
        }
        list::page(&tables.rows, query)
    }

    async fn cursor_behind(&self, link: &Link, order: ListOrder) -> PortResult<Option<Box<str>>> {
        Ok(Some(list::cursor_behind(link, order)))
    }

    async fn ended(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        let tables = locked(&self.tables);
        let ended = tables.rows.ended(before).take(limit);
        Ok(ended.map(|link| (link.id.clone(), link.revision)).collect())
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        before: UnixMillis,
        now: UnixMillis,
    ) -> PortResult<Vec<LinkChange>> {
        let Tables { rows, seals, .. } = &mut *locked(&self.tables);
        let mut purged = Vec::new();
        let owned = batch.iter().filter(|(id, _)| seals.admit(&self.map, id));
        for (id, seen) in owned {
            let is_due = |row: &&Row| {
                let ended = rows::end_of(&row.link);
                row.link.revision == *seen && ended.is_some_and(|at| at <= before)
            };
            if let Some(row) = rows.get(id).filter(is_due) {
                let tombstone = row.to_tombstone(now);
                purged.push(LinkChange::of(&tombstone.link));
                rows.put(tombstone);
            }
        }
        Ok(purged)
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkChange>> {
        let Tables { rows, seals, .. } = &mut *locked(&self.tables);
        Ok(rows.release(before, limit, |id| seals.admit(&self.map, id)))
    }
}

#[async_trait]
impl SeededLinks for MemoryLinkStore {
    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64> {
        let Tables { rows, seals, .. } = &mut *locked(&self.tables);
        let mut new = 0;
        for id in ids.iter().filter(|id| seals.admit(&self.map, id)) {
            if rows.get(id).is_none() {
                let mut seed = seeded(id.clone())?;
                seed.revision.generation = rows.former_generation(id).unwrap_or(0);
                rows.put(Row::new(seed));
                new += 1;
            }
        }
        Ok(new)
    }

    async fn claim(&self, links: Vec<Link>) -> PortResult<Vec<Link>> {
        let Tables { rows, seals, .. } = &mut *locked(&self.tables);
        let domains: Vec<DomainId> = links.iter().map(|link| link.id.domain).collect();
        let seeds = rows.seeds_for(&domains, |id| seals.admit(&self.map, id));
        let give = |(link, (id, seed)): (Link, (LinkId, Revision))| Link {
            id,
            revision: seed.reborn(),
            ..link
        };
        let claimed: Vec<Link> = links.into_iter().zip(seeds).map(give).collect();
        for link in &claimed {
            rows.create(Row::new(link.clone()));
        }
        Ok(claimed)
    }
}

#[async_trait]
impl LinkTotals for MemoryLinkStore {
    async fn counts(&self) -> PortResult<LinkCounts> {
        let tables = locked(&self.tables);
        Ok(tables.rows.counts(|shard| tables.copies.is_counted(shard)))
    }
}

/// A row that waits to be claimed. It leads nowhere, and nobody is ever sent there.
fn seeded(id: LinkId) -> PortResult<Link> {
    let target = Target::from_serialised("about:blank")
        .map_err(|error| PortError::new(ErrorKind::Bug, BACKEND, "seed rows", error.to_string()))?;
    Ok(Link {
        id,
        target,
        owner: OwnerId::ANONYMOUS,
        made_with: None,
        state: LinkState::Seeded,
        revision: Revision::default(),
        origin: KeyOrigin::Claim,
        created_at: UnixMillis::default(),
        updated_at: UnixMillis::default(),
        expires_at: None,
        valid_since: None,
        max_clicks: None,
        visibility: Visibility::Public,
        password_hash: None,
        status: RedirectStatus::default(),
        forward_query: false,
        title: None,
        tags: Vec::new(),
    })
}
