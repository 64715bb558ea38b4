//! What was decided a moment ago, good or bad, so that a busy client costs one look a second.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use curt_core::UnixMillis;
use quick_cache::sync::Cache;

/// How long a decision may be repeated: what is revoked stops within this time everywhere.
pub const VERDICT_TTL: Duration = Duration::from_secs(1);
const VERDICTS_MAX: usize = 4_096;

pub(crate) struct Verdicts<K, V> {
    kept: Cache<K, Decided<V>>,
    /// Counts what made older decisions doubtful.
    changes: AtomicU64,
}

#[derive(Clone)]
struct Decided<V> {
    verdict: V,
    at: UnixMillis,
}

/// When a look at the store began, in changes.
#[derive(Clone, Copy)]
pub(crate) struct Begun(u64);

impl<K: Eq + Hash + Clone, V: Clone> Verdicts<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            kept: Cache::new(VERDICTS_MAX),
            changes: AtomicU64::new(0),
        }
    }

    pub(crate) fn get(&self, key: &K, now: UnixMillis) -> Option<V> {
        let decided = self.kept.get(key)?;
        // A clock that stepped back ends the verdict: it must not live for as long as the step was wide.
        let is_fresh = decided.at <= now && now.since(decided.at) < VERDICT_TTL;
        is_fresh.then_some(decided.verdict)
    }

    /// To be called before the store is read for a verdict.
    pub(crate) fn begin(&self) -> Begun {
        Begun(self.changes.load(Ordering::SeqCst))
    }

    /// Keeps a verdict, unless something changed since the look began: what was read may be older than the change.
    pub(crate) fn put(&self, key: K, verdict: V, at: UnixMillis, begun: Begun) {
        self.kept.insert(key.clone(), Decided { verdict, at });
        if self.changes.load(Ordering::SeqCst) != begun.0 {
            self.kept.remove(&key);
        }
    }

    /// To be called after the change is in the store.
    pub(crate) fn forget(&self, key: &K) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.kept.remove(key);
    }

    /// As [`forget`](Self::forget), for everything.
    pub(crate) fn forget_all(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_that_was_overtaken_by_a_change_is_not_kept() {
        let verdicts = Verdicts::new();
        let begun = verdicts.begin();
        verdicts.forget(&"other");
        verdicts.put("key", true, UnixMillis(5), begun);
        assert_eq!(verdicts.get(&"key", UnixMillis(5)), None);
        verdicts.put("key", true, UnixMillis(5), verdicts.begin());
        assert_eq!(verdicts.get(&"key", UnixMillis(5)), Some(true));
    }
}
