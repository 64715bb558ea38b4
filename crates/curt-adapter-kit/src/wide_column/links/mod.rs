//! The ports of links: [`insert`] and [`change`] write them, [`index`] finds them by something other than their key,
//! [`totals`] counts them, [`idempotency`] keeps requests that may be repeated, [`transfer`] copies all of it.
//!
//! # One row, one order
//! A link is one row, and the only judge of its key (K-1). Every write of it has a condition on the revision, and leaves a
//! mark of its own: when its answer is lost, reading the row tells whether it happened. Nothing is ever deleted: a deleted
//! link is a state, and so is a released key.
//!
//! # Lists
//! Lists are other partitions, and no transaction spans them. A link is added to its lists *before* it is written; each
//! reader compares what it finds there with the link itself. So a crash in between costs an entry that leads nowhere, and
//! no link is ever missing from a list.

mod change;
mod idempotency;
mod index;
mod insert;
mod lists;
mod record;
mod totals;
mod transfer;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{ChangeReply, Inserted, LinkStore, RequestToken, SpendReply};
use curt_core::{ErrorKind, Link, LinkId, OwnerId, PortError, PortResult, Revision, UnixMillis};
use tokio::sync::{Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64;

use self::totals::Totals;
use super::ordered::{ListRows, OrderedLists};
use super::{Deadlines, ReadMode};

pub use idempotency::RequestRows;
pub use record::{
    LinkPut, LinkRows, PutLink, PutRow, RELEASED, ReleasedCounts, RowName, ScannedLink, Stored,
    StoredLink,
};

/// Lists whose newest bucket takes an entry of every link or request: an engine may spread it over partitions.
pub const BUSY_LISTS: [&str; 4] = [
    lists::BY_TIME,
    lists::ENDS,
    lists::TOMBSTONES,
    idempotency::LIST,
];

/// Links whose writes wait for each other share a lock with this part of all others.
const TURNS: usize = 1_024;

/// A links database.
pub struct WideLinks {
    rows: Arc<dyn LinkRows>,
    requests: Arc<dyn RequestRows>,
    lists: OrderedLists,
    deadlines: Deadlines,
    turns: Vec<Mutex<()>>,
    totals: Totals,
}

impl WideLinks {
    /// `totals_interval`: how old totals may become before links are counted again. Zero: with every question.
    #[must_use]
    pub fn new(
        rows: Arc<dyn LinkRows>,
        requests: Arc<dyn RequestRows>,
        lists: Arc<dyn ListRows>,
        deadlines: Deadlines,
        totals_interval: Duration,
    ) -> Self {
        Self {
            rows,
            requests,
            lists: OrderedLists::new(lists),
            deadlines,
            turns: (0..TURNS).map(|_| Mutex::new(())).collect(),
            totals: Totals::new(totals_interval),
        }
    }

    /// Writes of one link from one process wait for each other: two conditional writes of a row at once hinder
    /// each other, and the more there are, the longer each takes. Others are kept apart by the conditions alone.
    async fn turn(&self, id: &LinkId) -> MutexGuard<'_, ()> {
        let hash = xxh3_64(id.to_string().as_bytes());
        let number = usize::try_from(hash % TURNS as u64).unwrap_or(0);
        self.turns[number].lock().await
    }

    async fn find(
        &self,
        op: &'static str,
        id: &LinkId,
        mode: ReadMode,
    ) -> PortResult<Option<Stored>> {
        self.rows.get(op, id, mode).await
    }

    /// The link as it was acknowledged. A released one is none.
    async fn find_link(&self, op: &'static str, id: &LinkId) -> PortResult<Option<StoredLink>> {
        let stored = self.find(op, id, ReadMode::Acknowledged).await?;
        Ok(stored.and_then(Stored::into_link))
    }

    async fn find_links(
        &self,
        op: &'static str,
        ids: &[LinkId],
    ) -> PortResult<Vec<Option<StoredLink>>> {
        let stored = self.rows.get_many(op, ids).await?;
        let link = |stored: Option<Stored>| stored.and_then(Stored::into_link);
        Ok(stored.into_iter().map(link).collect())
    }
}

#[async_trait]
impl LinkStore for WideLinks {
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        self.insert_links(links, token).await
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        const OP: &str = "look up a link";
        let found = self.deadlines.look_up(OP, self.find_link(OP, id)).await?;
        Ok(found.map(|stored| stored.link))
    }

    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<Link>>> {
        const OP: &str = "look up links";
        let found = self.deadlines.look_up(OP, self.find_links(OP, ids)).await?;
        let link = |stored: Option<StoredLink>| stored.map(|stored| stored.link);
        Ok(found.into_iter().map(link).collect())
    }

    async fn update_at(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        const OP: &str = "update a link";
        if !link.state.is_kept() {
            let detail = "an edit cannot make a tombstone or a seeded row";
            return Err(PortError::new(
                ErrorKind::Invalid,
                self.deadlines.backend,
                OP,
                detail,
            ));
        }
        let edit = |before: &StoredLink| {
            Some(Link {
                owner: before.link.owner,
                made_with: before.link.made_with,
                origin: before.link.origin,
                created_at: before.link.created_at,
                ..link.clone()
            })
        };
        self.deadlines
            .change(OP, self.change(OP, &link.id, seen, edit))
            .await
    }

    async fn hand_over_at(
        &self,
        id: &LinkId,
        seen: Revision,
        owner: OwnerId,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        const OP: &str = "hand over a link";
        let edit = |before: &StoredLink| {
            Some(Link {
                owner,
                updated_at: now,
                ..before.link.clone()
            })
        };
        self.deadlines
            .change(OP, self.change(OP, id, seen, edit))
            .await
    }

    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        const OP: &str = "delete a link";
        let edit = |before: &StoredLink| Some(change::tombstone(&before.link, now));
        self.deadlines
            .change(OP, self.change(OP, id, seen, edit))
            .await
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        const OP: &str = "spend a click";
        self.deadlines.change(OP, self.spend(OP, id, seen)).await
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        const OP: &str = "read spent clicks";
        let found = self.deadlines.look_up(OP, self.find_link(OP, id)).await?;
        Ok(found.map_or(0, |stored| stored.spent))
    }

    async fn clicks_spent_many(&self, ids: &[LinkId]) -> PortResult<Vec<u64>> {
        const OP: &str = "read spent clicks";
        let found = self.deadlines.look_up(OP, self.find_links(OP, ids)).await?;
        let spent = |stored: Option<StoredLink>| stored.map_or(0, |stored| stored.spent);
        Ok(found.into_iter().map(spent).collect())
    }

    async fn ping(&self) -> PortResult<()> {
        const OP: &str = "answer a ping";
        self.deadlines.look_up(OP, self.rows.ping(OP)).await
    }
}
