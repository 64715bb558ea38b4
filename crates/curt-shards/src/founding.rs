//! The first map, and whether the nodes that there are fit the map that there is.

use curt_core::names::event;
use curt_core::ports::ShardMaps;
use curt_core::{NodeIndex, Placement, PortResult, ShardMap};
use tracing::info;

use crate::node::{NodeList, ShardNode, at_node, identities, invalid};

/// Loads the map and the identities of its nodes, and makes both where there is none. Many processes may do so at once:
/// the first one's stay.
pub(crate) async fn load_or_found(
    nodes: &[ShardNode],
    maps: &dyn ShardMaps,
    placement: Placement,
) -> PortResult<(ShardMap, NodeList)> {
    let mut list = NodeList::load(maps).await?;
    if list.identities.is_empty() {
        let identities = identities(nodes).await?;
        list = list.store(maps, identities).await?;
    }
    let mut map = maps.load().await?;
    if map.version() == 0 {
        let first = first_map(nodes, list.identities.len(), placement).await?;
        if maps.advance(&first).await? {
            info!(
                event = event::SHARD_MAP_FOUNDED,
                nodes = list.identities.len(),
                "first shard map made"
            );
        }
        map = maps.load().await?;
    }
    if nodes.len() < list.identities.len() {
        return Err(invalid(format!(
            "store.links names {}, and the shard map has {}: name every node, in the order of `curt shards show`",
            count(nodes.len()),
            count(list.identities.len()),
        )));
    }
    Ok((map, list))
}

/// Refuses a database that is one of several nodes, for a process that was told of no other: it would not find most links.
pub async fn require_unsharded(maps: &dyn ShardMaps) -> PortResult<()> {
    let nodes = NodeList::load(maps).await?.identities.len();
    match nodes {
        0 | 1 => Ok(()),
        _ => Err(invalid(format!(
            "store.links names 1 node, and the shard map has {nodes} nodes: name every node, in the order of \
             `curt shards show`"
        ))),
    }
}

/// Links that are there already stay where they are: then the first node has everything, and `curt shards rebalance` gives
/// the others their share.
async fn first_map(
    nodes: &[ShardNode],
    count: usize,
    placement: Placement,
) -> PortResult<ShardMap> {
    let mut is_first_used = false;
    for (index, node) in (0..).map(NodeIndex).zip(nodes).take(count) {
        let ports = node.shards.routed_by(std::sync::Arc::default());
        let counts = ports.counts().await;
        let counts = counts.map_err(|error| at_node(nodes, index, error))?;
        let links: u64 = counts.created.iter().map(|(_, count)| count).sum();
        let is_used = links + counts.seeded > 0;
        if is_used && index.0 > 0 {
            return Err(invalid(format!(
                "{} holds links, and there is no shard map: a node that joins must be empty, only the first may hold links",
                node.name
            )));
        }
        is_first_used |= is_used;
    }
    let too_many = || invalid(format!("{count} nodes are more than there are shards"));
    match is_first_used {
        true => Ok(ShardMap::of_one_node()),
        false => placement.first_map(count).ok_or_else(too_many),
    }
}

fn count(nodes: usize) -> String {
    match nodes {
        1 => "1 node".to_owned(),
        more => format!("{more} nodes"),
    }
}
