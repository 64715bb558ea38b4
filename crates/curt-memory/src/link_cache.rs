use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{CachedLink, LinkCache};
use curt_core::{Clock, LinkId, PortResult, Revision, SystemClock, UnixMillis};

use super::locked;

/// Entries of a cache that nobody gave a cap.
const ENTRIES_DEFAULT: usize = 100_000;

/// Copies of links, at most as many as the cap says; the one that would run out first makes room.
pub struct MemoryLinkCache {
    cap: usize,
    clock: Arc<dyn Clock>,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<LinkId, Entry>,
    by_end: BTreeSet<(UnixMillis, LinkId)>,
}

#[derive(Debug)]
struct Entry {
    link: CachedLink,
    until: UnixMillis,
}

impl MemoryLinkCache {
    #[must_use]
    pub fn new(cap: usize, clock: Arc<dyn Clock>) -> Self {
        Self {
            cap: cap.max(1),
            clock,
            entries: Mutex::default(),
        }
    }

    /// Puts the entry in place unless a higher revision is there.
    fn put(&self, id: &LinkId, link: CachedLink, ttl: Duration) {
        let now = self.clock.now();
        let mut entries = locked(&self.entries);
        let newer = |there: &CachedLink| there.revision() > link.revision();
        if entries.valid(id, now).is_some_and(newer) {
            return;
        }
        entries.remove(id);
        if entries.by_id.len() == self.cap
            && let Some((_, first)) = entries.by_end.first().cloned()
        {
            entries.remove(&first);
        }
        let until = now.plus(ttl);
        entries.by_end.insert((until, id.clone()));
        entries.by_id.insert(id.clone(), Entry { link, until });
    }
}

impl Default for MemoryLinkCache {
    fn default() -> Self {
        Self::new(ENTRIES_DEFAULT, Arc::new(SystemClock))
    }
}

impl fmt::Debug for MemoryLinkCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLinkCache")
            .field("cap", &self.cap)
            .field("entries", &locked(&self.entries).by_id.len())
            .finish_non_exhaustive()
    }
}

impl Entries {
    fn valid(&self, id: &LinkId, now: UnixMillis) -> Option<&CachedLink> {
        let entry = self.by_id.get(id).filter(|entry| entry.until > now)?;
        Some(&entry.link)
    }

    fn remove(&mut self, id: &LinkId) {
        if let Some(entry) = self.by_id.remove(id) {
            self.by_end.remove(&(entry.until, id.clone()));
        }
    }
}

#[async_trait]
impl LinkCache for MemoryLinkCache {
    async fn get(&self, id: &LinkId) -> PortResult<Option<CachedLink>> {
        let now = self.clock.now();
        Ok(locked(&self.entries).valid(id, now).cloned())
    }

    async fn set(&self, id: &LinkId, entry: CachedLink, ttl: Duration) -> PortResult<()> {
        self.put(id, entry, ttl);
        Ok(())
    }

    async fn invalidate(&self, id: &LinkId, revision: Revision, ttl: Duration) -> PortResult<()> {
        self.put(id, CachedLink::Invalidated(revision), ttl);
        Ok(())
    }
}
