//! The ports of links: [`insert`] and [`change`] write them, [`index`] finds them by something other than their key,
//! [`totals`] counts them, [`idempotency`] keeps requests that may be repeated.
//!
//! # One partition, one order
//! A link is one row, and the only judge of its key (K-1). Every write of it is a lightweight transaction with a condition
//! on the revision, and leaves a mark of its own: when its answer is lost, reading the row as it was decided tells whether
//! it happened. Nothing is ever deleted: a deleted link is a state, and so is a released key.
//!
//! # Lists
//! Lists are other partitions, and no transaction spans them. A link is added to its lists *before* it is written; each
//! reader compares what it finds there with the link itself. So a crash in between costs an entry that leads nowhere, and
//! no link is ever missing from a list.

mod change;
mod cql;
mod idempotency;
mod index;
mod insert;
pub(crate) mod lists;
mod record;
mod totals;
mod transfer;

use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_core::ports::{ChangeReply, Inserted, LinkStore, RequestToken, SpendReply};
use curt_core::{
    ErrorKind, Link, LinkId, LinkState, OwnerId, PortError, PortResult, Revision, UnixMillis,
};
use tokio::sync::{Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64;

use self::record::{LinkRow, Stored, StoredLink};
use self::totals::Totals;
use crate::engine::Engine;
use crate::failure::BACKEND;
use crate::ordered::OrderedLists;
use crate::statement::Cql;
use crate::together::together;

/// Links whose writes wait for each other share a lock with this part of all others.
const TURNS: usize = 1_024;

pub(crate) struct CassandraLinks {
    engine: Arc<Engine>,
    namespace: Arc<str>,
    lists: OrderedLists,
    turns: Vec<Mutex<()>>,
    totals: Totals,
}

impl CassandraLinks {
    pub(crate) fn new(engine: Arc<Engine>, namespace: Arc<str>) -> Self {
        Self {
            lists: OrderedLists::new(Arc::clone(&engine), Arc::clone(&namespace)),
            turns: (0..TURNS).map(|_| Mutex::new(())).collect(),
            totals: Totals::default(),
            engine,
            namespace,
        }
    }

    /// Writes of one link from one process wait for each other: two proposals for a partition at once hinder each other,
    /// and the more there are, the longer each takes. Others are kept apart by the transactions alone.
    async fn turn(&self, id: &LinkId) -> MutexGuard<'_, ()> {
        let hash = xxh3_64(id.to_string().as_bytes());
        let number = usize::try_from(hash % TURNS as u64).unwrap_or(0);
        self.turns[number].lock().await
    }

    async fn find(&self, op: &'static str, cql: Cql, id: &LinkId) -> PortResult<Option<Stored>> {
        let values = (&*self.namespace, i64::from(id.domain.0), id.key.as_str());
        let row: Option<LinkRow> = self.engine.first(op, cql, values).await?;
        row.map(|row| row.into_stored(op)).transpose()
    }

    /// The link as it was acknowledged. A released one is none.
    async fn find_link(&self, op: &'static str, id: &LinkId) -> PortResult<Option<StoredLink>> {
        let stored = self.find(op, cql::GET, id).await?;
        Ok(stored.and_then(Stored::into_link))
    }

    async fn find_links(
        &self,
        op: &'static str,
        ids: &[LinkId],
    ) -> PortResult<Vec<Option<StoredLink>>> {
        together(ids.iter().map(|id| self.find_link(op, id))).await
    }

    /// A look-up that a request waits for.
    async fn look_up<T>(
        &self,
        op: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        let limit = self.engine.settings.call_timeout;
        self.engine.within(op, limit, Effect::None, call).await
    }

    /// A write that a request waits for.
    async fn write<T>(
        &self,
        op: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        let limit = self.engine.settings.call_timeout;
        self.engine.within(op, limit, Effect::Unknown, call).await
    }
}

impl Stored {
    fn into_link(self) -> Option<StoredLink> {
        match self {
            Self::Link(link) => Some(*link),
            Self::Released { .. } => None,
        }
    }
}

#[async_trait]
impl LinkStore for CassandraLinks {
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        self.insert_links(links, token).await
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        const OP: &str = "look up a link";
        let found = self.look_up(OP, self.find_link(OP, id)).await?;
        Ok(found.map(|stored| stored.link))
    }

    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<Link>>> {
        const OP: &str = "look up links";
        let found = self.look_up(OP, self.find_links(OP, ids)).await?;
        let link = |stored: Option<StoredLink>| stored.map(|stored| stored.link);
        Ok(found.into_iter().map(link).collect())
    }

    async fn update_at(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        const OP: &str = "update a link";
        if !link.state.is_kept() {
            let detail = "an edit cannot make a tombstone or a seeded row";
            return Err(PortError::new(ErrorKind::Invalid, BACKEND, OP, detail));
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
        self.write(OP, self.change(OP, &link.id, seen, edit)).await
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
        self.write(OP, self.change(OP, id, seen, edit)).await
    }

    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        const OP: &str = "delete a link";
        let edit = |before: &StoredLink| Some(change::tombstone(&before.link, now));
        self.write(OP, self.change(OP, id, seen, edit)).await
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        const OP: &str = "spend a click";
        self.write(OP, self.spend(OP, id, seen)).await
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        const OP: &str = "read spent clicks";
        let found = self.look_up(OP, self.find_link(OP, id)).await?;
        Ok(found.map_or(0, |stored| stored.spent))
    }

    async fn clicks_spent_many(&self, ids: &[LinkId]) -> PortResult<Vec<u64>> {
        const OP: &str = "read spent clicks";
        let found = self.look_up(OP, self.find_links(OP, ids)).await?;
        let spent = |stored: Option<StoredLink>| stored.map_or(0, |stored| stored.spent);
        Ok(found.into_iter().map(spent).collect())
    }

    /// Asks for the agreement that a write needs.
    async fn ping(&self) -> PortResult<()> {
        const OP: &str = "answer a ping";
        self.look_up(OP, crate::cursor::ping(&self.engine, &self.namespace, OP))
            .await
    }
}

/// Whether a change is possible at all, in this state.
fn is_changeable(state: LinkState) -> bool {
    state.is_kept()
}
