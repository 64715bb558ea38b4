//! Links by something other than their key, over all nodes.
//!
//! A list needs every node: without one it would be short, and nobody would know. What the purge does goes on at the
//! others while a node is away.

use std::collections::BTreeMap;

use async_trait::async_trait;
use curt_core::ports::{LinkChange, LinkIndex, LinkStore, ListOrder, ListPage, ListQuery};
use curt_core::{ErrorKind, Link, LinkId, NodeIndex, PortError, PortResult, Revision, UnixMillis};
use futures_util::future::join_all;
use tracing::debug;

use crate::BACKEND;
use crate::merge::Merge;
use crate::router::{Reroutes, ShardRouter};

#[async_trait]
impl LinkIndex for ShardRouter {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        let reroutes = Reroutes::new("list links");
        loop {
            let routing = self.routing().await?;
            match Merge::new(self, &routing, query).await?.page().await {
                Err(error) if error.kind == ErrorKind::StaleEpoch => {
                    self.reroute(&routing, &reroutes).await?;
                }
                page => return page,
            }
        }
    }

    /// Lists over several nodes have cursors of their own.
    async fn cursor_behind(&self, _: &Link, _: ListOrder) -> PortResult<Option<Box<str>>> {
        let detail = "a list over many nodes cannot be merged with others";
        Err(PortError::new(
            ErrorKind::Invalid,
            BACKEND,
            "merge lists",
            detail,
        ))
    }

    async fn ended(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        let routing = self.routing().await?;
        let reads = self.all_ports(&routing).await.into_iter();
        let reads = reads.map(|(node, ports)| async move {
            let ended = match ports {
                Ok(ports) => ports.ended(before, limit).await,
                Err(error) => Err(error),
            };
            (node, ended)
        });
        let mut answers = self.answers("find ended links");
        let mut found = Vec::new();
        for (node, ended) in join_all(reads).await {
            let ended = answers.note(node, ended).unwrap_or_default();
            // A node may have the copy of a shard that is moving, too.
            let own = ended
                .into_iter()
                .filter(|(id, _)| routing.owner(id) == node);
            found.extend(own);
        }
        let found = answers.into_result(found)?;
        match self.nodes.len() {
            1 => Ok(found),
            _ => self.sort_by_end(found, limit).await,
        }
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        before: UnixMillis,
        now: UnixMillis,
    ) -> PortResult<Vec<LinkChange>> {
        let routing = self.routing().await?;
        let mut parts: BTreeMap<NodeIndex, Vec<(LinkId, Revision)>> = BTreeMap::new();
        for item in batch {
            let part = parts.entry(routing.owner(&item.0)).or_default();
            part.push(item.clone());
        }
        let mut purges = Vec::new();
        for (node, part) in &parts {
            let routing = &routing;
            purges.push(async move {
                let purged = match self.ports(routing, *node).await {
                    Ok(ports) => ports.purge(part, before, now).await,
                    Err(error) => Err(error),
                };
                (*node, purged)
            });
        }
        let mut answers = self.answers("purge links");
        let mut changes = Vec::new();
        for (node, purged) in join_all(purges).await {
            changes.extend(answers.note(node, purged).unwrap_or_default());
        }
        answers.into_result(changes)
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkChange>> {
        let routing = self.routing().await?;
        let mut answers = self.answers("release keys");
        let mut released = Vec::new();
        for (node, ports) in self.all_ports(&routing).await {
            if released.len() < limit {
                let answer = match ports {
                    Ok(ports) => ports.release(before, limit - released.len()).await,
                    Err(error) => Err(error),
                };
                released.extend(answers.note(node, answer).unwrap_or_default());
            }
        }
        answers.into_result(released)
    }
}

impl ShardRouter {
    /// Those that ended first, first.
    async fn sort_by_end(
        &self,
        found: Vec<(LinkId, Revision)>,
        limit: usize,
    ) -> PortResult<Vec<(LinkId, Revision)>> {
        let ids: Vec<LinkId> = found.iter().map(|(id, _)| id.clone()).collect();
        let links = self.get_many(&ids).await?;
        let end = |link: &Option<Link>| link.as_ref()?.ended_at(UnixMillis(i64::MAX));
        let mut by_end: Vec<_> = links.iter().map(end).zip(found).collect();
        by_end.sort_unstable();
        let first = by_end.into_iter().take(limit);
        Ok(first.map(|(_, found)| found).collect())
    }

    pub(crate) fn answers(&self, op: &'static str) -> Answers<'_> {
        Answers {
            router: self,
            op,
            is_answered: false,
            failure: None,
        }
    }
}

/// The answers of several nodes to work that goes on without some of them.
pub(crate) struct Answers<'a> {
    router: &'a ShardRouter,
    op: &'static str,
    is_answered: bool,
    failure: Option<PortError>,
}

impl Answers<'_> {
    /// `None`: the node failed.
    pub(crate) fn note<T>(&mut self, node: NodeIndex, answer: PortResult<T>) -> Option<T> {
        match answer {
            Ok(answer) => {
                self.is_answered = true;
                Some(answer)
            }
            Err(error) => {
                let node_name = self.router.name(node);
                debug!(node = node_name, op = self.op, %error, "links node passed over");
                self.failure = Some(self.router.at_node(node, error));
                None
            }
        }
    }

    /// The failure of a node, if no node answered.
    pub(crate) fn into_result<T>(self, value: T) -> PortResult<T> {
        match self.failure {
            Some(failure) if !self.is_answered => Err(failure),
            _ => Ok(value),
        }
    }
}
