use std::collections::BTreeSet;

use super::ring::Ring;
use super::{Epoch, Modulo, NodeIndex, ShardId};
use crate::limits::LOGICAL_SHARDS;

/// Which node has which shard.
///
/// Maps follow each other by their version, from 0: one node that has everything, which is also what an unsharded store
/// goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMap {
    version: u64,
    /// By the number of the shard.
    owners: Vec<Owner>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Owner {
    node: NodeIndex,
    epoch: Epoch,
}

impl Default for ShardMap {
    fn default() -> Self {
        Self {
            version: 0,
            owners: vec![Owner::default(); LOGICAL_SHARDS.into()],
        }
    }
}

impl ShardMap {
    /// The map that follows the empty one with shards spread by `node_of`.
    fn spread(node_of: impl Fn(ShardId) -> NodeIndex) -> Self {
        let epoch = Epoch::default();
        let owner = |shard| Owner {
            node: node_of(shard),
            epoch,
        };
        Self {
            version: 1,
            owners: ShardId::all().map(owner).collect(),
        }
    }

    /// Gives the first node everything.
    #[must_use]
    pub fn of_one_node() -> Self {
        Self::spread(|_| NodeIndex(0))
    }

    /// Deals shards out to one node after the other. `None` for no node, or for more nodes than shards.
    #[must_use]
    pub fn by_modulo(nodes: usize) -> Option<Self> {
        let modulo = Modulo::new(nodes)?;
        Some(Self::spread(|shard| modulo.node_of(shard)))
    }

    /// Gives each node a range of neighbouring shards. `None` for no node, or for more nodes than shards.
    #[must_use]
    pub fn by_range(nodes: usize) -> Option<Self> {
        Modulo::new(nodes)?;
        let nodes = u32::try_from(nodes).ok()?;
        let node_of =
            |shard: ShardId| u32::from(shard.number()) * nodes / u32::from(LOGICAL_SHARDS);
        Some(Self::spread(|shard| NodeIndex(node_of(shard))))
    }

    /// Spreads shards by consistent hashing with `points` virtual nodes for each name. `None` without nodes or points.
    #[must_use]
    pub fn by_ring<S: AsRef<str>>(names: &[S], points: u32) -> Option<Self> {
        let ring = Ring::new(names, points)?;
        Some(Self::spread(|shard| ring.node_of(shard)))
    }

    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    #[must_use]
    pub fn node(&self, shard: ShardId) -> NodeIndex {
        self.owner(shard).node
    }

    #[must_use]
    pub fn epoch(&self, shard: ShardId) -> Epoch {
        self.owner(shard).epoch
    }

    /// The next map, in which `to` owns `shard` at the next epoch.
    #[must_use]
    pub fn moved(&self, shard: ShardId, to: NodeIndex) -> Self {
        let mut next = self.clone();
        next.version += 1;
        next.owners[usize::from(shard.number())] = Owner {
            node: to,
            epoch: Epoch(self.epoch(shard).0 + 1),
        };
        next
    }

    /// The next map, in which the node that owns `shard` keeps it, at `epoch` or later: so that it takes writes again
    /// after it was sealed for a move that did not come to be.
    #[must_use]
    pub fn renewed(&self, shard: ShardId, epoch: Epoch) -> Self {
        let mut next = self.clone();
        next.version += 1;
        let owner = &mut next.owners[usize::from(shard.number())];
        owner.epoch = owner.epoch.max(epoch);
        next
    }

