//! Which shards move when nodes join or leave.

use std::collections::BTreeMap;

use curt_core::{NodeIndex, Placement, ShardId, ShardMap};

/// A shard that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedMove {
    pub shard: ShardId,
    pub from: NodeIndex,
    pub to: NodeIndex,
}

/// The moves after which the shards are spread over `nodes` as the placement does it. `None` for no node, or for more nodes
/// than shards.
///
/// - *modulo*: as if these were the first nodes, which moves nearly all shards when a node joins;
/// - *ring*: consistent hashing, which moves the share of a node that joins, all of it there;
/// - *range*: ranges are split: a node that joins takes the upper ends of the widest ranges until it has its share, so that
///   the others keep one range each.
#[must_use]
pub fn plan_rebalance(
    map: &ShardMap,
    nodes: &[NodeIndex],
    placement: Placement,
) -> Option<Vec<PlannedMove>> {
    let next: Vec<NodeIndex> = match placement {
        Placement::Modulo => {
            let spread = ShardMap::by_modulo(nodes.len())?;
            owners_among(&spread, nodes)
        }
        Placement::Ring { virtual_nodes } => {
            ShardMap::by_modulo(nodes.len())?;
            let names: Vec<String> = nodes
                .iter()
                .map(|node| format!("node-{}", node.0))
                .collect();
            owners_among(&ShardMap::by_ring(&names, virtual_nodes)?, nodes)
        }
        Placement::Range => {
            ShardMap::by_range(nodes.len())?;
            split_ranges(map, nodes)
        }
    };
    let planned = ShardId::all().zip(next).map(|(shard, to)| PlannedMove {
        shard,
        from: map.node(shard),
        to,
    });
    Some(
        planned
            .filter(|planned| planned.from != planned.to)
            .collect(),
    )
}

/// The moves after which `node` has no shard, and the others have theirs and a part of its. `None`: there is no other.
#[must_use]
pub fn plan_drain(
    map: &ShardMap,
    node: NodeIndex,
    others: &[NodeIndex],
    placement: Placement,
) -> Option<Vec<PlannedMove>> {
    if let Placement::Ring { .. } = placement {
        let moves = plan_rebalance(map, others, placement)?;
        return Some(
            moves
                .into_iter()
                .filter(|planned| planned.from == node)
                .collect(),
        );
    }
    let mut counts = count_shards(map, others);
    let mut moves = Vec::new();
    for shard in ShardId::all().filter(|shard| map.node(*shard) == node) {
        let (to, count) = counts.iter_mut().min_by_key(|(_, count)| **count)?;
        *count += 1;
        moves.push(PlannedMove {
            shard,
            from: node,
            to: *to,
        });
    }
    Some(moves)
}

/// The owners in a map over the places of `nodes`.
fn owners_among(spread: &ShardMap, nodes: &[NodeIndex]) -> Vec<NodeIndex> {
    let owner = |shard| usize::try_from(spread.node(shard).0).ok();
    let owner = |shard| owner(shard).and_then(|place| nodes.get(place)).copied();
    ShardId::all()
        .map(|shard| owner(shard).unwrap_or_default())
        .collect()
}

fn count_shards(map: &ShardMap, nodes: &[NodeIndex]) -> BTreeMap<NodeIndex, usize> {
    let mut counts: BTreeMap<NodeIndex, usize> = nodes.iter().map(|node| (*node, 0)).collect();
    for shard in ShardId::all() {
        if let Some(count) = counts.get_mut(&map.node(shard)) {
            *count += 1;
        }
    }
    counts
}

