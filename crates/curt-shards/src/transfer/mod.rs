//! All links over several nodes, as one side of a copy.
//!
//! What is exported is merged in the order of creation, and is what each node owns: copies that moves made or left are
//! passed over. A map that changes while everything is read is told as [`StaleEpoch`](ErrorKind::StaleEpoch): a shard may
//! have gone from a node that was not read yet to one that was.

mod export;
mod position;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{
    FollowedChanges, ImportReport, LinkItem, LinkTransfer, ShardMaps, Transfer, TransferPart,
};
use curt_core::{ErrorKind, NodeIndex, PortError, PortResult, ShardMap};
use futures_util::future::{join_all, try_join_all};
use tokio::sync::Mutex;

use self::export::Buffer;
use crate::BACKEND;

/// Numbers of changes are those of a node, with the place of the node above them.
const NODE_SHIFT: u32 = 52;
const NUMBER_MASK: i64 = (1 << NODE_SHIFT) - 1;

/// A node as a part of one side of a copy.
pub struct TransferNode {
    pub index: NodeIndex,
    /// How it is called in messages.
    pub name: Box<str>,
    /// Opened by the map of the copy.
    pub transfer: Arc<dyn LinkTransfer>,
}

/// The links of all nodes that have shards.
pub struct ShardedTransfer {
    nodes: Vec<TransferNode>,
    map: Arc<ShardMap>,
    maps: Arc<dyn ShardMaps>,
    buffers: Mutex<Vec<Option<Buffer>>>,
}

impl ShardedTransfer {
    /// `nodes` are all that have shards by `map`, which was the newest of `maps`.
    #[must_use]
    pub fn new(nodes: Vec<TransferNode>, map: Arc<ShardMap>, maps: Arc<dyn ShardMaps>) -> Self {
        Self {
            buffers: Mutex::new(nodes.iter().map(|_| None).collect()),
            nodes,
            map,
            maps,
        }
    }

    fn owns(&self, node: &TransferNode, item: &LinkItem) -> bool {
        self.map.node(item.shard) == node.index
    }

    async fn require_same_map(&self, op: &'static str) -> PortResult<()> {
        match self.maps.load().await?.version() == self.map.version() {
            true => Ok(()),
            false => Err(moved(op)),
        }
    }

    /// Undoes what a call began at nodes before one refused.
    async fn stop_all(&self, follower: u64) {
        let stops = self.nodes.iter();
        join_all(stops.map(|node| node.transfer.stop_following(Some(follower)))).await;
    }
}

fn moved(op: &'static str) -> PortError {
    let mut stale = PortError::stale_epoch(BACKEND, op);
    stale.detail = "shards were moved between the nodes meanwhile".to_owned();
    stale
}

fn at_node(node: &TransferNode) -> impl Fn(PortError) -> PortError + '_ {
    |mut failure| {
        failure.detail = format!(
            "links node {} ({}): {}",
            node.index.0, node.name, failure.detail
        );
        failure
    }
}

#[async_trait]
impl Transfer<LinkItem> for ShardedTransfer {
    async fn export_all(&self, after: Option<&str>) -> PortResult<TransferPart<LinkItem>> {
        const OP: &str = "export links";
        let part = self.export(OP, after).await?;
        // Asked after the read: a shard that went before it is noticed.
        self.require_same_map(OP).await?;
        Ok(part)
    }

    async fn import_all(&self, items: &[LinkItem]) -> PortResult<ImportReport> {
        const OP: &str = "import links";
        let mut by_node: BTreeMap<NodeIndex, Vec<LinkItem>> = BTreeMap::new();
        for item in items {
            let node = self.map.node(item.shard);
            by_node.entry(node).or_default().push(item.clone());
        }
        let imports = self.nodes.iter().map(|node| {
            let own = by_node.remove(&node.index).unwrap_or_default();
            async move {
                match own.is_empty() {
                    true => Ok(ImportReport::default()),
                    false => node.transfer.import_all(&own).await.map_err(at_node(node)),
                }
            }
        });
        let imports: Vec<_> = imports.collect();
        if let Some((index, _)) = by_node.first_key_value() {
            let detail = format!(
                "the shard map gives shards to node {}, which was not named",
                index.0
            );
            return Err(PortError::new(ErrorKind::Invalid, BACKEND, OP, detail));
        }
        let mut sum = ImportReport::default();
        for report in try_join_all(imports).await? {
            sum.written += report.written;
            sum.outdated += report.outdated;
            sum.conflicts.extend(report.conflicts);
        }
        Ok(sum)
    }
}

#[async_trait]
impl LinkTransfer for ShardedTransfer {
    async fn follow_changes(&self, follower: u64) -> PortResult<()> {
        for node in &self.nodes {
            let followed = node.transfer.follow_changes(follower).await;
            if let Err(error) = followed {
                // Nodes that another copy follows refuse this, too, and go on.
                self.stop_all(follower).await;
                return Err(at_node(node)(error));
            }
        }
        // From now on no shard begins to move.
        let same = self.require_same_map("follow changes").await;
        if same.is_err() {
            self.stop_all(follower).await;
        }
        same
    }

    async fn followed_changes(&self, follower: u64) -> PortResult<FollowedChanges> {
        let asked = self.nodes.iter().map(|node| async move {
            let changes = node.transfer.followed_changes(follower).await;
            changes.map_err(at_node(node))
        });
        let mut all = FollowedChanges {
            is_end: true,
            ..FollowedChanges::default()
        };
        let answers = try_join_all(asked).await?;
        for (place, (node, changes)) in (0..).zip(self.nodes.iter().zip(answers)) {
            let own = changes.items.into_iter();
            all.items.extend(own.filter(|item| self.owns(node, item)));
            let numbers = changes.numbers.into_iter();
            all.numbers
                .extend(numbers.map(|number| number | place << NODE_SHIFT));
            all.is_end &= changes.is_end;
        }
        Ok(all)
    }

    async fn forget_followed(&self, numbers: &[i64]) -> PortResult<()> {
        let forgets = (0..).zip(&self.nodes).map(|(place, node)| async move {
            let own = numbers
                .iter()
                .filter(|number| **number >> NODE_SHIFT == place);
            let own: Vec<i64> = own.map(|number| number & NUMBER_MASK).collect();
            match own.is_empty() {
                true => Ok(()),
                false => node
                    .transfer
                    .forget_followed(&own)
                    .await
                    .map_err(at_node(node)),
            }
        });
        try_join_all(forgets).await.map(drop)
    }

    async fn stop_following(&self, follower: Option<u64>) -> PortResult<()> {
        let stops = self.nodes.iter();
        let stops = stops.map(|node| async move {
            let stopped = node.transfer.stop_following(follower).await;
            stopped.map_err(at_node(node))
        });
        // Each is asked, whatever another answers.
        join_all(stops).await.into_iter().collect()
    }
}
