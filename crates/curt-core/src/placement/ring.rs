use super::{NodeIndex, ShardId, hash};

/// Consistent hashing with virtual nodes: a key belongs to the next point clockwise. When a node joins n others, about
/// 1/(n+1) of the keys move, and all of them to it.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Where the points of the nodes lie, in order; at least one.
    points: Vec<(u64, NodeIndex)>,
}

impl Ring {
    /// A ring of the named nodes with `points` virtual nodes each. Names, not positions, decide the points, so that
    /// reordering the list moves nothing. `None` without nodes or points.
    #[must_use]
    pub fn new<S: AsRef<str>>(names: &[S], points: u32) -> Option<Self> {
        let of_node = |(index, name): (u32, &S)| {
            let name = name.as_ref().to_owned();
            (0..points).map(move |point| {
                let position = hash(format!("{name}#{point}").as_bytes());
                (position, NodeIndex(index))
            })
        };
        let mut points: Vec<_> = (0..).zip(names).flat_map(of_node).collect();
        points.sort_unstable();
        (!points.is_empty()).then_some(Self { points })
    }

    pub(super) fn node_of(&self, shard: ShardId) -> NodeIndex {
        let position = hash(&u32::from(shard.number()).to_le_bytes());
        let next = self.points.partition_point(|&(point, _)| point < position);
        self.points[next % self.points.len()].1
    }

    /// Returns the nodes that hold a key, `count` at most: the first is where it belongs, the others are the next ones
    /// clockwise. When a node leaves, its place is taken by the next one, and the others stay.
    #[must_use]
    pub fn nodes_of(&self, key: &[u8], count: usize) -> Vec<NodeIndex> {
        let position = hash(key);
        let next = self.points.partition_point(|&(point, _)| point < position);
        let clockwise = self.points[next..].iter().chain(&self.points[..next]);
        let mut nodes = Vec::with_capacity(count);
        for (_, node) in clockwise {
            if nodes.len() == count {
                break;
            }
            if !nodes.contains(node) {
                nodes.push(*node);
            }
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["a:1", "b:1", "c:1", "d:1"];

    fn keys() -> impl Iterator<Item = String> {
        (0..2_000).map(|number| format!("0/k{number}"))
    }

    #[test]
    fn replicas_are_on_different_nodes_and_no_more_than_there_are() {
        let ring = Ring::new(&NAMES, 100).unwrap();
        for key in keys() {
            let mut nodes = ring.nodes_of(key.as_bytes(), 9);
            nodes.sort_unstable();
            assert_eq!(nodes, [0, 1, 2, 3].map(NodeIndex));
        }
    }

    #[test]
    fn a_node_that_leaves_moves_its_own_keys_alone() {
        let (four, three) = (Ring::new(&NAMES, 100), Ring::new(&NAMES[..3], 100));
        let (four, three) = (four.unwrap(), three.unwrap());
        let mut moved = 0_usize;
        for key in keys() {
            let before = four.nodes_of(key.as_bytes(), 1);
            let after = three.nodes_of(key.as_bytes(), 1);
            let was_there = before == [NodeIndex(3)];
            moved += usize::from(was_there);
            assert!(was_there || before == after, "{key}");
        }
        assert!(
            (300..700).contains(&moved),
            "{moved} of 2000 on one of four"
        );
    }
}
