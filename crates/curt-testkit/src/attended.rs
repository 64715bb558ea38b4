//! A link store with somebody at its door, for tests that count calls, slow them down or make them fail.

use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{
    ChangeReply, ClaimReply, InsertReply, InsertRequest, LinkCounts, LinkIndex, LinkStore,
    LinkTotals, ListPage, ListQuery, Released, SeededDatabase, SeededLinks, SpendReply,
};
use curt_core::{Link, LinkId, PortResult, Revision, UnixMillis};

/// The operations of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Insert,
    Get,
    Update,
    Delete,
    List,
    Expired,
    Purge,
    Release,
    Seed,
    Claim,
    SpendClick,
    ClicksSpent,
    Counts,
    Ping,
}

/// Who stands at the door. Waiting delays the call; an error is the caller's answer.
#[async_trait]
pub trait Attendant: Send + Sync {
    /// Before the store hears of the call.
    async fn before(&self, _call: Call) -> PortResult<()> {
        Ok(())
    }

    /// After the store has answered, before the caller hears of it.
    async fn after(&self, _call: Call) -> PortResult<()> {
        Ok(())
    }
}

/// `inner`, with every call passing `attendant` on the way in and on the way out. Tests reach the attendant through
/// the store.
pub struct AttendedLinks<A> {
    inner: Arc<dyn SeededDatabase>,
    attendant: A,
}

impl<A: Attendant> AttendedLinks<A> {
    pub fn new(inner: Arc<dyn SeededDatabase>, attendant: A) -> Arc<Self> {
        Arc::new(Self { inner, attendant })
    }

    async fn pass<T>(
        &self,
        call: Call,
        reply: impl Future<Output = PortResult<T>> + Send,
    ) -> PortResult<T> {
        self.attendant.before(call).await?;
        let reply = reply.await;
        self.attendant.after(call).await?;
        reply
    }
}

impl<A> Deref for AttendedLinks<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.attendant
    }
}

#[async_trait]
impl<A: Attendant> LinkStore for AttendedLinks<A> {
    async fn insert(&self, request: InsertRequest) -> PortResult<InsertReply> {
        self.pass(Call::Insert, self.inner.insert(request)).await
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        self.pass(Call::Get, self.inner.get(id)).await
    }

    async fn update(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        self.pass(Call::Update, self.inner.update(link, seen)).await
    }

    async fn delete(
        &self,
        id: &LinkId,
        seen: Option<Revision>,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        self.pass(Call::Delete, self.inner.delete(id, seen, now))
            .await
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        self.pass(Call::SpendClick, self.inner.spend_click(id, seen))
            .await
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        self.pass(Call::ClicksSpent, self.inner.clicks_spent(id))
            .await
    }

    async fn ping(&self) -> PortResult<()> {
        self.pass(Call::Ping, self.inner.ping()).await
    }
}

#[async_trait]
impl<A: Attendant> LinkIndex for AttendedLinks<A> {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        self.pass(Call::List, self.inner.list(query)).await
    }

    async fn expired(&self, now: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        self.pass(Call::Expired, self.inner.expired(now, limit))
            .await
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        now: UnixMillis,
    ) -> PortResult<Vec<LinkId>> {
        self.pass(Call::Purge, self.inner.purge(batch, now)).await
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<Released>> {
        self.pass(Call::Release, self.inner.release(before, limit))
            .await
    }
}

#[async_trait]
impl<A: Attendant> SeededLinks for AttendedLinks<A> {
    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64> {
        self.pass(Call::Seed, self.inner.seed(ids)).await
    }

    async fn claim(&self, request: InsertRequest) -> PortResult<ClaimReply> {
        self.pass(Call::Claim, self.inner.claim(request)).await
    }
}

#[async_trait]
impl<A: Attendant> LinkTotals for AttendedLinks<A> {
    async fn counts(&self) -> PortResult<LinkCounts> {
        self.pass(Call::Counts, self.inner.counts()).await
    }
}
