use std::time::Duration;

use async_trait::async_trait;

use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::key::LinkId;
use crate::link::Revision;
use crate::served_link::ServedLink;

/// Served forms of links, shared between processes. A hint: the store is the truth, and an entry may vanish at any time.
///
/// Entries are compared by revision. An invalidation leaves a marker, which is no entry, so that a slow reader cannot put
/// back what it loaded before the change; so the `ttl` of an invalidation is longer than any load may take. An engine may
/// lose markers as it loses entries: the `ttl` of an entry bounds how stale it can become.
#[async_trait]
pub trait LinkCache: Send + Sync {
    /// Returns the entry of each link, in the order of `ids`; not all of one instant. Absent, ended, invalidated or
    /// unreadable: `None`, which says nothing about the store. Twice in `ids`: answered twice. Timed out: as absent.
    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<CachedLink>>>;

    /// Puts the entry in place for `ttl`, unless an entry or a marker with a higher revision is there, or a marker of a
    /// write with an unknown outcome; then nothing changes, and that is no error. Equal revisions are overwritten. A
    /// `ttl` of less than the engine can count is rounded up, to a second at most.
    ///
    /// Called twice: the time starts again. Timed out: unknown, and harmless either way.
    async fn set_if_newer(&self, id: &LinkId, entry: CachedLink, ttl: Duration) -> PortResult<()>;

    /// Removes the entry after a write and leaves a marker for `ttl`.
    ///
    /// - *With the revision that the write left*: entries with a higher one stay, and so does the marker of an unknown
    ///   outcome; [`set_if_newer`](Self::set_if_newer) with an older one is refused, with the same or a newer one is not.
    /// - *With `None`*, after a write whose outcome is unknown: whatever is there is removed, and every set is refused
    ///   until the marker ends. The write may yet happen, and no revision tells loads before it from loads after it.
    ///
    /// Absent: the marker is left all the same. Called twice: its time starts again. Timed out: unknown; call again, or
    /// entries are stale until their own time ends.
    async fn invalidate(
        &self,
        id: &LinkId,
        revision: Option<Revision>,
        ttl: Duration,
    ) -> PortResult<()>;

    /// Makes every entry and marker as if it had never been, for every process: to be called when the cache may have missed
    /// invalidations, before it is read again. Other caches in the same engine stay.
    ///
    /// Called twice: done again. Timed out: unknown; call again before reading.
    async fn clear(&self) -> PortResult<()>;

    /// Returns what the engine holds, for operators: everything in it, of other users too.
    async fn usage(&self) -> PortResult<CacheUsage>;
}

/// What an engine of a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    pub bytes: u64,
    /// Zero: the engine has no limit.
    pub bytes_max: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CachedLink {
    Present(ServedLink),
    /// The store had no such link when a load asked that began at this time.
    Absent(UnixMillis),
}

impl CachedLink {
    /// Returns what decides which of two entries is newer; absence is older than every link.
    #[must_use]
    pub fn revision(&self) -> Revision {
        match self {
            Self::Present(link) => link.revision(),
            Self::Absent(_) => Revision::default(),
        }
    }
}
