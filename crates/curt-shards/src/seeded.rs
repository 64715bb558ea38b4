use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use curt_core::ports::SeededLinks;
use curt_core::{Link, LinkId, NodeIndex, PortResult};
use futures_util::future::join_all;

use crate::router::ShardRouter;

#[async_trait]
impl SeededLinks for ShardRouter {
    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64> {
        let routing = self.routing().await?;
        let mut parts: BTreeMap<NodeIndex, Vec<LinkId>> = BTreeMap::new();
        for id in ids {
            parts.entry(routing.owner(id)).or_default().push(id.clone());
        }
        let mut seeds = Vec::new();
        for (node, part) in &parts {
            let ports = self.ports(&routing, *node).await?;
            seeds.push(async move { (*node, ports.seed(part).await) });
        }
        let mut seeded = 0;
        for (node, count) in join_all(seeds).await {
            seeded += count.map_err(|error| self.at_node(node, error))?;
        }
        Ok(seeded)
    }

    /// Asks one node for all, and others for what it had no seeds for. Nodes take turns at being the first.
    async fn claim(&self, links: Vec<Link>) -> PortResult<Vec<Link>> {
        let routing = self.routing().await?;
        let mut nodes = self.all_ports(&routing).await;
        let is_away = |node: NodeIndex| routing.regions.of(node) != self.region();
        let first = self.claims.fetch_add(1, Ordering::Relaxed) % nodes.len().max(1);
        nodes.rotate_left(first);
        // Those of the own region come first.
        nodes.sort_by_key(|(node, _)| self.region().is_some() && is_away(*node));
        let mut claimed: Vec<Link> = Vec::with_capacity(links.len());
        let mut answers = self.answers("claim links");
        for (node, ports) in &nodes {
            let rest = &links[claimed.len()..];
            if rest.is_empty() {
                break;
            }
            let answer = match ports {
                Ok(ports) => ports.claim(rest.to_vec()).await,
                Err(error) => Err(error.clone()),
            };
            claimed.extend(answers.note(*node, answer).unwrap_or_default());
        }
        match claimed.is_empty() {
            true => answers.into_result(claimed),
            // What was claimed is the caller's, whatever became of the rest.
            false => Ok(claimed),
        }
    }
}
