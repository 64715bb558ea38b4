use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use curt_core::names::event;
use curt_core::ports::{SeededDatabase, ShardMaps};
use curt_core::{
    ErrorKind, LinkId, NodeIndex, Placement, PortError, PortResult, ShardId, ShardMap,
};
use futures_util::future::join_all;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::BACKEND;
use crate::abandoned::SeenSwitch;
use crate::failing::FailingNodes;
use crate::founding::load_or_found;
use crate::node::{self, NodeList, ShardNode, at_node};
use crate::regions::NodeRegions;

/// How long a call is routed again and again while its shard has no owner that takes it. A move takes writes from the old
/// owner a moment before the new one gets them.
const REROUTE_MAX: Duration = Duration::from_secs(2);
const REROUTE_PAUSE: Duration = Duration::from_millis(10);
/// How long one watch of the map waits.
const WATCH: Duration = Duration::from_secs(30);
/// The pause after a watch that failed, and after a first load of the map that did.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// How long a node may take to say that it is there.
const PING_MAX: Duration = Duration::from_secs(2);

/// The ports of links, over many nodes.
pub struct ShardRouter {
    pub(crate) nodes: Vec<ShardNode>,
    pub(crate) maps: Arc<dyn ShardMaps>,
    placement: Placement,
    /// Where this process is.
    region: Option<Box<str>>,
    /// `None` before the first load.
    newest: RwLock<Option<Arc<Routing>>>,
    first_load: Mutex<Option<(Instant, PortError)>>,
    /// When the last load of the map began that [`reroute`](Self::reroute) asked for.
    last_load: Mutex<Option<Instant>>,
    /// The switch that was seen last, see [`end_abandoned_switch`](Self::end_abandoned_switch).
    pub(crate) switch: std::sync::Mutex<Option<SeenSwitch>>,
    pub(crate) failing: FailingNodes,
    /// Counts claims, so that they begin at one node after the other.
    pub(crate) claims: AtomicUsize,
}

/// A map with the ports of all nodes for calls that are routed by it.
pub(crate) struct Routing {
    pub(crate) map: Arc<ShardMap>,
    ports: Vec<Arc<dyn SeededDatabase>>,
    /// What the map's nodes are known by.
    list: NodeList,
    pub(crate) regions: NodeRegions,
}

impl Routing {
    fn new(nodes: &[ShardNode], map: ShardMap, (list, regions): (NodeList, NodeRegions)) -> Self {
        let map = Arc::new(map);
        let ports = nodes.iter();
        let ports = ports.map(|node| node.shards.routed_by(Arc::clone(&map)));
        Self {
            ports: ports.collect(),
            map,
            list,
            regions,
        }
    }

    pub(crate) fn owner(&self, id: &LinkId) -> NodeIndex {
        self.map.node(ShardId::of(id))
    }
}

/// How long one call has been routed again.
pub(crate) struct Reroutes {
    op: &'static str,
    begun: Instant,
}

impl Reroutes {
    pub(crate) fn new(op: &'static str) -> Self {
        let begun = Instant::now();
        Self { op, begun }
    }
}

/// Whether a node answers.
pub struct NodeHealth {
    pub node: NodeIndex,
    pub name: Box<str>,
    /// The region that it is written in, if that is another one than that of this process.
    pub other_region: Option<Box<str>>,
    pub answer: PortResult<()>,
}

impl ShardRouter {
    /// Reaches nothing. The nodes stand in the order of their indexes; the map is loaded, or made by `placement`, with the
    /// first call that needs it, and with [`open_map`](Self::open_map).
    #[must_use]
    pub fn new(nodes: Vec<ShardNode>, maps: Arc<dyn ShardMaps>, placement: Placement) -> Arc<Self> {
        Self::in_region(nodes, maps, placement, None)
    }

