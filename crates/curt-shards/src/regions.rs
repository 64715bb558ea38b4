//! The regions in which nodes are written, and keys that belong there.
//!
//! The region of a node is that of its leader. It is noted beside the map, and every change of it gives the map a new
//! version, so that servers follow it as they follow moves.

use curt_core::ports::{LinkHomes, MapNote, ShardMaps};
use curt_core::{ErrorKind, LinkId, NodeIndex, PortError, PortResult, ShardId, ShardMap};

use crate::BACKEND;
use crate::node::{NodeList, invalid};
use crate::router::ShardRouter;

/// The note of the shard map that has the region of each node, a line for each; an empty one: none.
const REGIONS: &str = "regions";
const OP: &str = "assign a region";
/// How often a change is tried beside moves, which change the map, too.
const TRIES_MAX: usize = 100;
/// What a region may be called.
const NAME_MAX: usize = 64;

/// The regions of nodes, by their indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeRegions {
    regions: Vec<Box<str>>,
    note: MapNote,
}

impl NodeRegions {
    pub(crate) async fn load(maps: &dyn ShardMaps) -> PortResult<Self> {
        let note = maps.note(REGIONS).await?;
        let regions = note.text.split('\n').map(Into::into).collect();
        Ok(Self { regions, note })
    }

    pub(crate) fn of(&self, node: NodeIndex) -> Option<&str> {
        let region = self.regions.get(usize::try_from(node.0).ok()?)?;
        (!region.is_empty()).then_some(region)
    }

    fn with(&self, node: NodeIndex, region: Option<&str>) -> MapNote {
        let place = usize::try_from(node.0).unwrap_or(usize::MAX);
        let mut regions = self.regions.clone();
        regions.resize(regions.len().max(place.saturating_add(1)), "".into());
        regions[place] = region.unwrap_or_default().into();
        self.note.followed_by(regions.join("\n"))
    }
}

/// The region of each node of the shard map.
pub async fn node_regions(maps: &dyn ShardMaps) -> PortResult<Vec<Option<Box<str>>>> {
    let (list, regions) = (NodeList::load(maps).await?, NodeRegions::load(maps).await?);
    let nodes = (0..).map(NodeIndex).take(list.identities.len());
    Ok(nodes.map(|node| regions.of(node).map(Into::into)).collect())
}

/// Notes in which region a node is written; `None`: in none.
pub async fn assign_region(
    maps: &dyn ShardMaps,
    node: NodeIndex,
    region: Option<&str>,
) -> PortResult<()> {
    let nodes = NodeList::load(maps).await?.identities.len();
    if usize::try_from(node.0).is_ok_and(|place| place >= nodes) {
        return Err(invalid(format!(
            "there is no node {}: the shard map has {nodes}",
            node.0
        )));
    }
    let is_name = |name: &str| {
        let is_fit = |sign: char| sign.is_ascii_alphanumeric() || "-_.".contains(sign);
        !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_fit)
    };
    if region.is_some_and(|name| !is_name(name)) {
        return Err(invalid(
            "a region is called by letters, digits, -, _ and ., 64 at most".to_owned(),
        ));
    }
    for _ in 0..TRIES_MAX {
        let map = maps.load().await?;
        // The default map must not be stored in the place of the first one, which a server is about to make.
        if map.version() == 0 {
            return Err(invalid(
                "there is no shard map yet: the first start of a server makes it".to_owned(),
            ));
        }
        let regions = NodeRegions::load(maps).await?;
        let is_noted = regions.of(node) == region
            || maps.put_note(REGIONS, &regions.with(node, region)).await?;
        // The same map under a new version, so that it is loaded again by all.
        if is_noted && maps.advance(&renewed(&map)).await? {
            return Ok(());
        }
    }
    let detail = "others change the shard map all the time: try again";
    Err(PortError::new(ErrorKind::Throttled, BACKEND, OP, detail))
}

fn renewed(map: &ShardMap) -> ShardMap {
    match ShardId::new(0) {
        Some(first) => map.renewed(first, map.epoch(first)),
        None => map.clone(),
    }
}

impl LinkHomes for ShardRouter {
    fn is_home(&self, id: &LinkId) -> bool {
        if self.region().is_none() && self.failing.is_empty() {
            return true;
        }
        let Some(routing) = self.newest() else {
            return true;
        };
        let in_own = |node: NodeIndex| {
            let own = self.region();
            own.is_none() || routing.regions.of(node) == own
        };
        let (owner, nodes) = (routing.owner(id), routing.map.nodes());
        let is_best = |is_good: &dyn Fn(NodeIndex) -> bool| {
            let is_any_good = nodes.iter().any(|node| is_good(*node));
            is_any_good.then(|| is_good(owner))
        };
        // Without a node in the own region, or with none that takes writes, no key is better than another.
        is_best(&|node| in_own(node) && !self.failing.contains(node))
            .or_else(|| is_best(&in_own))
            .unwrap_or(true)
    }
}
