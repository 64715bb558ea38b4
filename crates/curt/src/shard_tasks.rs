//! What a process does about the nodes of its links database: follows the map, and watches the nodes.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use curt_core::names::{event, metric};
use curt_core::{Clock, ErrorKind, PortError, PortResult};
use curt_http::{Impact, Readiness};
use curt_shards::{NodeHealth, ShardRouter, require_unsharded};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::config::{Config, ConfigError};
use crate::health::{note_fail, note_pass};
use crate::supervisor::Supervisor;
use crate::wiring::Stores;

/// How long a start waits for the map; a process starts without it.
const OPEN_MAX: Duration = Duration::from_secs(2);
/// A look at a node is a write.
const NODES_EVERY: Duration = Duration::from_secs(5);
/// How often a switch is looked for whose mover died.
const SWITCHES_EVERY: Duration = Duration::from_millis(250);
const LINKS_NODES: &str = "links_nodes";

/// Refuses nodes that do not fit the shard map. Where that cannot be reached, the first call that can reach it finds out.
pub(crate) async fn open_map(config: &Config, stores: &mut Stores) -> anyhow::Result<()> {
    let store = &config.store;
    match &stores.main.router {
        Some(router) => finish_opening(router.open_map()).await,
        None if !store.may_be_lone_node() => Ok(()),
        None => {
            let maps = stores.engines.shard_maps(&store.shard_map)?;
            finish_opening(require_unsharded(&*maps)).await
        }
    }
}

async fn finish_opening(opening: impl Future<Output = PortResult<()>>) -> anyhow::Result<()> {
    let opened = tokio::time::timeout(OPEN_MAX, opening).await;
    let late = || {
        let detail = format!("no answer within {OPEN_MAX:?}");
        Err(PortError::new(
            ErrorKind::Timeout,
            "shards",
            "open the shard map",
            detail,
        ))
    };
    match opened.unwrap_or_else(|_| late()) {
        Err(error) if error.kind == ErrorKind::Invalid => {
            Err(ConfigError::new(format!("store.links: {}", error.detail)).into())
        }
        // Whatever else needs the database tells that it is away.
        Err(error) => {
            debug!(%error, "shard map awaited");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Watches until it is known that a links database which is the only one here is no node of several: it may have been
/// away at the start.
pub(crate) fn watch_lone_node(
    config: &Config,
    stores: &mut Stores,
    supervisor: &Supervisor,
    ready: &Arc<Readiness>,
) -> anyhow::Result<()> {
    if !config.store.may_be_lone_node() {
        return Ok(());
    }
    let maps = stores.engines.shard_maps(&config.store.shard_map)?;
    let ready = Arc::clone(ready);
    supervisor.start("lone-node", |stop| async move {
        loop {
            match require_unsharded(&*maps).await {
                Ok(()) => return note_pass(&ready, LINKS_NODES),
                Err(error) if error.kind == ErrorKind::Invalid => {
                    note_fail(&ready, LINKS_NODES, Impact::Unavailable, &error);
                }
                Err(_) => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(NODES_EVERY) => {}
            }
        }
    });
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabel {
    node: u32,
}

#[derive(Clone, Default)]
struct NodeMetrics {
    up: Family<NodeLabel, Gauge>,
    map_version: Gauge<u64, AtomicU64>,
}

impl NodeMetrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            metric::LINKS_NODE_UP,
            "Whether a node of the links database takes writes",
            metrics.up.clone(),
        );
        registry.register(
            metric::SHARD_MAP_VERSION,
            "Version of the shard map that calls are routed by",
            metrics.map_version.clone(),
        );
        metrics
    }

    fn note(&self, router: &ShardRouter, nodes: &[NodeHealth]) {
        self.map_version.set(router.map_version());
        for health in nodes {
            let up = self.up.get_or_create(&NodeLabel {
                node: health.node.0,
            });
            up.set(i64::from(health.answer.is_ok()));
        }
    }
}

/// Starts to follow the map and to watch the nodes.
pub(crate) fn start(
    router: &Arc<ShardRouter>,
    clock: Arc<dyn Clock>,
    supervisor: &Supervisor,
    ready: &Arc<Readiness>,
    registry: &mut Registry,
) {
    let follower = Arc::clone(router);
    supervisor.start("shard-map", |stop| async move {
        follower.follow_map(stop).await;
    });
    let ender = Arc::clone(router);
    supervisor.start("shard-switches", |stop| end_switches(ender, clock, stop));
    let (router, ready) = (Arc::clone(router), Arc::clone(ready));
    let metrics = NodeMetrics::register(registry);
    supervisor.start("links-nodes", |stop| watch(router, ready, metrics, stop));
}

/// Ends switches whose movers died: writes to one shard wait for each.
async fn end_switches(router: Arc<ShardRouter>, clock: Arc<dyn Clock>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(SWITCHES_EVERY) => {}
        }
        match router.end_abandoned_switch(&clock, &stop).await {
            Ok(false) => {}
            Ok(true) => warn!(
                event = event::SHARD_SWITCH_ENDED,
                "switch of dead mover ended"
            ),
            // The map cannot be read, which its follower tells.
            Err(error) => debug!(%error, "abandoned switches not looked for"),
        }
    }
}

/// A node that is away costs its own links: the process goes on, degraded.
async fn watch(
    router: Arc<ShardRouter>,
    ready: Arc<Readiness>,
    metrics: NodeMetrics,
    stop: CancellationToken,
) {
    loop {
        let checked = tokio::select! {
            () = stop.cancelled() => return,
            checked = router.check_nodes() => checked,
        };
        match failed_nodes(&checked) {
            None => note_pass(&ready, LINKS_NODES),
            Some(failure) => note_fail(&ready, LINKS_NODES, Impact::Degraded, &failure),
        }
        metrics.note(&router, checked.as_deref().unwrap_or_default());
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(NODES_EVERY) => {}
        }
    }
}

/// Says which nodes do not answer, if one does not.
fn failed_nodes(checked: &PortResult<Vec<NodeHealth>>) -> Option<String> {
    let nodes = match checked {
        Ok(nodes) => nodes,
        Err(error) => return Some(error.to_string()),
    };
    let failed = nodes.iter().filter_map(|health| {
        let error = health.answer.as_ref().err()?;
        let (node, name) = (health.node.0, &health.name);
        let about = match &health.other_region {
            Some(region) => format!(
                "node {node} ({name}), written in region {region}: its links cannot be created or changed from here, \
                 and go on redirecting from replicas of this region"
            ),
            None => format!("node {node} ({name})"),
        };
        Some(format!("{about}: {}", error.detail))
    });
    let failed: Vec<String> = failed.collect();
    (!failed.is_empty()).then(|| failed.join("; "))
}
