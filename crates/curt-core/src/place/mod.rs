//! Placement: which node holds a key.
//!
//! A key is hashed to one of [`LOGICAL_SHARDS`](crate::limits::LOGICAL_SHARDS) logical shards, and a versioned map
//! says which node has that shard. The hash is part of the stored format: xxh3-64 with seed 0, held by golden
//! vectors. Rust's own hasher is seeded per process and would lose every link at the next start.

mod modulo;
mod range;
mod ring;

pub use modulo::Modulo;
pub use range::{RangeError, Ranges};
pub use ring::Ring;

use xxhash_rust::xxh3::xxh3_64;

use crate::limits::LOGICAL_SHARDS;

/// A node's position in the configured list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// The stable hash of a key.
#[must_use]
pub fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// The logical shard of a key.
#[must_use]
pub fn logical_shard(key: &[u8]) -> u32 {
    u32::try_from(hash(key) % u64::from(LOGICAL_SHARDS)).unwrap_or(0)
}

/// A rule that gives every key one node.
#[derive(Clone, Debug)]
pub enum Placement {
    Modulo(Modulo),
    Ring(Ring),
    Ranges(Ranges),
}

impl Placement {
    #[must_use]
    pub fn node(&self, key: &[u8]) -> NodeIndex {
        match self {
            Self::Modulo(modulo) => modulo.node(key),
            Self::Ring(ring) => ring.node(key),
            Self::Ranges(ranges) => ranges.node(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_hashes_never_change() {
        assert_eq!(hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hash(b"a"), 0xe6c6_32b6_1e96_4e1f);
        assert_eq!(hash(b"abc"), 0x78af_5f94_892f_3950);
        assert_eq!(logical_shard(b"abc"), 0x150);
    }
}
