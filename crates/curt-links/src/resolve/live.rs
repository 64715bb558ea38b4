//! L1: the links that redirect, bounded in bytes, with eviction that a scan cannot abuse.
//!
//! The cache is keyed by a seeded 64-bit hash of the link's identity and not by the identity itself, which would cost
//! 24 bytes more in every slot. The copy holds its identity and is compared at every look-up: two links with the same
//! hash would only push each other out.

use std::hash::{BuildHasher, Hasher};

use curt_core::LinkRef;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::record::Hit;

/// What a link costs beside its own allocation: slot, index, and its share of the slots that remember evicted hashes.
/// Measured with `examples/l1_memory.rs`: 193 bytes in all for a link with a target of 60 bytes, 128 of them its own.
const SLOT_BYTES: u64 = 65;
/// Only sizes the index: an ordinary link with a target of 60 bytes.
const TYPICAL_LINK_BYTES: u64 = 193;
/// The counters of an `Arc`, in front of its bytes, and what the allocator adds for itself.
const ALLOCATION_EXTRA: usize = 16 + 8;
/// What allocators round sizes of this order up to.
const ALLOCATION_STEP: usize = 16;
/// One remembered hash of an evicted link for so many resident ones. A quarter keeps the hit rate on a Zipf mix within
/// half a point of what twice as many give.
const LINKS_PER_GHOST: usize = 4;
/// A larger cache grows its index by steps: nobody should be refused memory that may never be used.
const LINKS_RESERVED_MAX: usize = 16 * 1_024 * 1_024;

pub(super) struct LiveCache {
    identity_hash: DefaultHashBuilder,
    cache: Cache<u64, Hit, ByBytes, AlreadyHashed>,
}

impl LiveCache {
    pub(super) fn new(bytes_max: u64) -> Self {
        let links = usize::try_from(bytes_max / TYPICAL_LINK_BYTES).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(links.max(1))
            .weight_capacity(bytes_max)
            .ghost_allocation(1.0 / LINKS_PER_GHOST as f64)
            .build();
        #[expect(clippy::expect_used, reason = "both capacities are set above")]
        let options = options.expect("the options are complete");
        let cache =
            Cache::with_options(options, ByBytes, AlreadyHashed, DefaultLifecycle::default());
        // Address space, which costs no memory until it is written to. Growing by steps would copy the whole index
        // under its lock, and leave the copies' memory behind.
        let links = links.min(LINKS_RESERVED_MAX);
        cache.reserve(links + links / LINKS_PER_GHOST);
        Self {
            identity_hash: DefaultHashBuilder::default(),
            cache,
        }
    }

    pub(super) fn get(&self, link: LinkRef<'_>) -> Option<Hit> {
        self.cache
            .get(&self.slot(link))
            .filter(|copy| copy.is_of(link))
    }

    pub(super) fn insert(&self, link: LinkRef<'_>, copy: Hit) {
        self.cache.insert(self.slot(link), copy);
    }

    pub(super) fn remove(&self, link: LinkRef<'_>) {
        self.cache.remove(&self.slot(link));
    }

    /// Removes `copy` if it is what the cache still holds, and says whether it was.
    pub(super) fn remove_copy(&self, link: LinkRef<'_>, copy: &Hit) -> bool {
        self.cache
            .remove_if(&self.slot(link), |held| held.is_same_copy(copy))
            .is_some()
    }

    pub(super) fn clear(&self) {
        self.cache.clear();
    }

    pub(super) fn links(&self) -> usize {
        self.cache.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.cache.weight()
    }

    fn slot(&self, link: LinkRef<'_>) -> u64 {
        self.identity_hash.hash_one(link)
    }
}

#[derive(Clone, Copy)]
struct ByBytes;

impl Weighter<u64, Hit> for ByBytes {
    fn weight(&self, _slot: &u64, copy: &Hit) -> u64 {
        let allocated = (ALLOCATION_EXTRA + copy.len()).next_multiple_of(ALLOCATION_STEP);
        SLOT_BYTES + allocated as u64
    }
}

/// The slot is a hash: hashing it again would be waste.
#[derive(Clone, Copy, Default)]
struct AlreadyHashed;

impl BuildHasher for AlreadyHashed {
    type Hasher = Passed;

    fn build_hasher(&self) -> Passed {
        Passed(0)
    }
}

struct Passed(u64);

impl Hasher for Passed {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, slot: u64) {
        self.0 = slot;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
