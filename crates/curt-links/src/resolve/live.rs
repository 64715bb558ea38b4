//! L1: the links that redirect, bounded in bytes, with eviction that a scan cannot abuse.
//!
//! Links are found by a seeded hash of their identity. Two with the same hash push each other out, and are told apart by
//! the key in the served form.

use std::hash::BuildHasher;

use curt_core::{LinkRef, ServedLink};
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Weighter};

/// What a link costs beside its own allocation: its entry, and its share of the index and of the remembered hashes.
/// Measured with `examples/l1_memory.rs`.
const ENTRY_BYTES: u64 = 56;
/// The counters of an `Arc`, in front of its bytes, and what the allocator adds for itself.
const ALLOCATION_EXTRA: usize = 16 + 8;
/// What allocators round sizes of this order up to.
const ALLOCATION_STEP: usize = 16;
/// A cached link of usual length.
const LINK_BYTES: u64 = 200;

pub(super) struct LiveCache {
    identity_hash: DefaultHashBuilder,
    /// By the seeded hash of the identity, which the served link itself has.
    links: Cache<u64, ServedLink, LinkWeighter>,
}

#[derive(Clone)]
struct LinkWeighter;

impl Weighter<u64, ServedLink> for LinkWeighter {
    fn weight(&self, _: &u64, link: &ServedLink) -> u64 {
        let allocated =
            (ALLOCATION_EXTRA + link.as_bytes().len()).next_multiple_of(ALLOCATION_STEP);
        ENTRY_BYTES + allocated as u64
    }
}

impl LiveCache {
    pub(super) fn new(bytes_max: u64) -> Self {
        let links = usize::try_from(bytes_max / LINK_BYTES).unwrap_or(usize::MAX);
        Self {
            identity_hash: DefaultHashBuilder::default(),
            links: Cache::with_weighter(links.max(1), bytes_max, LinkWeighter),
        }
    }

    pub(super) fn get(&self, link: LinkRef<'_>) -> Option<ServedLink> {
        let served = self.links.get(&self.hash(link))?;
        served.is_of(link).then_some(served)
    }

    pub(super) fn insert(&self, link: LinkRef<'_>, served: ServedLink) {
        self.links.insert(self.hash(link), served);
    }

    pub(super) fn remove(&self, link: LinkRef<'_>) {
        self.links.remove(&self.hash(link));
    }

    /// Removes `served` if it is what the cache still has, and says whether it was.
    pub(super) fn remove_same(&self, link: LinkRef<'_>, served: &ServedLink) -> bool {
        let is_same = |cached: &ServedLink| cached.is_clone_of(served);
        self.links.remove_if(&self.hash(link), is_same).is_some()
    }

