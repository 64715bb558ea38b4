//! Decisions of the last second, good or bad, so that a busy client costs one look-up a second.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use curt_core::UnixMillis;
use quick_cache::sync::Cache;

/// How long a decision may be repeated: what is revoked stops within this time everywhere.
pub const CREDENTIAL_TTL: Duration = Duration::from_secs(1);
const ENTRIES_MAX: usize = 4_096;

pub(crate) struct TtlCache<K, V> {
    entries: Cache<K, CachedValue<V>>,
    /// Number of invalidations so far.
    changes: AtomicU64,
}

#[derive(Clone)]
struct CachedValue<V> {
    value: V,
    at: UnixMillis,
}

/// Number of invalidations when a read of the store began.
#[derive(Clone, Copy)]
pub(crate) struct ReadStart(u64);

impl<K: Eq + Hash + Clone, V: Clone> TtlCache<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Cache::new(ENTRIES_MAX),
            changes: AtomicU64::new(0),
        }
    }

    pub(crate) fn get(&self, key: &K, now: UnixMillis) -> Option<V> {
        let cached = self.entries.get(key)?;
        // A clock that stepped back ends the entry: it must not live for as long as the step was wide.
        let is_fresh = cached.at <= now && now.since(cached.at) < CREDENTIAL_TTL;
        is_fresh.then_some(cached.value)
    }

    /// To be called before the store is read for a value.
    pub(crate) fn begin_read(&self) -> ReadStart {
        ReadStart(self.changes.load(Ordering::SeqCst))
    }

    /// Keeps a value, unless something was invalidated since the read began: what was read may be older than the change.
    pub(crate) fn put(&self, key: K, value: V, at: UnixMillis, begun: ReadStart) {
        self.entries.insert(key.clone(), CachedValue { value, at });
        if self.changes.load(Ordering::SeqCst) != begun.0 {
            self.entries.remove(&key);
        }
    }

    /// To be called after the change is in the store.
    pub(crate) fn invalidate(&self, key: &K) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.entries.remove(key);
    }

    /// As [`invalidate`](Self::invalidate), for everything.
    pub(crate) fn invalidate_all(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_that_was_overtaken_by_a_change_is_not_kept() {
        let ttl_cache = TtlCache::new();
        let begun = ttl_cache.begin_read();
        ttl_cache.invalidate(&"other");
        ttl_cache.put("key", true, UnixMillis(5), begun);
        assert_eq!(ttl_cache.get(&"key", UnixMillis(5)), None);
        ttl_cache.put("key", true, UnixMillis(5), ttl_cache.begin_read());
        assert_eq!(ttl_cache.get(&"key", UnixMillis(5)), Some(true));
    }
}
