use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{
    ChangeReply, Inserted, LinkStore, RequestToken, SeededDatabase, SpendReply,
};
use curt_core::{
    ErrorKind, Link, LinkId, NodeIndex, OwnerId, PortError, PortResult, Revision, ShardId,
    UnixMillis,
};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::FuturesUnordered;

use crate::BACKEND;
use crate::router::{Reroutes, Routing, ShardRouter, call_owner};

/// Links of one request with their places in it.
type Part = Vec<(usize, Link)>;

#[async_trait]
impl LinkStore for ShardRouter {
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        let outcomes = self.insert_each(links, token).await?;
        let has_effect = |outcome: &PortResult<Inserted>| {
            let failure = outcome.as_ref().err();
            !failure.is_some_and(|failure| failure.kind.is_without_effect())
        };
        let has_effect = outcomes.iter().any(has_effect);
        let whole: PortResult<Vec<Inserted>> = outcomes.into_iter().collect();
        whole.map_err(|failure| of_whole_request(failure, has_effect))
    }

    async fn insert_each(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<PortResult<Inserted>>> {
        let mut outcomes = vec![Ok(Inserted::Conflict); links.len()];
        let mut left: Part = links.into_iter().enumerate().collect();
        let reroutes = Reroutes::new("insert links");
        while !left.is_empty() {
            let routing = self.routing().await?;
            let answers = self.insert_parts(&routing, left, token).await;
            left = Vec::new();
            for (node, part, answer) in answers {
                match answer {
                    Ok(inserted) => {
                        for ((place, _), inserted) in part.iter().zip(inserted) {
                            outcomes[*place] = Ok(inserted);
                        }
                    }
                    Err(error) if error.kind == ErrorKind::StaleEpoch => left.extend(part),
                    Err(error) => {
                        note_failure(&mut outcomes, &part, &self.at_node(node, error));
                    }
                }
            }
            if !left.is_empty() {
                // Of two links under one key the first wins.
                left.sort_unstable_by_key(|(place, _)| *place);
                if let Err(failure) = self.reroute(&routing, &reroutes).await {
                    note_failure(&mut outcomes, &left, &failure);
                    break;
                }
            }
        }
        Ok(outcomes)
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        call_owner!(self, "read a link", ShardId::of(id), ports => ports.get(id))
    }

    async fn get_nearby(&self, id: &LinkId) -> PortResult<Option<Link>> {
        call_owner!(self, "read a link", ShardId::of(id), ports => ports.get_nearby(id))
    }

    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<Link>>> {
        self.read_many("read links", ids, |ports, ids| {
            Box::pin(async move { ports.get_many(&ids).await })
        })
        .await
    }

    async fn update_at(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        let shard = ShardId::of(&link.id);
        call_owner!(self, "update a link", shard, ports => ports.update_at(link.clone(), seen))
    }

    async fn hand_over_at(
        &self,
        id: &LinkId,
        seen: Revision,
        owner: OwnerId,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let shard = ShardId::of(id);
        call_owner!(self, "hand over a link", shard, ports => ports.hand_over_at(id, seen, owner, now))
    }

    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        let shard = ShardId::of(id);
        call_owner!(self, "delete a link", shard, ports => ports.delete_at(id, seen, now))
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        call_owner!(self, "spend a click", ShardId::of(id), ports => ports.spend_click(id, seen))
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        call_owner!(self, "count spent clicks", ShardId::of(id), ports => ports.clicks_spent(id))
    }

    async fn clicks_spent_many(&self, ids: &[LinkId]) -> PortResult<Vec<u64>> {
        self.read_many("count spent clicks", ids, |ports, ids| {
            Box::pin(async move { ports.clicks_spent_many(&ids).await })
        })
        .await
    }

    /// Whether one node at least takes writes: others that do not cost their own links only.
    async fn ping(&self) -> PortResult<()> {
        let routing = self.routing().await?;
        let pings = routing.map.nodes().into_iter().map(|node| {
            let routing = &routing;
            async move {
                let ping = async { self.ports(routing, node).await?.ping().await };
                let answer = ping.await;
                self.failing.note(node, &answer);
                answer
            }
        });
        first_answer(pings.collect()).await
    }

    /// Whether links of one node at least can be looked up.
    async fn ping_reads(&self) -> PortResult<()> {
        let routing = self.routing().await?;
        let pings = routing.map.nodes().into_iter().map(|node| {
            let routing = &routing;
            async move { self.ports(routing, node).await?.ping_reads().await }
        });
        first_answer(pings.collect()).await
    }
}

