use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use curt_core::ports::{LinkChange, LinkIndex};
use curt_keys::LeaseName;

/// A links database that is purged by itself.
pub(super) struct PurgeNode {
    pub(super) index: Arc<dyn LinkIndex>,
    pub(super) lease: LeaseName,
    /// What the last look found, at most a batch.
    backlog: AtomicI64,
    /// Keys that left the store and whose next steps failed: to revoke permissions, and to give them to the supply.
    released: Mutex<Vec<LinkChange>>,
}

impl PurgeNode {
    pub(super) fn new(number: usize, index: Arc<dyn LinkIndex>) -> Self {
        Self {
            index,
            lease: LeaseName::Purge(number),
            backlog: AtomicI64::default(),
            released: Mutex::default(),
        }
    }

    pub(super) fn backlog(&self) -> i64 {
        self.backlog.load(Ordering::Relaxed)
    }

    pub(super) fn set_backlog(&self, links: usize) {
        let links = i64::try_from(links).unwrap_or(i64::MAX);
        self.backlog.store(links, Ordering::Relaxed);
    }

    pub(super) fn released(&self) -> MutexGuard<'_, Vec<LinkChange>> {
        self.released.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
