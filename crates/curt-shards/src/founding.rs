//! The first map, and whether the nodes that there are fit the map that there is.

use curt_core::names::event;
use curt_core::ports::ShardMaps;
use curt_core::{NodeIndex, Placement, PortResult, ShardMap};
use tracing::info;

use crate::node::{NodeList, ShardNode, another_database, at_node, identities, invalid};

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

/// The nodes of the shard map with their identities; none before the first map.
pub async fn known_nodes(maps: &dyn ShardMaps) -> PortResult<Vec<(NodeIndex, Box<str>)>> {
    let list = NodeList::load(maps).await?;
    Ok((0..).map(NodeIndex).zip(list.identities).collect())
}

/// Makes the databases behind the known nodes nodes, too, and returns them. They must be empty, and have no shards
/// before some move there.
pub async fn add_nodes(
    nodes: &[ShardNode],
    maps: &dyn ShardMaps,
    placement: Placement,
) -> PortResult<Vec<NodeIndex>> {
    let (_, list) = load_or_found(nodes, maps, placement).await?;
    let known = list.identities.len();
    let identities = identities(nodes).await?;
    let misplaced = identities
        .iter()
        .zip(&list.identities)
        .position(|(found, known)| found != known);
    if let Some(place) = misplaced {
        return Err(another_database(place, &nodes[place].name));
    }
    for (index, node) in (0..).map(NodeIndex).zip(nodes).skip(known) {
        let links = count_links(nodes, index, node).await?;
        if links > 0 {
            return Err(invalid(format!(
                "{} holds links: a node that joins must be empty",
                node.name
            )));
        }
    }
    let stored = list.store(maps, identities.clone()).await?;
    if stored.identities != identities {
        let detail = "another process added nodes at the same time: look at `curt shards show` and try again";
        return Err(invalid(detail.to_owned()));
    }
    Ok((0..)
        .map(NodeIndex)
        .take(identities.len())
        .skip(known)
        .collect())
}

/// Links and seeded rows that a database has, or ever had.
async fn count_links(nodes: &[ShardNode], index: NodeIndex, node: &ShardNode) -> PortResult<u64> {
    let counts = node
        .shards
        .routed_by(std::sync::Arc::default())
        .counts()
        .await;
    let counts = counts.map_err(|error| at_node(nodes, index, error))?;
    let created: u64 = counts.created.iter().map(|(_, count)| count).sum();
    Ok(created + counts.seeded)
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
        let is_used = count_links(nodes, index, node).await? > 0;
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