    /// As [`new`](Self::new), for a process in this region.
    #[must_use]
    pub fn in_region(
        nodes: Vec<ShardNode>,
        maps: Arc<dyn ShardMaps>,
        placement: Placement,
        region: Option<Box<str>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            failing: FailingNodes::new(nodes.len()),
            nodes,
            maps,
            placement,
            region,
            newest: RwLock::default(),
            first_load: Mutex::default(),
            last_load: Mutex::default(),
            switch: std::sync::Mutex::default(),
            claims: AtomicUsize::default(),
        })
    }

    /// Loads or makes the map, and checks that every node that can be reached is the database that the map means. Fails
    /// with [`Invalid`](ErrorKind::Invalid) when the nodes do not fit the map.
    pub async fn open_map(&self) -> PortResult<()> {
        let routing = self.routing().await?;
        let nodes = (0..).map(NodeIndex).zip(&routing.list.identities);
        let checks = nodes.map(|(node, _)| self.ports(&routing, node));
        for checked in join_all(checks).await {
            match checked {
                Err(error) if error.kind == ErrorKind::Invalid => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Watches the map until `stop`.
    pub async fn follow_map(&self, stop: CancellationToken) {
        let mut has_failed = false;
        loop {
            let watched = tokio::select! {
                () = stop.cancelled() => return,
                watched = self.watch_map() => watched,
            };
            if let Err(error) = &watched {
                if !has_failed {
                    warn!(event = event::SHARD_MAP_UNREADABLE, %error, "shard map not followed");
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(FAILED_PAUSE) => {}
                }
            }
            has_failed = watched.is_err();
        }
    }

    async fn watch_map(&self) -> PortResult<()> {
        let seen = self.routing().await?.map.version();
        match self.maps.watch(seen, WATCH).await? {
            Some(newer) => self.take_map(newer).await,
            None => Ok(()),
        }
    }

    /// The version of the map that calls are routed by; 0 before the first load.
    #[must_use]
    pub fn map_version(&self) -> u64 {
        self.newest().map_or(0, |routing| routing.map.version())
    }

    /// Asks every node that has shards whether it takes writes.
    pub async fn check_nodes(&self) -> PortResult<Vec<NodeHealth>> {
        let routing = self.routing().await?;
        let nodes = routing.map.nodes().into_iter();
        let checks = nodes.map(|node| {
            let routing = &routing;
            async move {
                let ping = async { self.ports(routing, node).await?.ping().await };
                let late = || {
                    let detail = format!("no answer within {PING_MAX:?}");
                    Err(PortError::new(
                        ErrorKind::Timeout,
                        BACKEND,
                        "answer",
                        detail,
                    ))
                };
                let answer = tokio::time::timeout(PING_MAX, ping).await;
                let answer = answer.unwrap_or_else(|_| late());
                self.failing.note(node, &answer);
                NodeHealth {
                    node,
                    name: self.name(node).into(),
                    other_region: self.other_region(node),
                    answer,
                }
            }
        });
        Ok(join_all(checks).await)
    }

    pub(crate) fn newest(&self) -> Option<Arc<Routing>> {
        let newest = self.newest.read().unwrap_or_else(PoisonError::into_inner);
        newest.clone()
    }

    pub(crate) async fn routing(&self) -> PortResult<Arc<Routing>> {
        if let Some(routing) = self.newest() {
            return Ok(routing);
        }
        let mut failed = self.first_load.lock().await;
        if let Some(routing) = self.newest() {
            return Ok(routing);
        }
        // Those who waited for a load that failed share its answer.
        if let Some((at, error)) = &*failed
            && at.elapsed() < FAILED_PAUSE
        {
            return Err(error.clone());
        }
        match load_or_found(&self.nodes, &*self.maps, self.placement).await {
            Ok((map, list)) => {
                let regions = NodeRegions::load(&*self.maps).await?;
                Ok(self.install(map, (list, regions)))
            }
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Goes by `map` from now on, unless a newer one is known.
    async fn take_map(&self, map: ShardMap) -> PortResult<()> {
        if map.version() <= self.map_version() {
            return Ok(());
        }
        // Nodes may have joined.
        let list = NodeList::load(&*self.maps).await?;
        let regions = NodeRegions::load(&*self.maps).await?;
        self.install(map, (list, regions));
        Ok(())
    }

    fn install(&self, map: ShardMap, about: (NodeList, NodeRegions)) -> Arc<Routing> {
        let version = map.version();
        let routing = Arc::new(Routing::new(&self.nodes, map, about));
        let mut newest = self.newest.write().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some(known) if known.map.version() >= version => Arc::clone(known),
            _ => {
                info!(
                    event = event::SHARD_MAP_CHANGED,
                    version, "shard map changed"
                );
                *newest = Some(Arc::clone(&routing));
                routing
            }
        }
    }

    /// Returns when a call that `routing` sent to a former owner should be tried again: with a newer map, or with the same
    /// a moment later, when the new owner has not been named yet.
    pub(crate) async fn reroute(&self, routing: &Routing, reroutes: &Reroutes) -> PortResult<()> {
        let refused = Instant::now();
        let is_newer = || self.map_version() > routing.map.version();
        let mut last_load = self.last_load.lock().await;
        if is_newer() {
            return Ok(());
        }
        // One load answers all calls that were refused before it began.
        if last_load.is_none_or(|began| began < refused) {
            *last_load = Some(Instant::now());
            let map = self.maps.load().await?;
            self.take_map(map).await?;
        }
        drop(last_load);
        if is_newer() {
            return Ok(());
        }
        if reroutes.begun.elapsed() >= REROUTE_MAX {
            let detail = "the shard is moving to another node, which takes longer than it should";
            let kind = ErrorKind::Unavailable;
            return Err(PortError::new(kind, BACKEND, reroutes.op, detail));
        }
        tokio::time::sleep(REROUTE_PAUSE).await;
        Ok(())
    }

    /// The ports of a node, which is asked with the first call whether it is the database that the map means.
    pub(crate) async fn ports<'a>(
        &self,
        routing: &'a Routing,
        index: NodeIndex,
    ) -> PortResult<&'a Arc<dyn SeededDatabase>> {
        let place = usize::try_from(index.0).unwrap_or(usize::MAX);
        let known = (self.nodes.get(place), routing.ports.get(place));
        let ((Some(node), Some(ports)), Some(identity)) =
            (known, routing.list.identities.get(place))
        else {
            let detail = format!(
                "the shard map gives shards to node {}, and store.links names {} here: add its address and restart",
                index.0,
                self.nodes.len()
            );
            let kind = ErrorKind::Unavailable;
            return Err(PortError::new(kind, BACKEND, "route a call", detail));
        };
        let known = node.require_identity(index, identity).await;
        known.map_err(|error| self.at_node(index, error))?;
        Ok(ports)
    }

    /// Every node that has shards, with its ports or why there are none.
    pub(crate) async fn all_ports<'a>(
        &self,
        routing: &'a Routing,
    ) -> Vec<(NodeIndex, PortResult<&'a Arc<dyn SeededDatabase>>)> {
        let nodes = routing.map.nodes().into_iter();
        join_all(nodes.map(|node| async move { (node, self.ports(routing, node).await) })).await
    }

    /// Says of which node a failure tells.
    pub(crate) fn at_node(&self, node: NodeIndex, failure: PortError) -> PortError {
        let mut failure = at_node(&self.nodes, node, failure);
        failure.region = self.other_region(node);
        failure
    }

    pub(crate) fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// The region of a node, if it is another one than that of this process.
    fn other_region(&self, node: NodeIndex) -> Option<Box<str>> {
        let routing = self.newest()?;
        let region = routing.regions.of(node)?;
        (Some(region) != self.region()).then(|| region.into())
    }

    pub(crate) fn name(&self, node: NodeIndex) -> &str {
        node::find(&self.nodes, node).map_or("?", |node| &node.name)
    }
}

/// Calls the owner of a shard, and again with a newer map when it is no longer the owner.
macro_rules! call_owner {
    ($router:expr, $op:expr, $shard:expr, $ports:ident => $call:expr) => {
        $crate::router::call_owner!($router, $op, $shard, node, $ports => $call)
    };
    ($router:expr, $op:expr, $shard:expr, $node:ident, $ports:ident => $call:expr) => {{
        let reroutes = $crate::router::Reroutes::new($op);
        loop {
            let routing = $router.routing().await?;
            let $node = routing.map.node($shard);
            let $ports = $router.ports(&routing, $node).await?;
            match $call.await {
                Err(error) if error.kind == curt_core::ErrorKind::StaleEpoch => {
                    $router.reroute(&routing, &reroutes).await?;
                }
                answer => break answer.map_err(|error| $router.at_node($node, error)),
            }
        }
    }};
}
pub(crate) use call_owner;