fn split_ranges(map: &ShardMap, nodes: &[NodeIndex]) -> Vec<NodeIndex> {
    let mut owners: Vec<NodeIndex> = ShardId::all().map(|shard| map.node(shard)).collect();
    let mut counts = count_shards(map, nodes);
    let share = owners.len() / nodes.len().max(1);
    loop {
        let fewest = counts.iter().min_by_key(|(_, count)| **count);
        let Some((&to, _)) = fewest.filter(|(_, count)| **count < share) else {
            break;
        };
        // What nodes have that leave goes first.
        let leaving = owners.iter().rposition(|owner| !counts.contains_key(owner));
        let most = counts
            .iter()
            .max_by_key(|(_, count)| **count)
            .map(|(node, _)| *node);
        let place = leaving.or_else(|| owners.iter().rposition(|owner| Some(*owner) == most));
        let Some(place) = place else { break };
        if let Some(count) = counts.get_mut(&owners[place]) {
            *count -= 1;
        }
        counts.entry(to).and_modify(|count| *count += 1);
        owners[place] = to;
    }
    // A remainder of what nodes have that leave.
    for owner in &mut owners {
        if !counts.contains_key(owner)
            && let Some((to, count)) = counts.iter_mut().min_by_key(|(_, count)| **count)
        {
            *count += 1;
            *owner = *to;
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: Placement = Placement::Ring { virtual_nodes: 128 };

    fn nodes(count: u32) -> Vec<NodeIndex> {
        (0..count).map(NodeIndex).collect()
    }

    fn apply(map: &ShardMap, moves: &[PlannedMove]) -> ShardMap {
        moves.iter().fold(map.clone(), |map, planned| {
            assert_eq!(map.node(planned.shard), planned.from);
            map.moved(planned.shard, planned.to)
        })
    }

    /// Shares of 20,000 keys, as the catalogue of tests counts them.
    fn moved_keys(before: &ShardMap, after: &ShardMap) -> f64 {
        let moved = (0..20_000).filter(|n| {
            let key = curt_core::Key::parse(&format!("key{n}")).unwrap();
            let shard = ShardId::of(&curt_core::LinkId::new(curt_core::DomainId::DEFAULT, key));
            before.node(shard) != after.node(shard)
        });
        moved.count() as f64 / 20_000.0
    }

    #[test]
    fn a_33rd_node_takes_at_most_its_share_and_a_fifth_by_ring_and_by_range() {
        for placement in [RING, Placement::Range] {
            let before = placement.first_map(32).unwrap();
            let moves = plan_rebalance(&before, &nodes(33), placement).unwrap();
            assert!(
                moves.iter().all(|planned| planned.to == NodeIndex(32)),
                "{placement:?}"
            );
            let after = apply(&before, &moves);
            let share = moved_keys(&before, &after);
            println!(
                "{placement:?}: {} shards, {share:.4} of the keys",
                moves.len()
            );
            assert!(
                share <= 1.2 / 33.0,
                "{placement:?} moves {share} of the keys"
            );
            assert!(
                share >= 0.5 / 33.0,
                "{placement:?} moves only {share} of the keys"
            );
            assert_eq!(plan_rebalance(&after, &nodes(33), placement).unwrap(), []);
        }
        let before = Placement::Modulo.first_map(32).unwrap();
        let moves = plan_rebalance(&before, &nodes(33), Placement::Modulo).unwrap();
        assert!(moves.len() > 900, "modulo moves {} of 1,024", moves.len());
    }

    #[test]
    fn a_drained_node_has_nothing_and_nobody_else_loses_a_shard() {
        for placement in [Placement::Modulo, RING, Placement::Range] {
            let before = placement.first_map(4).unwrap();
            let others = [0, 1, 3].map(NodeIndex);
            let moves = plan_drain(&before, NodeIndex(2), &others, placement).unwrap();
            assert!(moves.iter().all(|planned| planned.from == NodeIndex(2)));
            let after = apply(&before, &moves);
            assert_eq!(after.nodes(), others, "{placement:?}");
        }
        let alone = Placement::Modulo.first_map(1).unwrap();
        assert_eq!(
            plan_drain(&alone, NodeIndex(0), &[], Placement::Modulo),
            None
        );
    }

    #[test]
    fn one_node_that_has_everything_gives_the_others_their_share() {
        for placement in [Placement::Modulo, RING, Placement::Range] {
            let before = ShardMap::of_one_node();
            let moves = plan_rebalance(&before, &nodes(4), placement).unwrap();
            let counts = count_shards(&apply(&before, &moves), &nodes(4));
            assert!(
                counts.values().all(|count| (128..=384).contains(count)),
                "{counts:?}"
            );
        }
    }

    #[test]
    fn ranges_stay_whole_when_a_node_joins() {
        let before = Placement::Range.first_map(4).unwrap();
        let moves = plan_rebalance(&before, &nodes(5), Placement::Range).unwrap();
        let after = apply(&before, &moves);
        for node in nodes(4) {
            let own: Vec<u16> = ShardId::all()
                .filter(|shard| after.node(*shard) == node)
                .map(ShardId::number)
                .collect();
            let (first, last) = (own[0], own[own.len() - 1]);
            assert_eq!(usize::from(last - first) + 1, own.len(), "{node:?}");
        }
    }
}
