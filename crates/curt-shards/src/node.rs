use std::sync::Arc;

use curt_core::ports::{LinkShards, MapNote, ShardMaps};
use curt_core::{ErrorKind, NodeIndex, PortError, PortResult};
use futures_util::future::try_join_all;
use tokio::sync::OnceCell;

use crate::BACKEND;

/// The note of the shard map that has the identity of each node, a line for each.
const NODES: &str = "nodes";

/// A links database that is one node of many.
pub struct ShardNode {
    /// How it is called in messages: its address, without secrets.
    pub name: Box<str>,
    pub shards: Arc<dyn LinkShards>,
    /// Set when it has been found to be the database that the map means.
    is_known: OnceCell<()>,
}

impl ShardNode {
    pub fn new(name: impl Into<Box<str>>, shards: Arc<dyn LinkShards>) -> Self {
        Self {
            name: name.into(),
            shards,
            is_known: OnceCell::new(),
        }
    }

    /// Refuses a database that is not the one with this identity; asks once.
    pub(crate) async fn require_identity(&self, node: NodeIndex, want: &str) -> PortResult<()> {
        let ask = || async {
            let found = self.shards.identity().await?;
            match *found == *want {
                true => Ok(()),
                false => Err(another_database(
                    usize::try_from(node.0).unwrap_or(usize::MAX),
                    &self.name,
                )),
            }
        };
        self.is_known.get_or_try_init(ask).await.copied()
    }
}

/// The identities of the nodes that the shard map is about, by their indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeList {
    pub(crate) identities: Vec<Box<str>>,
    note: MapNote,
}

impl NodeList {
    /// Absent: empty.
    pub(crate) async fn load(maps: &dyn ShardMaps) -> PortResult<Self> {
        let note = maps.note(NODES).await?;
        let identities = note.text.lines().map(Into::into).collect();
        Ok(Self { identities, note })
    }

    /// Writes that `nodes` are the nodes, in this order, unless another process wrote something first; returns what is
    /// written then.
    pub(crate) async fn store(
        self,
        maps: &dyn ShardMaps,
        identities: Vec<Box<str>>,
    ) -> PortResult<Self> {
        let note = self.note.followed_by(identities.join("\n"));
        match maps.put_note(NODES, &note).await? {
            true => Ok(Self { identities, note }),
            false => Self::load(maps).await,
        }
    }
}

/// The identity of each node, all different.
pub(crate) async fn identities(nodes: &[ShardNode]) -> PortResult<Vec<Box<str>>> {
    let ask = |(index, node)| async move {
        let node: &ShardNode = node;
        let identity = node.shards.identity().await;
        identity.map_err(|error| at_node(nodes, NodeIndex(index), error))
    };
    let identities = try_join_all((0..).zip(nodes).map(ask)).await?;
    for (place, identity) in identities.iter().enumerate() {
        let twin = identities[..place].iter().position(|one| one == identity);
        if let Some(twin) = twin {
            let detail = format!(
                "{} and {} are the same database: name each node once",
                nodes[twin].name, nodes[place].name
            );
            return Err(invalid(detail));
        }
    }
    Ok(identities)
}

/// Says of which node a failure tells.
pub(crate) fn at_node(nodes: &[ShardNode], node: NodeIndex, mut failure: PortError) -> PortError {
    if nodes.len() > 1 {
        let name = find(nodes, node).map_or("?", |node| &*node.name);
        failure.detail = format!("links node {} ({name}): {}", node.0, failure.detail);
    }
    failure
}

pub(crate) fn find(nodes: &[ShardNode], node: NodeIndex) -> Option<&ShardNode> {
    nodes.get(usize::try_from(node.0).ok()?)
}

pub(crate) fn invalid(detail: String) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, "follow the shard map", detail)
}

pub(crate) fn another_database(node: usize, name: &str) -> PortError {
    invalid(format!(
        "{name} is not the database that was node {node} of the shard map: put store.links in the order of `curt shards show`, \
         or restore that database"
    ))
}
