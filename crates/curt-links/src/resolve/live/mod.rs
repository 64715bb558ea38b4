//! L1: the links that redirect, bounded in bytes, with eviction that a scan cannot abuse.
//!
//! Many small [tables](table), each behind its own lock, chosen by a seeded hash of the link's identity. Written for
//! one thing: a look-up among a million links waits for memory twice, for the table's slot and for the copy that it
//! names, where a general cache with its index, its entries and its copies waits four times. Look-ups take a lock that
//! they share, and write only a counter of uses that is mostly full.

mod table;

use std::hash::BuildHasher;
use std::sync::{PoisonError, RwLock};

use curt_core::LinkRef;
use quick_cache::DefaultHashBuilder;

use self::table::{TABLE_BITS, Table};
use super::record::Hit;

/// More tables than threads, so that they seldom meet, and small ones, so that one which grows is locked for
/// microseconds.
const TABLES_MAX: u64 = 1 << TABLE_BITS;
/// Less than this, and a few long targets would fill a table.
const TABLE_BYTES_MIN: u64 = 512 * 1_024;

pub(super) struct LiveCache {
    identity_hash: DefaultHashBuilder,
    /// A power of two of them.
    tables: Box<[Guarded]>,
}

/// On a cache line of its own, so that one table's lock is no other table's business.
#[repr(align(64))]
struct Guarded(RwLock<Table>);

impl LiveCache {
    pub(super) fn new(bytes_max: u64) -> Self {
        let wanted = (bytes_max / TABLE_BYTES_MIN).clamp(1, TABLES_MAX);
        let count = 1 << wanted.ilog2();
        let tables = (0..count).map(|_| Guarded(RwLock::new(Table::new(bytes_max / count))));
        Self {
            identity_hash: DefaultHashBuilder::default(),
            tables: tables.collect(),
        }
    }

    pub(super) fn get(&self, link: LinkRef<'_>) -> Option<Hit> {
        let hash = self.identity_hash.hash_one(link);
        let table = self.table(hash).0.read();
        let table = table.unwrap_or_else(PoisonError::into_inner);
        table.get(hash, link).cloned()
    }

    pub(super) fn insert(&self, link: LinkRef<'_>, copy: Hit) {
        self.change(link, |table, hash| table.insert(hash, link, copy));
    }

    pub(super) fn remove(&self, link: LinkRef<'_>) {
        self.change(link, |table, hash| {
            table.remove_if(hash, link, |_| true);
        });
    }

    /// Removes `copy` if it is what the cache still holds, and says whether it was.
    pub(super) fn remove_copy(&self, link: LinkRef<'_>, copy: &Hit) -> bool {
        self.change(link, |table, hash| {
            table.remove_if(hash, link, |held| held.is_same_copy(copy))
        })
    }

    pub(super) fn clear(&self) {
        for table in &self.tables {
            table
                .0
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
    }

    pub(super) fn links(&self) -> usize {
        self.sum(|table| table.links() as u64) as usize
    }

    pub(super) fn bytes(&self) -> u64 {
        self.sum(Table::bytes)
    }

    #[cfg(test)]
    fn has_kept_count(&self) -> bool {
        let kept = |table: &Guarded| table.0.read().is_ok_and(|table| table.has_kept_count());
        self.tables.iter().all(kept)
    }

    fn change<T>(&self, link: LinkRef<'_>, change: impl FnOnce(&mut Table, u64) -> T) -> T {
        let hash = self.identity_hash.hash_one(link);
        let table = self.table(hash).0.write();
        change(&mut table.unwrap_or_else(PoisonError::into_inner), hash)
    }

    /// By the highest bits; the table itself goes by the others.
    fn table(&self, hash: u64) -> &Guarded {
        &self.tables[(hash >> (u64::BITS - TABLE_BITS)) as usize & (self.tables.len() - 1)]
    }

    fn sum(&self, of: impl Fn(&Table) -> u64) -> u64 {
        let each = |table: &Guarded| of(&table.0.read().unwrap_or_else(PoisonError::into_inner));
        self.tables.iter().map(each).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use curt_core::{
        DomainId, KeyOrigin, Link, LinkState, OwnerId, RedirectStatus, Revision, Target,
        UnixMillis, Visibility,
    };
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn named(key: &str) -> LinkRef<'_> {
        LinkRef {
            domain: DomainId::DEFAULT,
            key,
        }
    }

    fn copy(key: &str, target_bytes: usize) -> Hit {
        let target = format!("https://example.com/{}", "x".repeat(target_bytes));
        let link = Link {
            id: named(key).to_id().unwrap(),
            target: Target::from_serialised(target).unwrap(),
            owner: OwnerId(1),
            made_with: None,
            state: LinkState::Active,
            revision: Revision::FIRST,
            origin: KeyOrigin::Random,
            created_at: UnixMillis(0),
            updated_at: UnixMillis(0),
            expires_at: None,
            valid_since: None,
            max_clicks: None,
            visibility: Visibility::Public,
            password_hash: None,
            status: RedirectStatus::Found,
            forward_query: false,
            title: None,
            tags: Vec::new(),
        };
        Hit::of(&link, UnixMillis(0))
    }

    /// Random work on few keys in a crowded cache, against a map that never forgets: the cache may have less, never
    /// anything else, and its sums are those of what it holds.
    #[test]
    fn holds_nothing_but_what_was_put_in_last() {
        let mut rng = SmallRng::seed_from_u64(7);
        let cache = LiveCache::new(40_000);
        let mut model: HashMap<String, Hit> = HashMap::new();
        for round in 0..200_000 {
            let key = format!("k{}", rng.random_range(0..600));
            match rng.random_range(0..10) {
                0..6 => {
                    if let Some(held) = cache.get(named(&key)) {
                        assert!(held.is_same_copy(&model[&key]), "{key} in round {round}");
                    }
                }
                6..8 => {
                    let new = copy(&key, rng.random_range(0..200));
                    cache.insert(named(&key), new.clone());
                    assert!(
                        cache
                            .get(named(&key))
                            .is_some_and(|held| held.is_same_copy(&new))
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
                        assert!(!cache.remove_copy(named(&key), &stranger));
                        assert!(cache.remove_copy(named(&key), held));
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
    fn a_copy_larger_than_its_table_is_not_held_and_the_smaller_ones_stay() {
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
    /// Crowded caches of many sizes, with visits, edits and deletions in turn: the sums must stay those of what is held,
    /// or a search for somebody to evict would find nobody.
    #[test]
    fn keeps_count_whatever_happens() {
        for seed in 0..20 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let links = rng.random_range(2_000..50_000);
            let cache = LiveCache::new(rng.random_range(100_000..3_000_000));
            let changes = rng.random_range(0.0..0.05);
            for round in 0..60_000 {
                // Cubed, so that some are visited often.
                let popularity: f64 = rng.random_range(0.0..1.0_f64).powi(3);
                let rank = (popularity * f64::from(links)) as usize;
                let key = format!("k{rank}");
                if cache.get(named(&key)).is_none() || rng.random_bool(changes) {
                    cache.insert(named(&key), copy(&key, (rank + round) % 90));
                } else if rng.random_bool(changes) {
                    cache.remove(named(&key));
                }
                if round % 10_000 == 0 {
                    assert!(cache.has_kept_count(), "seed {seed}, round {round}");
                }
            }
            assert!(cache.has_kept_count(), "seed {seed}");
        }
    }
}
