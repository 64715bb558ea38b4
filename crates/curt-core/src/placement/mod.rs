//! Placement: which node holds a key.
//!
//! A key is hashed to one of [`LOGICAL_SHARDS`] logical shards ([`ShardId`]), and a versioned [`ShardMap`] says which node
//! has that shard. The hash is part of the stored format: xxh3-64 with seed 0, held by golden vectors. Rust's own hasher
//! is seeded per process and would lose every link at the next start.

mod modulo;
mod ring;
mod shard_map;

pub use modulo::Modulo;
pub use ring::Ring;
pub use shard_map::ShardMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::key::LinkId;
use crate::limits::LOGICAL_SHARDS;
use crate::owner::OwnerId;

/// A node's position in the configured list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// One of the [`LOGICAL_SHARDS`] logical shards. Links move between nodes by whole shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(u16);

/// Grows each time that a shard gets another owner. A write carries the epoch of the map that it was routed by, so that
/// a former owner can refuse it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl ShardId {
    /// The shard of a link. Its domain does not count.
    #[must_use]
    pub fn of(id: &LinkId) -> Self {
        Self::of_key(id.key.as_bytes())
    }

    fn of_key(key: &[u8]) -> Self {
        // The remainder is below 1,024.
        Self(u16::try_from(hash(key) % u64::from(LOGICAL_SHARDS)).unwrap_or(0))
    }

    /// The shard that keeps the record of a request with this idempotency key.
    #[must_use]
    pub fn of_request(owner: OwnerId, key: &str) -> Self {
        Self::of_key(&[&owner.0.to_le_bytes(), key.as_bytes()].concat())
    }

    /// `None`: there is no such shard.
    #[must_use]
    pub fn new(number: u16) -> Option<Self> {
        (number < LOGICAL_SHARDS).then_some(Self(number))
    }

    pub fn all() -> impl Iterator<Item = Self> {
        (0..LOGICAL_SHARDS).map(Self)
    }

    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

/// How shards are spread over nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    Modulo,
    /// Consistent hashing.
    Ring {
        virtual_nodes: u32,
    },
    Range,
}

impl Placement {
    /// The first map over this many nodes. `None` for no node, or for more nodes than shards.
    #[must_use]
    pub fn first_map(self, nodes: usize) -> Option<ShardMap> {
        match self {
            Self::Modulo => ShardMap::by_modulo(nodes),
            Self::Range => ShardMap::by_range(nodes),
            Self::Ring { virtual_nodes } => {
                Modulo::new(nodes)?;
                // Names of their own, so that an address may change and nothing moves.
                let names: Vec<String> = (0..nodes).map(|node| format!("node-{node}")).collect();
                ShardMap::by_ring(&names, virtual_nodes)
            }
        }
    }
}

/// The stable hash of a key.
#[must_use]
pub fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{DomainId, Key};

    #[test]
    fn golden_hashes_never_change() {
        assert_eq!(hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hash(b"a"), 0xe6c6_32b6_1e96_4e1f);
        assert_eq!(hash(b"abc"), 0x78af_5f94_892f_3950);
    }

    #[test]
    fn golden_shards_of_requests_never_change() {
        let shards = [(0, ""), (1, "abc"), (7_000_000_000, "abc")]
            .map(|(owner, key)| ShardId::of_request(OwnerId(owner), key).number());
        assert_eq!(shards, [217, 308, 146]);
    }

    #[test]
    fn golden_shards_never_change_whatever_the_domain() {
        for (key, shard) in [("a", 0x21f), ("abc", 0x150), ("Zz09-_.x", 0x0eb)] {
            for domain in [DomainId::DEFAULT, DomainId(7)] {
                let id = LinkId::new(domain, Key::parse(key).unwrap());
                assert_eq!(ShardId::of(&id), ShardId(shard), "{id}");
            }
        }
    }
}
