//! Checksums of whole stores, whatever order they are read in.

use std::hash::{Hash, Hasher};

use curt_core::ports::Transferred;
use xxhash_rust::xxh3::Xxh3Default;

/// Items are summed up by the hash of their name in so many buckets, so that a difference can be found again.
const BUCKETS: usize = 1_024;

/// How many items there are, and a sum over the hashes of all of them. Comparable within one process only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    items: u64,
    checksums: Vec<u64>,
}

impl Default for Digest {
    fn default() -> Self {
        let checksums = vec![0; BUCKETS];
        Self {
            items: 0,
            checksums,
        }
    }
}

/// How two stores differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub source_items: u64,
    pub destination_items: u64,
    /// Of 1,024 buckets.
    pub buckets_that_differ: usize,
}

impl Digest {
    pub(crate) fn add<Item: Transferred>(&mut self, item: &Item) {
        let bucket = bucket_of(item);
        self.items += 1;
        // A sum, so that order does not count, and an item that is there twice is not taken for none.
        self.checksums[bucket] = self.checksums[bucket].wrapping_add(hash_of(item));
    }

    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// One number for all items.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        hash_of(&self.checksums)
    }

    #[must_use]
    pub fn compare(&self, destination: &Self) -> Comparison {
        let pairs = self.checksums.iter().zip(&destination.checksums);
        Comparison {
            source_items: self.items,
            destination_items: destination.items,
            buckets_that_differ: pairs.filter(|(source, copy)| source != copy).count(),
        }
    }
}

impl Comparison {
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.source_items == self.destination_items && self.buckets_that_differ == 0
    }
}

pub(crate) fn bucket_of<Item: Transferred>(item: &Item) -> usize {
    let hash = hash_of(&item.name());
    usize::try_from(hash % BUCKETS as u64).unwrap_or(0)
}

pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = Xxh3Default::new();
    value.hash(&mut hasher);
    hasher.finish()
}