impl ShardRouter {
    /// Sends each node its links, all nodes at once.
    async fn insert_parts(
        &self,
        routing: &Routing,
        links: Part,
        token: Option<RequestToken>,
    ) -> Vec<(NodeIndex, Part, PortResult<Vec<Inserted>>)> {
        let mut parts: BTreeMap<NodeIndex, Part> = BTreeMap::new();
        for (place, link) in links {
            let part = parts.entry(routing.owner(&link.id)).or_default();
            part.push((place, link));
        }
        let inserts = parts.into_iter().map(|(node, part)| async move {
            let links = part.iter().map(|(_, link)| link.clone()).collect();
            let inserted = self.write_unless_failing(node, "insert links", async {
                let ports = self.ports(routing, node).await?;
                ports.insert_if_absent(links, token).await
            });
            let inserted = inserted.await;
            (node, part, inserted)
        });
        join_all(inserts).await
    }

    /// Has a node write, unless it failed so often that it is only tried now and then.
    pub(crate) async fn write_unless_failing<T>(
        &self,
        node: NodeIndex,
        op: &'static str,
        write: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        if !self.failing.admits(node) {
            let detail = "it failed the last writes, and is left out for a moment";
            return Err(PortError::new(ErrorKind::Unavailable, BACKEND, op, detail));
        }
        let written = write.await;
        self.failing.note(node, &written);
        written
    }

    /// Asks each owner for what it has of `ids`, all at once, and returns the answers in the order of `ids`.
    async fn read_many<T: Clone + Default>(
        &self,
        op: &'static str,
        ids: &[LinkId],
        read: impl Fn(Arc<dyn SeededDatabase>, Vec<LinkId>) -> BoxFuture<'static, PortResult<Vec<T>>>
        + Send
        + Sync,
    ) -> PortResult<Vec<T>> {
        let mut found = vec![T::default(); ids.len()];
        let mut left: Vec<usize> = (0..ids.len()).collect();
        let reroutes = Reroutes::new(op);
        while !left.is_empty() {
            let routing = self.routing().await?;
            let mut parts: BTreeMap<NodeIndex, Vec<usize>> = BTreeMap::new();
            for place in std::mem::take(&mut left) {
                let part = parts.entry(routing.owner(&ids[place])).or_default();
                part.push(place);
            }
            let mut reads = Vec::new();
            for (node, places) in parts {
                let part = places.iter().map(|place| ids[*place].clone()).collect();
                let (routing, read) = (&routing, &read);
                reads.push(async move {
                    let answer = match self.ports(routing, node).await {
                        Ok(ports) => read(Arc::clone(ports), part).await,
                        Err(error) => Err(error),
                    };
                    (node, places, answer)
                });
            }
            for (node, places, answer) in join_all(reads).await {
                match answer {
                    Ok(answers) => {
                        for (place, answer) in places.into_iter().zip(answers) {
                            found[place] = answer;
                        }
                    }
                    Err(error) if error.kind == ErrorKind::StaleEpoch => left.extend(places),
                    Err(error) => return Err(self.at_node(node, error)),
                }
            }
            if !left.is_empty() {
                self.reroute(&routing, &reroutes).await?;
            }
        }
        Ok(found)
    }
}

/// Returns when the first node has answered well, or the last failure when none did.
async fn first_answer(
    mut pings: FuturesUnordered<impl Future<Output = PortResult<()>>>,
) -> PortResult<()> {
    let mut last = Ok(());
    while let Some(answer) = pings.next().await {
        if answer.is_ok() {
            return Ok(());
        }
        last = answer;
    }
    last
}

fn note_failure(outcomes: &mut [PortResult<Inserted>], part: &Part, failure: &PortError) {
    for (place, _) in part {
        outcomes[*place] = Err(failure.clone());
    }
}

/// What a failure of one node means for a request to several: with another part done, nobody may use its keys again.
fn of_whole_request(mut failure: PortError, has_effect: bool) -> PortError {
    if has_effect && failure.kind.is_without_effect() {
        failure.kind = ErrorKind::Timeout;
    }
    failure
}