    pub(super) fn clear(&self) {
        self.links.clear();
    }

    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.links.weight()
    }

    fn hash(&self, link: LinkRef<'_>) -> u64 {
        self.identity_hash.hash_one(link)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use curt_core::{DomainId, Link, Target, UnixMillis};
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn named(key: &str) -> LinkRef<'_> {
        LinkRef {
            domain: DomainId::DEFAULT,
            key,
        }
    }

    fn copy(key: &str, target_bytes: usize) -> ServedLink {
        let target = format!("https://example.com/{}", "x".repeat(target_bytes));
        let link = Link {
            target: Target::from_serialised(target).unwrap(),
            ..curt_testkit::sample::link(key)
        };
        ServedLink::new(&link, UnixMillis(0))
    }

    /// Random work on few keys in a crowded cache, against a map that never forgets: the cache may have less, never
    /// anything else, and its sums are those of what it holds.
    #[test]
    fn holds_nothing_but_what_was_put_in_last() {
        let mut rng = SmallRng::seed_from_u64(7);
        let cache = LiveCache::new(40_000);
        let mut model: HashMap<String, ServedLink> = HashMap::new();
        for round in 0..200_000 {
            let key = format!("k{}", rng.random_range(0..600));
            match rng.random_range(0..10) {
                0..6 => {
                    if let Some(held) = cache.get(named(&key)) {
                        assert!(held.is_clone_of(&model[&key]), "{key} in round {round}");
                    }
                }
                6..8 => {
                    let new = copy(&key, rng.random_range(0..200));
                    cache.insert(named(&key), new.clone());
                    assert!(
                        cache
                            .get(named(&key))
                            .is_some_and(|held| held.is_clone_of(&new))
                    );
                    model.insert(key, new);
                }
                8 => {
                    cache.remove(named(&key));
                    assert_eq!(cache.get(named(&key)), None);
                    model.remove(&key);
                }
                _ => {
                    let held = cache.get(named(&key));
                    if let Some(held) = &held {
                        let stranger = copy(&key, 1);
                        assert!(!cache.remove_same(named(&key), &stranger));
                        assert!(cache.remove_same(named(&key), held));
                        model.remove(&key);
                    }
                }
            }
            assert!(cache.bytes() <= 40_000);
        }
        let held = model.keys().filter(|key| cache.get(named(key)).is_some());
        assert_eq!(held.count(), cache.links());
        let mut keys = model.keys();
        for key in keys.by_ref().take(100) {
            cache.remove(named(key));
        }
        assert!(cache.links() > 0);
        cache.clear();
        assert_eq!((cache.links(), cache.bytes()), (0, 0));
        assert!(keys.all(|key| cache.get(named(key)).is_none()));
    }

    #[test]
    fn a_link_larger_than_the_cache_is_not_held_and_the_smaller_ones_stay() {
        let cache = LiveCache::new(1_000);
        cache.insert(named("small"), copy("small", 10));
        cache.insert(named("large"), copy("large", 2_000));
        assert_eq!(cache.get(named("large")), None);
        assert!(cache.get(named("small")).is_some());
        // Not even in the place of a smaller one, which is out of date by then.
        cache.insert(named("small"), copy("small", 2_000));
        assert_eq!(cache.get(named("small")), None);
        assert_eq!((cache.links(), cache.bytes()), (0, 0));
    }

    /// Among 100,000 links with Zipf's distribution, the 5,000 most popular get three of four visits: a cache of 5,000
    /// that knew the future would hit 75 %. Forgetting the least recently used would hit 65 %, this hits 73 %.
    #[test]
    fn the_popular_ones_stay() {
        const LINKS: usize = 100_000;
        const HELD: u64 = 5_000;
        let keys: Vec<String> = (0..LINKS).map(|number| format!("k{number:06}")).collect();
        let one = copy(&keys[0], 40);
        let each = {
            let cache = LiveCache::new(1 << 20);
            cache.insert(named(&keys[0]), one);
            cache.bytes()
        };
        let cache = LiveCache::new(each * HELD);
        let mut shares: Vec<f64> = (1..=LINKS).map(|rank| 1.0 / rank as f64).collect();
        for rank in 1..LINKS {
            shares[rank] += shares[rank - 1];
        }
        let mut rng = SmallRng::seed_from_u64(11);
        let mut visit = || {
            let at = rng.random_range(0.0..shares[LINKS - 1]);
            let key = &keys[shares.partition_point(|sum| *sum < at).min(LINKS - 1)];
            let hit = cache.get(named(key)).is_some();
            if !hit {
                cache.insert(named(key), copy(key, 40));
            }
            u32::from(hit)
        };
        let warm_up: u32 = (0..200_000).map(|_| visit()).sum();
        let hits: u32 = (0..200_000).map(|_| visit()).sum();
        let rate = f64::from(hits) / 200_000.0;
        assert!(rate > 0.72, "{rate}, {warm_up} before");
        // A walk through all links leaves most of the popular ones where they are.
        for key in &keys {
            if cache.get(named(key)).is_none() {
                cache.insert(named(key), copy(key, 40));
            }
        }
        let after: u32 = (0..10_000).map(|_| visit()).sum();
        assert!(after > 7_000, "{after} of 10,000 visits");
    }

    /// Readers and writers on all threads: every answer is one that was put in for that key.
    #[test]
    fn threads_see_whole_copies_of_the_right_link() {
        let cache = Arc::new(LiveCache::new(200_000));
        let threads: Vec<_> = (0..8_u64)
            .map(|seed| {
                let cache = Arc::clone(&cache);
                std::thread::spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(seed);
                    for _ in 0..20_000 {
                        let key = format!("k{}", rng.random_range(0..2_000));
                        match rng.random_range(0..4) {
                            0 => cache.insert(named(&key), copy(&key, rng.random_range(0..100))),
                            1 if seed == 0 => cache.remove(named(&key)),
                            _ => {
                                let held = cache.get(named(&key));
                                assert!(held.is_none_or(|held| held.is_of(named(&key))));
                            }
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(cache.bytes() <= 200_000);
    }
}
