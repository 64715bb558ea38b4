//! A store that can be made slow and made to fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use curt_adapters::memory::MemoryLinkStore;
use curt_core::ports::{
    ChangeReply, ClaimReply, InsertReply, InsertRequest, LinkCounts, LinkStore, ListPage, ListQuery,
};
use curt_core::{ErrorKind, Link, LinkId, PortError, PortResult, Revision, UnixMillis};
use tokio::sync::Semaphore;

/// Reads pause between reading and answering when the gate is shut; everything fails while `failing`.
pub(crate) struct GatedStore {
    inner: MemoryLinkStore,
    gets: AtomicU64,
    inserts: AtomicU64,
    gets_waiting: AtomicU64,
    deletes: AtomicU64,
    deletes_slow: AtomicBool,
    is_gated: AtomicBool,
    gate: Semaphore,
    failing: AtomicBool,
    inserts_max: AtomicU64,
}

impl GatedStore {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryLinkStore::new(),
            gets: AtomicU64::new(0),
            inserts: AtomicU64::new(0),
            gets_waiting: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            deletes_slow: AtomicBool::new(false),
            is_gated: AtomicBool::new(false),
            gate: Semaphore::new(0),
            failing: AtomicBool::new(false),
            inserts_max: AtomicU64::new(u64::MAX),
        })
    }

    pub(crate) fn gets(&self) -> u64 {
        self.gets.load(Ordering::SeqCst)
    }

    pub(crate) fn inserts(&self) -> u64 {
        self.inserts.load(Ordering::SeqCst)
    }

    pub(crate) fn shut_gate(&self) {
        self.is_gated.store(true, Ordering::SeqCst);
    }

    /// Deletions wait at the gate before they happen, as in the queue of a busy writer.
    pub(crate) fn slow_deletes(&self) {
        self.deletes_slow.store(true, Ordering::SeqCst);
    }

    /// Waits until a deletion has reached the store.
    pub(crate) async fn delete_queued(&self) {
        while self.deletes.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Lets `count` paused reads answer.
    pub(crate) fn let_through(&self, count: usize) {
        self.gate.add_permits(count);
    }

    /// Reads from now on do not pause; those that do stay.
    pub(crate) fn open_gate(&self) {
        self.is_gated.store(false, Ordering::SeqCst);
    }

    /// Waits until `count` reads have read and are paused.
    pub(crate) async fn paused(&self, count: u64) {
        while self.gets_waiting.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn fail(&self, failing: bool) {
        self.failing.store(failing, Ordering::SeqCst);
    }

    /// Inserts after the first `count` fail.
    pub(crate) fn fail_after_inserts(&self, count: u64) {
        self.inserts_max.store(count, Ordering::SeqCst);
    }

    fn check(&self, op: &'static str) -> PortResult<()> {
        if self.failing.load(Ordering::SeqCst) {
            return Err(PortError::new(
                ErrorKind::Unavailable,
                "gated",
                op,
                "switched off",
            ));
        }
        Ok(())
    }
}

#[async_trait]
impl LinkStore for GatedStore {
    async fn insert(&self, request: InsertRequest) -> PortResult<InsertReply> {
        self.check("insert links")?;
        let done = self.inserts.fetch_add(1, Ordering::SeqCst);
        if done >= self.inserts_max.load(Ordering::SeqCst) {
            return Err(PortError::new(
                ErrorKind::Timeout,
                "gated",
                "insert links",
                "late",
            ));
        }
        self.inner.insert(request).await
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        self.check("read a link")?;
        self.gets.fetch_add(1, Ordering::SeqCst);
        let read = self.inner.get(id).await;
        if self.is_gated.load(Ordering::SeqCst) {
            self.gets_waiting.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await.unwrap().forget();
            self.gets_waiting.fetch_sub(1, Ordering::SeqCst);
            self.check("read a link")?;
        }
        read
    }

    async fn update(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        self.check("update a link")?;
        self.inner.update(link, seen).await
    }

    async fn delete(
        &self,
        id: &LinkId,
        seen: Option<Revision>,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        self.check("delete a link")?;
        let deleting = self.deletes_slow.load(Ordering::SeqCst);
        self.deletes.fetch_add(1, Ordering::SeqCst);
        if deleting {
            drop(self.gate.acquire().await.unwrap());
        }
        self.inner.delete(id, seen, now).await
    }

    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        self.check("list links")?;
        self.inner.list(query).await
    }

    async fn expired(&self, now: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        self.check("find expired links")?;
        self.inner.expired(now, limit).await
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        now: UnixMillis,
    ) -> PortResult<Vec<LinkId>> {
        self.check("purge links")?;
        self.inner.purge(batch, now).await
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkId>> {
        self.check("release keys")?;
        self.inner.release(before, limit).await
    }

    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64> {
        self.inner.seed(ids).await
    }

    async fn claim(&self, request: InsertRequest) -> PortResult<ClaimReply> {
        self.check("claim rows")?;
        self.inner.claim(request).await
    }

    async fn counts(&self) -> PortResult<LinkCounts> {
        self.inner.counts().await
    }

    async fn ping(&self) -> PortResult<()> {
        self.check("answer")
    }
}
