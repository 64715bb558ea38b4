//! How many live feeds may be open at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use curt_core::OwnerId;
use curt_core::limits::{LIVE_FEEDS_MAX, LIVE_FEEDS_PER_USER_MAX};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Feeds that read at the same time. The others wait, and tell the more when it is their turn.
const READS_MAX: usize = 2;

/// The open feeds of each user.
#[derive(Debug)]
pub(crate) struct Feeds {
    open: Mutex<HashMap<OwnerId, usize>>,
    reads: Semaphore,
}

impl Default for Feeds {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            reads: Semaphore::new(READS_MAX),
        }
    }
}

impl Feeds {
    /// `None` when the user, or all users together, have as many as they may.
    pub(super) fn admit(self: &Arc<Self>, user: OwnerId) -> Option<Slot> {
        let mut open = self.open();
        let all: usize = open.values().sum();
        let own = open.get(&user).copied().unwrap_or(0);
        if all >= LIVE_FEEDS_MAX || own >= LIVE_FEEDS_PER_USER_MAX {
            return None;
        }
        open.insert(user, own + 1);
        Some(Slot {
            feeds: Arc::clone(self),
            user,
        })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<OwnerId, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open feed, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    feeds: Arc<Feeds>,
    user: OwnerId,
}

impl Slot {
    /// Waits until the feed may read. `None` only if nothing bounds reads any more.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.feeds.reads.acquire().await.ok()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.feeds.open();
        match open.get_mut(&self.user) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                open.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_feeds_and_a_closed_one_makes_room() {
        let feeds = Arc::<Feeds>::default();
        let take = |user| feeds.admit(OwnerId(user));
        let mut own: Vec<_> = std::iter::from_fn(|| take(1)).collect();
        assert_eq!(own.len(), LIVE_FEEDS_PER_USER_MAX);
        let others: Vec<_> = (2..1_000).filter_map(take).collect();
        assert_eq!(own.len() + others.len(), LIVE_FEEDS_MAX);
        own.pop();
        assert!(take(1_000).is_some());
        drop((own, others));
        assert!(feeds.open().is_empty());
    }
}
