use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{CacheUsage, CachedLink, LinkCache};
use curt_core::{Clock, LinkId, PortResult, Revision, SystemClock, UnixMillis};

use super::locked;

/// Entries of a cache that nobody gave a cap.
const ENTRIES_DEFAULT: usize = 100_000;

/// Served links, at most as many as the cap says; the one that would end first makes room.
pub struct MemoryLinkCache {
    cap: usize,
    clock: Arc<dyn Clock>,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_id: HashMap<LinkId, Entry>,
    by_end: BTreeSet<(UnixMillis, LinkId)>,
}

struct Entry {
    content: Content,
    until: UnixMillis,
}

enum Content {
    Link(CachedLink),
    /// Left by an invalidation.
    Marker(Option<Revision>),
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

    /// Puts the content in place unless something newer is there.
    fn put(&self, id: &LinkId, content: Content, ttl: Duration) {
        let now = self.clock.now();
        let mut entries = locked(&self.entries);
        let newer = |there: &Content| there.rank() > content.rank();
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
        entries.by_id.insert(id.clone(), Entry { content, until });
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
    fn valid(&self, id: &LinkId, now: UnixMillis) -> Option<&Content> {
        let entry = self.by_id.get(id).filter(|entry| entry.until > now)?;
        Some(&entry.content)
    }

    fn remove(&mut self, id: &LinkId) {
        if let Some(entry) = self.by_id.remove(id) {
            self.by_end.remove(&(entry.until, id.clone()));
        }
    }
}

impl Content {
    /// What wins over what: an unknown outcome over every revision.
    fn rank(&self) -> (bool, Revision) {
        match self {
            Self::Link(link) => (false, link.revision()),
            Self::Marker(revision) => (revision.is_none(), revision.unwrap_or_default()),
        }
    }
}

#[async_trait]
impl LinkCache for MemoryLinkCache {
    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<CachedLink>>> {
        let now = self.clock.now();
        let entries = locked(&self.entries);
        let get = |id| match entries.valid(id, now) {
            Some(Content::Link(link)) => Some(link.clone()),
            Some(Content::Marker(_)) | None => None,
        };
        Ok(ids.iter().map(get).collect())
    }

    async fn set_if_newer(&self, id: &LinkId, entry: CachedLink, ttl: Duration) -> PortResult<()> {
        self.put(id, Content::Link(entry), ttl);
        Ok(())
    }

    async fn invalidate(
        &self,
        id: &LinkId,
        revision: Option<Revision>,
        ttl: Duration,
    ) -> PortResult<()> {
        self.put(id, Content::Marker(revision), ttl);
        Ok(())
    }

    async fn clear(&self) -> PortResult<()> {
        *locked(&self.entries) = Entries::default();
        Ok(())
    }

    /// Counts what is sent, not what it takes in memory.
    async fn usage(&self) -> PortResult<CacheUsage> {
        let entries = locked(&self.entries);
        let bytes = entries.by_id.values().map(|entry| match &entry.content {
            Content::Link(CachedLink::Present(link)) => link.as_bytes().len() as u64,
            Content::Link(CachedLink::Absent(_)) | Content::Marker(_) => 0,
        });
        Ok(CacheUsage {
            bytes: bytes.sum(),
            bytes_max: 0,
        })
    }
}
