use super::{NodeIndex, ShardId};
use crate::limits::LOGICAL_SHARDS;

/// Logical shard modulo the number of nodes. Simple, and moves almost every key when a node is added.
#[derive(Clone, Copy, Debug)]
pub struct Modulo {
    nodes: u16,
}

impl Modulo {
    /// `None` for no node, or for more nodes than logical shards.
    #[must_use]
    pub fn new(nodes: usize) -> Option<Self> {
        let nodes = u16::try_from(nodes).ok()?;
        let is_placeable = (1..=LOGICAL_SHARDS).contains(&nodes);
        is_placeable.then_some(Self { nodes })
    }

    #[must_use]
    pub fn node(&self, key: &[u8]) -> NodeIndex {
        self.node_of(ShardId::of_key(key))
    }

    pub(super) fn node_of(&self, shard: ShardId) -> NodeIndex {
        NodeIndex((shard.number() % self.nodes).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_keys_evenly() {
        let modulo = Modulo::new(32).unwrap();
        let mut counts = [0_u32; 32];
        for n in 0..64_000_u32 {
            counts[modulo.node(n.to_string().as_bytes()).0 as usize] += 1;
        }
        let most = counts.iter().max().unwrap();
        assert!(
            *most < 2_300,
            "the fullest of 32 nodes has {most} of 64,000 keys"
        );
    }

    #[test]
    fn refuses_counts_it_cannot_place() {
        assert!(Modulo::new(0).is_none());
        assert!(Modulo::new(usize::from(LOGICAL_SHARDS) + 1).is_none());
    }
}
