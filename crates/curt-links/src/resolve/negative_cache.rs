//! Keys that led nowhere a moment ago, in a cache of their own: a client that tries keys must not push out live links.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use curt_core::clock::UnixMillis;
use curt_core::{GoneCause, LinkId, LinkRef};
use quick_cache::Equivalent;
use quick_cache::sync::Cache;

/// Longest that an answer "no such link" may be repeated without asking the store.
pub const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NegativeAnswer {
    Absent,
    Gone(GoneCause),
    Blocked,
}

pub(super) struct NegativeCache {
    ttl: Duration,
    cache: Cache<LinkId, (NegativeAnswer, UnixMillis)>,
}

impl NegativeCache {
    pub(super) fn new(entries_max: usize, ttl: Duration) -> Self {
        Self {
            ttl: ttl.min(NEGATIVE_TTL_MAX),
            cache: Cache::new(entries_max),
        }
    }

    pub(super) fn get(&self, link: LinkRef<'_>, now: UnixMillis) -> Option<NegativeAnswer> {
        let (answer, loaded_at) = self.cache.get(&LookupKey(link))?;
        is_fresh(loaded_at, now, self.ttl).then_some(answer)
    }

    /// Remembers what a load found that began at `loaded_at`, unless that is too long ago by now.
    pub(super) fn insert(
        &self,
        id: LinkId,
        answer: NegativeAnswer,
        loaded_at: UnixMillis,
        now: UnixMillis,
    ) {
        if is_fresh(loaded_at, now, self.ttl) {
            self.cache.insert(id, (answer, loaded_at));
        } else {
            self.remove(id.as_ref());
        }
    }

    pub(super) fn remove(&self, link: LinkRef<'_>) {
        self.cache.remove(&LookupKey(link));
    }

    pub(super) fn clear(&self) {
        self.cache.clear();
    }
}

/// Whether what a load found that began at `loaded_at` may still be used. A clock that stepped back makes it stale at once:
/// otherwise the entry would live for as long as the step was wide.
pub(super) fn is_fresh(loaded_at: UnixMillis, now: UnixMillis, ttl: Duration) -> bool {
    loaded_at <= now && now.since(loaded_at) < ttl
}

/// A [`LinkRef`] to look up a [`LinkId`] by; it hashes like one.
struct LookupKey<'a>(LinkRef<'a>);

impl Hash for LookupKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Equivalent<LinkId> for LookupKey<'_> {
    fn equivalent(&self, id: &LinkId) -> bool {
        id.as_ref() == self.0
    }
}
