//! `LinkStore` in memory: [`rows`] holds the links with their indexes and totals, [`idempotency`] the requests that
//! may be repeated, [`list`] the paging.

mod idempotency;
mod list;
mod rows;

use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::ports::{
    ChangeReply, Inserted, LinkChange, LinkCounts, LinkIndex, LinkStore, LinkTotals, ListPage,
    ListQuery, RequestToken, SeededLinks, SpendReply,
};
use curt_core::{
    DomainId, ErrorKind, KeyOrigin, Link, LinkId, LinkState, OwnerId, PortError, PortResult,
    RedirectStatus, Revision, Target, UnixMillis, Visibility,
};

use self::idempotency::Records;
use self::rows::{Row, Rows};
use super::{BACKEND, locked};

#[derive(Debug, Default)]
pub struct MemoryLinkStore {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    rows: Rows,
    records: Records,
}

impl MemoryLinkStore {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl LinkStore for MemoryLinkStore {
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        let rows = &mut locked(&self.tables).rows;
        Ok(links
            .into_iter()
            .map(|link| rows.insert_if_absent(link, token))
            .collect())
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        let tables = locked(&self.tables);
        Ok(tables.rows.get(id).map(|row| row.link.clone()))
    }

    async fn update_at(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        let rows = &mut locked(&self.tables).rows;
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

    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let rows = &mut locked(&self.tables).rows;
        let row = match rows.changeable(id, seen) {
            Ok(row) => row.to_tombstone(now),
            Err(refusal) => return Ok(refusal),
        };
        let reply = ChangeReply::Changed(LinkChange::of(&row.link));
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
    ) -> PortResult<Vec<LinkChange>> {
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
                let tombstone = row.to_tombstone(now);
                purged.push(LinkChange::of(&tombstone.link));
                rows.put(tombstone);
            }
        }
        Ok(purged)
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkChange>> {
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

    async fn claim(&self, links: Vec<Link>) -> PortResult<Vec<Link>> {
        let rows = &mut locked(&self.tables).rows;
        let domains: Vec<DomainId> = links.iter().map(|link| link.id.domain).collect();
        let seeds = rows.seeds_for(&domains);
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
        Ok(locked(&self.tables).rows.counts())
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
