//! The index of one node of many, so that work on each can go on by itself: a dead node delays its own only.

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{LinkChange, LinkIndex, ListOrder, ListPage, ListQuery, SeededDatabase};
use curt_core::{Link, LinkId, NodeIndex, PortResult, Revision, UnixMillis};

use crate::router::{Routing, ShardRouter};

struct IndexOfNode {
    router: Arc<ShardRouter>,
    node: NodeIndex,
}

impl ShardRouter {
    /// The index of each node, by their numbers. A node without shards has no links.
    #[must_use]
    pub fn node_indexes(self: &Arc<Self>) -> Vec<Arc<dyn LinkIndex>> {
        let nodes = (0..).map(NodeIndex).take(self.nodes.len());
        let index = |node| {
            let router = Arc::clone(self);
            Arc::new(IndexOfNode { router, node }) as Arc<dyn LinkIndex>
        };
        nodes.map(index).collect()
    }
}

impl IndexOfNode {
    /// The node's ports and the map that they go by. `None`: the node has no shards.
    async fn ports(&self) -> PortResult<Option<(Arc<dyn SeededDatabase>, Arc<Routing>)>> {
        let routing = self.router.routing().await?;
        if !routing.map.nodes().contains(&self.node) {
            return Ok(None);
        }
        let ports = Arc::clone(self.router.ports(&routing, self.node).await?);
        Ok(Some((ports, routing)))
    }

    fn at_node<T>(&self, answer: PortResult<T>) -> PortResult<T> {
        answer.map_err(|error| self.router.at_node(self.node, error))
    }
}

#[async_trait]
impl LinkIndex for IndexOfNode {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        match self.ports().await? {
            Some((ports, _)) => self.at_node(ports.list(query).await),
            None => Ok(ListPage::default()),
        }
    }

    async fn cursor_behind(&self, link: &Link, order: ListOrder) -> PortResult<Option<Box<str>>> {
        match self.ports().await? {
            Some((ports, _)) => self.at_node(ports.cursor_behind(link, order).await),
            None => Ok(None),
        }
    }

    async fn ended(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        let Some((ports, routing)) = self.ports().await? else {
            return Ok(Vec::new());
        };
        let mut ended = self.at_node(ports.ended(before, limit).await)?;
        // The node may have the copy of a shard that is moving, too.
        ended.retain(|(id, _)| routing.owner(id) == self.node);
        Ok(ended)
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        before: UnixMillis,
        now: UnixMillis,
    ) -> PortResult<Vec<LinkChange>> {
        let Some((ports, routing)) = self.ports().await? else {
            return Ok(Vec::new());
        };
        let own = batch.iter();
        let own = own.filter(|(id, _)| routing.owner(id) == self.node);
        let own: Vec<_> = own.cloned().collect();
        self.at_node(ports.purge(&own, before, now).await)
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkChange>> {
        match self.ports().await? {
            Some((ports, _)) => self.at_node(ports.release(before, limit).await),
            None => Ok(Vec::new()),
        }
    }
}
