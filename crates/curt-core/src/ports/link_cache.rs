use std::time::Duration;

use async_trait::async_trait;

use crate::error::PortResult;
use crate::key::LinkId;
use crate::link::{Link, Revision};

/// Copies of links shared between processes. A hint: the store is the truth, and an entry may vanish at any time.
#[async_trait]
pub trait LinkCache: Send + Sync {
    /// The newest copy known. Absent: `None`, which says nothing about the store.
    async fn get(&self, id: &LinkId) -> PortResult<Option<CachedLink>>;

    /// Keeps a copy for `ttl` unless one with a higher revision is there: a slow reader must not undo an
    /// invalidation. Equal revisions are overwritten. Called twice: no change.
    async fn set(&self, id: &LinkId, entry: CachedLink, ttl: Duration) -> PortResult<()>;

    /// Puts a marker of `revision` in the entry's place for `ttl`, so that [`set`](Self::set) with anything older is
    /// refused, unless something with a higher revision is there. Used for edits, deletions and changed permissions.
    /// Absent: the marker is still put.
    async fn invalidate(&self, id: &LinkId, revision: Revision, ttl: Duration) -> PortResult<()>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CachedLink {
    Present(Box<Link>),
    /// The store had no such link when asked.
    Absent,
    /// Changed at this revision; ask the store.
    Invalidated(Revision),
}

impl CachedLink {
    /// What decides which of two entries is newer.
    #[must_use]
    pub fn revision(&self) -> Revision {
        match self {
            Self::Present(link) => link.revision,
            Self::Absent => Revision::default(),
            Self::Invalidated(revision) => *revision,
        }
    }
}
