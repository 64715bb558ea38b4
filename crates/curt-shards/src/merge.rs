//! One page of a list over all nodes: a merge of the nodes' own pages, in the list's order.
//!
//! Each node is asked for a part of the page, all at once, and again when its part is used up. When a node has read as
//! many rows as one page may without finding a link, the merged page ends there, short: so no page costs more than a
//! few reads of each node. Rows of shards that another node owns (copies of a move under way, or what it left) are
//! passed over.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use curt_core::limits::PAGE_LINKS_MAX;
use curt_core::ports::{ListOrder, ListPage, ListQuery, SeededDatabase};
use curt_core::{ErrorKind, Link, NodeIndex, PortError, PortResult};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use crate::BACKEND;
use crate::cursor::ListCursor;
use crate::router::{Routing, ShardRouter};

/// Nodes that are asked at the same time for one list.
const NODES_AT_ONCE: usize = 16;
/// Links that a node is asked for at least.
const PART_MIN: usize = 8;

pub(crate) struct Merge<'a> {
    router: &'a ShardRouter,
    routing: &'a Routing,
    query: &'a ListQuery,
    limit: usize,
    sources: Vec<Source<'a>>,
}

/// The list of one node, as far as it was read.
struct Source<'a> {
    node: NodeIndex,
    ports: &'a Arc<dyn SeededDatabase>,
    /// Read, and not on the page yet.
    links: VecDeque<Link>,
    /// Where the page before this one stopped, or the last link of this node on this page.
    start: Option<Box<str>>,
    last_used: Option<Link>,
    /// Where the node goes on behind `links`.
    next: Option<Box<str>>,
    is_ended: bool,
}

impl<'a> Merge<'a> {
    pub(crate) async fn new(
        router: &'a ShardRouter,
        routing: &'a Routing,
        query: &'a ListQuery,
    ) -> PortResult<Self> {
        let cursor = match &query.cursor {
            None => ListCursor::default(),
            Some(text) => ListCursor::of_text(text, query.order).ok_or_else(foreign_cursor)?,
        };
        let mut sources = Vec::new();
        for (node, ports) in router.all_ports(routing).await {
            let start = cursor.position(node);
            sources.push(Source {
                node,
                ports: ports?,
                links: VecDeque::new(),
                next: start.clone(),
                start,
                last_used: None,
                is_ended: false,
            });
        }
        Ok(Self {
            router,
            routing,
            query,
            limit: query.limit.clamp(1, PAGE_LINKS_MAX),
            sources,
        })
    }

    pub(crate) async fn page(mut self) -> PortResult<ListPage> {
        let mut links = Vec::new();
        let is_short = !self.read_missing().await?;
        while !is_short && links.len() < self.limit {
            let Some(first) = self.first() else { break };
            let source = &mut self.sources[first];
            let Some(link) = source.links.pop_front() else {
                break;
            };
            source.last_used = Some(link.clone());
            links.push(link);
            if links.len() < self.limit && !self.read_missing().await? {
                break;
            }
        }
        let next = match self.is_ended() {
            true => None,
            false => Some(self.cursor(links.last()).await?),
        };
        Ok(ListPage { links, next })
    }

    fn is_ended(&self) -> bool {
        let mut sources = self.sources.iter();
        sources.all(|source| source.is_ended && source.links.is_empty())
    }

    /// The node whose next link comes first.
    fn first(&self) -> Option<usize> {
        let heads = self.sources.iter().enumerate();
        let heads = heads.filter_map(|(place, source)| Some((place, source.links.front()?)));
        let first = heads.min_by(|(_, left), (_, right)| compare(self.query.order, left, right));
        first.map(|(place, _)| place)
    }

    /// Reads on at the nodes that have nothing left to merge. `false`: one of them read all that a page may, and found
    /// nothing, so that it is not known which link is next.
    async fn read_missing(&mut self) -> PortResult<bool> {
        let share = self.limit.div_ceil(self.sources.len().max(1));
        let part = (share + share / 2).max(PART_MIN).min(self.limit);
        let (router, routing, query) = (self.router, self.routing, self.query);
        let missing = self.sources.iter_mut();
        let missing = missing.filter(|source| source.links.is_empty() && !source.is_ended);
        let reads = missing.map(|source| source.read(router, routing, query, part));
        let reads: Vec<_> = reads.collect();
        let mut reads = stream::iter(reads).buffer_unordered(NODES_AT_ONCE);
        let mut is_known = true;
        while let Some(found) = reads.try_next().await? {
            is_known &= found;
        }
        Ok(is_known)
    }

    /// Where the next page begins: every node behind the last link, or further on where it has read on in vain.
    async fn cursor(&self, last: Option<&Link>) -> PortResult<Box<str>> {
        let mut positions = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let position = source.position(self.query.order, last).await;
            let position = position.map_err(|error| self.router.at_node(source.node, error))?;
            positions.push((source.node, position));
        }
        let mut cursor = ListCursor {
            common: most_frequent(&positions),
            others: BTreeMap::new(),
        };
        positions.retain(|(_, position)| *position != cursor.common);
        cursor.others.extend(positions);
        Ok(cursor.to_text(self.query.order))
    }
}

impl Source<'_> {
    /// Reads the next part. `false`: nothing was found, and the list does not end here.
    async fn read(
        &mut self,
        router: &ShardRouter,
        routing: &Routing,
        query: &ListQuery,
        part: usize,
    ) -> PortResult<bool> {
        let query = ListQuery {
            cursor: self.next.take(),
            limit: part,
            ..query.clone()
        };
        let page = self.ports.list(&query).await;
        let page = page.map_err(|error| router.at_node(self.node, error))?;
        let links = page.links.into_iter();
        self.links = links
            .filter(|link| routing.owner(&link.id) == self.node)
            .collect();
        self.is_ended = page.next.is_none();
        self.next = page.next;
        Ok(!self.links.is_empty() || self.is_ended)
    }

    async fn position(
        &self,
        order: ListOrder,
        last: Option<&Link>,
    ) -> PortResult<Option<Box<str>>> {
        if self.links.is_empty() && self.next.is_some() {
            return Ok(self.next.clone());
        }
        for link in last.into_iter().chain(&self.last_used) {
            if let Some(position) = self.ports.cursor_behind(link, order).await? {
                return Ok(Some(position));
            }
        }
        Ok(self.start.clone())
    }
}

fn compare(order: ListOrder, left: &Link, right: &Link) -> Ordering {
    let by_age = (left.created_at, &left.id).cmp(&(right.created_at, &right.id));
    match order {
        ListOrder::OldestFirst => by_age,
        ListOrder::NewestFirst => by_age.reverse(),
        ListOrder::KeyRising => left.id.cmp(&right.id),
        ListOrder::KeyFalling => right.id.cmp(&left.id),
    }
}

fn most_frequent(positions: &[(NodeIndex, Option<Box<str>>)]) -> Option<Box<str>> {
    let mut counts: BTreeMap<&Option<Box<str>>, usize> = BTreeMap::new();
    for (_, position) in positions {
        *counts.entry(position).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.and_then(|(position, _)| position.clone())
}

fn foreign_cursor() -> PortError {
    let detail = "the cursor is not one of this list";
    PortError::new(ErrorKind::Invalid, BACKEND, "list links", detail)
}