    /// The nodes that have shards, in order.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeIndex> {
        let nodes: BTreeSet<_> = self.owners.iter().map(|owner| owner.node).collect();
        nodes.into_iter().collect()
    }

    fn owner(&self, shard: ShardId) -> Owner {
        self.owners[usize::from(shard.number())]
    }

    /// The version, and a line with node and epoch for each shard.
    #[must_use]
    pub fn to_text(&self) -> String {
        let lines = self.owners.iter();
        let lines = lines.map(|owner| format!("\n{} {}", owner.node.0, owner.epoch.0));
        self.version.to_string() + &lines.collect::<String>()
    }

    /// `None`: the text is not one of [`to_text`](Self::to_text).
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let (version, lines) = text.split_once('\n')?;
        let owner = |line: &str| {
            let (node, epoch) = line.split_once(' ')?;
            Some(Owner {
                node: NodeIndex(node.parse().ok()?),
                epoch: Epoch(epoch.parse().ok()?),
            })
        };
        let map = Self {
            version: version.parse().ok()?,
            owners: lines.split('\n').map(owner).collect::<Option<_>>()?,
        };
        // One form for each map: numbers with a sign or with leading zeros are not ours.
        let is_whole = map.owners.len() == usize::from(LOGICAL_SHARDS) && map.to_text() == text;
        is_whole.then_some(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("node-{n}")).collect()
    }

    fn nodes(map: &ShardMap) -> Vec<u32> {
        ShardId::all().map(|shard| map.node(shard).0).collect()
    }

    #[test]
    fn every_node_gets_its_share_by_modulo_and_by_range() {
        for map in [ShardMap::by_modulo(5), ShardMap::by_range(5)] {
            let mut counts = [0; 5];
            nodes(&map.unwrap())
                .iter()
                .for_each(|node| counts[*node as usize] += 1);
            assert!(
                counts.iter().all(|count| (204..=205).contains(count)),
                "{counts:?}"
            );
        }
        assert!(nodes(&ShardMap::by_range(5).unwrap()).is_sorted());
        assert_eq!(
            nodes(&ShardMap::by_modulo(5).unwrap())[..6],
            [0, 1, 2, 3, 4, 0]
        );
        for none in [0, 1_025] {
            assert!(
                ShardMap::by_modulo(none)
                    .or(ShardMap::by_range(none))
                    .is_none()
            );
        }
        assert!(
            ShardMap::by_ring::<&str>(&[], 8)
                .or(ShardMap::by_ring(&["a"], 0))
                .is_none()
        );
    }

    #[test]
    fn a_node_that_joins_a_ring_takes_about_its_share_and_no_other_shard_moves() {
        let before = nodes(&ShardMap::by_ring(&names(4), 256).unwrap());
        let after = nodes(&ShardMap::by_ring(&names(5), 256).unwrap());
        let moved: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
        assert!(moved.iter().all(|(_, to)| **to == 4));
        let share = moved.len() as f64 / before.len() as f64;
        assert!(
            (0.12..0.28).contains(&share),
            "moved {share}, expected about 0.2"
        );
    }

    #[test]
    fn the_order_of_a_rings_nodes_moves_nothing() {
        let forward = nodes(&ShardMap::by_ring(&["a", "b", "c"], 64).unwrap());
        let backward = nodes(&ShardMap::by_ring(&["c", "b", "a"], 64).unwrap());
        assert!(forward.iter().zip(&backward).all(|(a, b)| *a == 2 - b));
    }

    #[test]
    fn a_move_changes_one_shard_and_its_epoch() {
        let first = ShardMap::by_modulo(2).unwrap();
        let shard = ShardId::new(7).unwrap();
        let second = first.moved(shard, NodeIndex(0));
        assert_eq!((first.version(), second.version()), (1, 2));
        assert_eq!(
            (second.node(shard), second.epoch(shard)),
            (NodeIndex(0), Epoch(1))
        );
        let is_changed = |shard: &ShardId| first.owner(*shard) != second.owner(*shard);
        assert_eq!(
            ShardId::all().filter(is_changed).collect::<Vec<_>>(),
            [shard]
        );
        assert_eq!(second.moved(shard, NodeIndex(1)).epoch(shard), Epoch(2));
    }

    #[test]
    fn a_map_survives_its_text_and_nothing_else_is_one() {
        let map = ShardMap::by_ring(&names(3), 16).unwrap();
        let map = map.moved(ShardId::new(1_023).unwrap(), NodeIndex(9));
        let text = map.to_text();
        assert_eq!(ShardMap::of_text(&text), Some(map));
        let (shorter, longer) = (text.rsplit_once('\n').unwrap().0, format!("{text}\n0 0"));
        let (padded, signed) = (format!("0{text}"), format!("+{text}"));
        for other in [
            "",
            "1",
            shorter,
            &longer,
            &padded,
            &signed,
            &format!("{text}\n"),
        ] {
            assert_eq!(ShardMap::of_text(other), None, "{:.20}", other);
        }
    }
}
