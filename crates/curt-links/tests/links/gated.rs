//! A store that can be made slow and made to fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use curt_core::{ErrorKind, PortError, PortResult};
use curt_memory::MemoryLinkStore;
use curt_testkit::intercept::{Call, InterceptedLinks, Interceptor};
use tokio::sync::Semaphore;

pub(crate) type GatedStore = InterceptedLinks<Gate>;

pub(crate) fn gated_store() -> Arc<GatedStore> {
    InterceptedLinks::new(Arc::new(MemoryLinkStore::new()), Gate::new())
}

/// Reads pause between reading and answering when the gate is shut; everything fails while `failing`.
pub(crate) struct Gate {
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

impl Gate {
    fn new() -> Self {
        Self {
            gets: AtomicU64::new(0),
            inserts: AtomicU64::new(0),
            gets_waiting: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            deletes_slow: AtomicBool::new(false),
            is_gated: AtomicBool::new(false),
            gate: Semaphore::new(0),
            failing: AtomicBool::new(false),
            inserts_max: AtomicU64::new(u64::MAX),
        }
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

    fn check(&self) -> PortResult<()> {
        if self.failing.load(Ordering::SeqCst) {
            return Err(failure(ErrorKind::Unavailable, "switched off"));
        }
        Ok(())
    }
}

#[async_trait]
impl Interceptor for Gate {
    async fn before(&self, call: Call) -> PortResult<()> {
        self.check()?;
        match call {
            Call::Insert => {
                let done = self.inserts.fetch_add(1, Ordering::SeqCst);
                if done >= self.inserts_max.load(Ordering::SeqCst) {
                    return Err(failure(ErrorKind::Timeout, "late"));
                }
            }
            Call::Get => {
                self.gets.fetch_add(1, Ordering::SeqCst);
            }
            Call::Delete => {
                let is_slow = self.deletes_slow.load(Ordering::SeqCst);
                self.deletes.fetch_add(1, Ordering::SeqCst);
                if is_slow {
                    drop(self.gate.acquire().await.unwrap());
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn after(&self, call: Call) -> PortResult<()> {
        if call == Call::Get && self.is_gated.load(Ordering::SeqCst) {
            self.gets_waiting.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await.unwrap().forget();
            self.gets_waiting.fetch_sub(1, Ordering::SeqCst);
            self.check()?;
        }
        Ok(())
    }
}

fn failure(kind: ErrorKind, detail: &str) -> PortError {
    PortError::new(kind, "gated", "answer", detail)
}
