use super::{NodeIndex, hash, logical_shard};
use crate::limits::LOGICAL_SHARDS;

/// Consistent hashing with virtual nodes: a key belongs to the next point clockwise. When a node joins n others,
/// about 1/(n+1) of the keys move, and all of them to it.
#[derive(Clone, Debug)]
pub struct Ring {
    /// The node of each logical shard, worked out once: a look-up is an index and not a search.
    owners: Vec<NodeIndex>,
}

impl Ring {
    /// A ring of the named nodes with `points` virtual nodes each. Names, not positions, decide the points, so that
    /// reordering the list moves nothing. `None` without nodes or points.
    #[must_use]
    pub fn new<S: AsRef<str>>(names: &[S], points: u32) -> Option<Self> {
        if names.is_empty() || points == 0 {
            return None;
        }
        let mut circle: Vec<(u64, NodeIndex)> = Vec::new();
        for (index, name) in (0_u32..).zip(names) {
            for point in 0..points {
                let place = hash(format!("{}#{point}", name.as_ref()).as_bytes());
                circle.push((place, NodeIndex(index)));
            }
        }
        circle.sort_unstable();
        let owners = (0..LOGICAL_SHARDS)
            .map(|shard| {
                let place = hash(&shard.to_le_bytes());
                let next = circle.partition_point(|&(point, _)| point < place);
                circle[next % circle.len()].1
            })
            .collect();
        Some(Self { owners })
    }

    #[must_use]
    pub fn node(&self, key: &[u8]) -> NodeIndex {
        self.owners[logical_shard(key) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("node-{n}")).collect()
    }

    fn placed(ring: &Ring) -> Vec<NodeIndex> {
        (0..20_000_u32)
            .map(|n| ring.node(n.to_string().as_bytes()))
            .collect()
    }

    #[test]
    fn a_joining_node_takes_about_its_share_and_nobody_else_moves() {
        let before = placed(&Ring::new(&names(4), 256).unwrap());
        let after = placed(&Ring::new(&names(5), 256).unwrap());
        let moved: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
        assert!(moved.iter().all(|(_, to)| **to == NodeIndex(4)));
        let share = moved.len() as f64 / before.len() as f64;
        assert!(
            (0.12..0.28).contains(&share),
            "moved {share}, expected about 0.2"
        );
    }

    #[test]
    fn the_order_of_the_list_moves_nothing() {
        let forward = Ring::new(&["a", "b", "c"], 64).unwrap();
        let backward = Ring::new(&["c", "b", "a"], 64).unwrap();
        for n in 0..1_000_u32 {
            let key = n.to_string();
            assert_eq!(
                forward.node(key.as_bytes()).0,
                2 - backward.node(key.as_bytes()).0
            );
        }
    }
}
