//! `LinkStore` in memory: [`rows`] holds the links with their indexes and totals, [`once`] the answers to idempotent
//! requests, [`list`] the paging.

mod list;
mod once;
mod rows;

use std::collections::HashSet;
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::ports::{
    ChangeReply, ClaimReply, InsertReply, InsertRequest, Inserted, LinkCounts, LinkIndex,
    LinkStore, LinkTotals, ListPage, ListQuery, Once, Released, SeededLinks, SpendReply,
};
use curt_core::{
    DomainId, ErrorKind, KeyOrigin, Link, LinkId, LinkState, OwnerId, PortError, PortResult,
    RedirectStatus, Revision, Target, UnixMillis, Visibility,
};

use self::once::{Known, OnceRecords};
use self::rows::{Row, Rows};
use super::{BACKEND, locked};

#[derive(Debug, Default)]
pub struct MemoryLinkStore {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    rows: Rows,
    once: OnceRecords,
}

impl MemoryLinkStore {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl LinkStore for MemoryLinkStore {
    async fn insert(&self, request: InsertRequest) -> PortResult<InsertReply> {
        let mut tables = locked(&self.tables);
        Ok(tables.insert(request))
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        let tables = locked(&self.tables);
        Ok(tables.rows.get(id).map(|row| row.link.clone()))
    }

    async fn update(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        let rows = &mut locked(&self.tables).rows;
        let before = match rows.changeable(&link.id, Some(seen)) {
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
        let reply = ChangeReply::Changed(Box::new(row.link.clone()));
        rows.put(row);
        Ok(reply)
    }

    async fn delete(
        &self,
        id: &LinkId,
        seen: Option<Revision>,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let rows = &mut locked(&self.tables).rows;
        let row = match rows.changeable(id, seen) {
            Ok(row) => row.buried(now),
            Err(refusal) => return Ok(refusal),
        };
        let reply = ChangeReply::Changed(Box::new(row.link.clone()));
        rows.put(row);
        Ok(reply)
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        Ok(locked(&self.tables).rows.spend_click(id, seen))
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        let tables = locked(&self.tables);
        Ok(tables.rows.get(id).map_or(0, |row| row.clicks_spent))
    }

    async fn ping(&self) -> PortResult<()> {
        Ok(())
    }
}

#[async_trait]
impl LinkIndex for MemoryLinkStore {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        list::page(&locked(&self.tables).rows, query)
    }

    async fn expired(&self, now: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        let tables = locked(&self.tables);
        let expired = tables.rows.expired(now).take(limit);
        Ok(expired
            .map(|link| (link.id.clone(), link.revision))
            .collect())
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        now: UnixMillis,
    ) -> PortResult<Vec<LinkId>> {
        let rows = &mut locked(&self.tables).rows;
        let mut purged = Vec::new();
        for (id, seen) in batch {
            let expired = |row: &&Row| {
                let link = &row.link;
                link.state == LinkState::Active
                    && link.revision == *seen
                    && link.expires_at.is_some_and(|at| at <= now)
            };
            if let Some(row) = rows.get(id).filter(expired) {
                let buried = row.buried(now);
                rows.put(buried);
                purged.push(id.clone());
            }
        }
        Ok(purged)
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<Released>> {
        Ok(locked(&self.tables).rows.release(before, limit))
    }
}

#[async_trait]
impl SeededLinks for MemoryLinkStore {
    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64> {
        let rows = &mut locked(&self.tables).rows;
        let mut new = 0;
        for id in ids {
            if rows.get(id).is_none() {
                let mut seed = seeded(id.clone())?;
                seed.revision.generation = rows.former_generation(id).unwrap_or(0);
                rows.put(Row::new(seed));
                new += 1;
            }
        }
        Ok(new)
    }

    async fn claim(&self, request: InsertRequest) -> PortResult<ClaimReply> {
        let mut tables = locked(&self.tables);
        Ok(tables.claim(request))
    }
}

#[async_trait]
impl LinkTotals for MemoryLinkStore {
    async fn counts(&self) -> PortResult<LinkCounts> {
        Ok(locked(&self.tables).rows.counts())
    }
}

impl Tables {
    fn insert(&mut self, request: InsertRequest) -> InsertReply {
        let InsertRequest { links, once, now } = request;
        match self.known(once.as_ref(), now) {
            Some(Known::Same(outcome)) => return InsertReply::Replayed(outcome),
            Some(Known::Different) => return InsertReply::Mismatch,
            None => {}
        }
        let taken = self.taken(&links);
        if once.is_some() && generated_key_taken(&links, &taken) {
            return InsertReply::Stored(taken.into_iter().map(withheld).collect());
        }
        let mut ids = Vec::new();
        let mut outcomes = Vec::new();
        for (link, taken) in links.into_iter().zip(&taken) {
            ids.push((!taken).then(|| link.id.clone()));
            outcomes.push(match taken {
                true => Inserted::Conflict,
                false => self.rows.create_next(link),
            });
        }
        if let Some(once) = once {
            self.once.record(once, ids, now);
        }
        InsertReply::Stored(outcomes)
    }

    fn claim(&mut self, request: InsertRequest) -> ClaimReply {
        let InsertRequest { links, once, now } = request;
        match self.known(once.as_ref(), now) {
            Some(Known::Same(outcome)) => return ClaimReply::Replayed(outcome),
            Some(Known::Different) => return ClaimReply::Mismatch,
            None => {}
        }
        let domains: Vec<DomainId> = links.iter().map(|link| link.id.domain).collect();
        let seeds = self.rows.seeds_for(&domains);
        if once.is_some() && seeds.len() < links.len() {
            return ClaimReply::Claimed(Vec::new());
        }
        let mut claimed = Vec::new();
        for (link, (id, seed)) in links.into_iter().zip(seeds) {
            let link = Link {
                id,
                revision: seed.reborn(),
                ..link
            };
            self.rows.create(link.clone());
            claimed.push(link);
        }
        if let Some(once) = once {
            let ids = claimed.iter().map(|link| Some(link.id.clone())).collect();
            self.once.record(once, ids, now);
        }
        ClaimReply::Claimed(claimed)
    }

    fn known(&mut self, once: Option<&Once>, now: UnixMillis) -> Option<Known> {
        once.and_then(|once| self.once.find(once, now))
    }

    /// Per link, whether its id belongs to a row or to an earlier link of the same request.
    fn taken(&self, links: &[Link]) -> Vec<bool> {
        let mut earlier = HashSet::new();
        links
            .iter()
            .map(|link| !earlier.insert(&link.id) || self.rows.get(&link.id).is_some())
            .collect()
    }
}

fn generated_key_taken(links: &[Link], taken: &[bool]) -> bool {
    let generated = |link: &Link| link.origin != KeyOrigin::Alias;
    links
        .iter()
        .zip(taken)
        .any(|(link, taken)| *taken && generated(link))
}

fn withheld(taken: bool) -> Inserted {
    if taken {
        Inserted::Conflict
    } else {
        Inserted::Withheld
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
