use super::{NodeIndex, ShardId, hash};

/// Consistent hashing with virtual nodes: a shard belongs to the next point clockwise. When a node joins n others, about
/// 1/(n+1) of the shards move, and all of them to it.
pub(super) struct Ring {
    /// Where the points of the nodes lie, in order; at least one.
    points: Vec<(u64, NodeIndex)>,
}

impl Ring {
    /// A ring of the named nodes with `points` virtual nodes each. Names, not positions, decide the points, so that
    /// reordering the list moves nothing. `None` without nodes or points.
    pub(super) fn new<S: AsRef<str>>(names: &[S], points: u32) -> Option<Self> {
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
}
