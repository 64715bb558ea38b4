//! L2: links as they are served, on servers that all processes share, over any [`LinkCache`].
//!
//! - A hash ring with virtual nodes says which servers hold a link, `replicas` of them. One of them is asked; what is loaded
//!   from the store fills all, in the background.
//! - A change invalidates all of them before its request is answered. A server that misses an invalidation, or fails too
//!   often, is left: not asked, not filled. It comes back cleared, for every process, so that it cannot serve what it held
//!   before (its epoch is part of each entry), unless its answers were late and nothing else.
//! - Every call has a deadline of a few milliseconds. Without the cache, or with a slow one, the store answers.
//! - An entry is filled only with what was loaded a moment ago. A slower load could bring a row from before a change whose
//!   marker is gone, or from before the server left.

mod metrics;
mod server;
mod settings;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::placement::Ring;
use curt_core::ports::{CachedLink, LinkCache, LinkChange};
use curt_core::{Clock, LinkId, Revision, ServedLink, UnixMillis};
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use metrics::SharedCacheMetrics;
use server::{CacheServer, LEFT_MIN};
pub use settings::{CacheBalance, SharedCacheSettings};

use crate::invalidate::RecentChanges;

/// Oldest load that an entry is filled from. Shorter than a server is left at least.
const FILL_AGE_MAX: Duration = Duration::from_millis(500);
const _: () = assert!(FILL_AGE_MAX.as_millis() < LEFT_MIN.as_millis());
/// How much longer markers live than entries: longer than any fill is under way.
const MARKER_TTL_MORE: Duration = Duration::from_secs(10);
/// Fills that wait; more are left to later loads.
const FILLS_MAX: usize = 4_096;
/// Fills, and invalidations, that are under way together.
const TOGETHER_MAX: usize = 64;
/// How often servers that were left are tried, and how often all are asked what they hold.
const PROBE_EVERY: Duration = Duration::from_millis(250);
const USAGE_EVERY: Duration = Duration::from_secs(10);
/// One look in this many goes to the slower replica, so that it is known when that is the faster one again.
const EXPLORE_ODDS: u32 = 32;

/// A change, and the revision that it left if that is known.
pub(crate) type Outdated = (LinkId, Option<Revision>);

pub struct SharedCache {
    settings: SharedCacheSettings,
    ring: Option<Ring>,
    servers: Vec<CacheServer>,
    clock: Arc<dyn Clock>,
    metrics: SharedCacheMetrics,
    /// What changed lately: a server that could not be told may hold what was before.
    recent: RecentChanges,
    fills: mpsc::Sender<(LinkId, ServedLink)>,
    fills_waiting: Mutex<Option<mpsc::Receiver<(LinkId, ServedLink)>>>,
    turn: AtomicUsize,
}

impl SharedCache {
    /// `servers` are named, in any order: names decide which server holds what.
    #[must_use]
    pub fn new(
        settings: SharedCacheSettings,
        servers: Vec<(String, Arc<dyn LinkCache>)>,
        clock: Arc<dyn Clock>,
        metrics: SharedCacheMetrics,
    ) -> Arc<Self> {
        let names: Vec<&str> = servers.iter().map(|(name, _)| name.as_str()).collect();
        let ring = Ring::new(&names, settings.virtual_nodes);
        let (fills, fills_waiting) = mpsc::channel(FILLS_MAX);
        let servers = servers
            .into_iter()
            .map(|(name, cache)| CacheServer::new(name, cache, settings.deadline, &metrics));
        Arc::new(Self {
            ring,
            servers: servers.collect(),
            settings,
            clock,
            metrics,
            recent: RecentChanges::default(),
            fills,
            fills_waiting: Mutex::new(Some(fills_waiting)),
            turn: AtomicUsize::new(0),
        })
    }

    /// Returns the link if a server has it that may be asked, from a load that began at `since` or later.
    pub(crate) async fn get(&self, id: &LinkId, since: UnixMillis) -> Option<ServedLink> {
        let replicas = self.order(id);
        if replicas.is_empty() {
            self.metrics.skipped.inc();
            return None;
        }
        for server in replicas {
            match server.get(id).await {
                Ok(Some(CachedLink::Present(link))) => return self.check(id, link, since),
                Ok(Some(CachedLink::Absent(_)) | None) => {
                    self.metrics.miss.inc();
                    return None;
                }
                Err(_) => self.metrics.error.inc(),
            };
        }
        None
    }

    /// Refuses what is older than what this process knows of, and what may be.
    fn check(&self, id: &LinkId, link: ServedLink, since: UnixMillis) -> Option<ServedLink> {
        let is_outdated = link.loaded_at() < since || self.recent.is_outdated(id, link.revision());
        if is_outdated || !link.is_of(id.as_ref()) {
            self.metrics.outdated.inc();
            return None;
        }
        self.metrics.hit.inc();
        Some(link)
    }

    /// Has the link put on all of its servers, in the background.
    pub(crate) fn fill(&self, id: &LinkId, link: ServedLink) {
        if self.fills.try_send((id.clone(), link)).is_err() {
            self.metrics.fill_dropped.inc();
        }
    }

    /// Remembers what changed, so that older entries are not believed.
    pub(crate) fn note_changes(&self, changes: &[LinkChange]) {
        self.recent.note(changes);
    }

    /// Invalidates entries on all of their servers, [`TOGETHER_MAX`] at a time. A server that does not answer costs ten
    /// deadlines once, and is left. To be run to its end: one that is dropped may have missed a server.
    pub(crate) async fn invalidate(&self, outdated: &[Outdated]) {
        let mut calls = Vec::new();
        for (id, revision) in outdated {
            for server in self.replicas(id) {
                calls.push(self.invalidate_at(server, id, *revision));
            }
        }
        let mut calls = stream::iter(calls).buffer_unordered(TOGETHER_MAX);
        while calls.next().await.is_some() {}
    }

    async fn invalidate_at(&self, server: &CacheServer, id: &LinkId, revision: Option<Revision>) {
        let ttl = self.settings.ttl + MARKER_TTL_MORE;
        match server.invalidate(id, revision, ttl).await {
            true => self.metrics.invalidated.inc(),
            false => self.metrics.invalidation_failed.inc(),
        };
    }

    /// Fills, brings back servers that were left, and reads what they hold, until `stop`. The first caller does; others
    /// return at once.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let waiting = self.fills_waiting.lock();
        let Some(waiting) = waiting.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let work =
            async { tokio::join!(self.run_fills(waiting), self.run_probes(), self.run_usage()) };
        tokio::select! {
            () = stop.cancelled() => {}
            _ = work => {}
        }
    }

    async fn run_fills(&self, mut waiting: mpsc::Receiver<(LinkId, ServedLink)>) {
        let mut batch = Vec::with_capacity(TOGETHER_MAX);
        while waiting.recv_many(&mut batch, TOGETHER_MAX).await > 0 {
            join_all(batch.drain(..).map(|(id, link)| self.fill_all(id, link))).await;
        }
    }

    async fn fill_all(&self, id: LinkId, link: ServedLink) {
        if self.clock.now().since(link.loaded_at()) >= FILL_AGE_MAX {
            self.metrics.fill_dropped.inc();
            return;
        }
        for server in self
            .replicas(&id)
            .into_iter()
            .filter(|server| server.is_up())
        {
            match server.set(&id, &link, self.settings.ttl).await {
                true => self.metrics.filled.inc(),
                false => self.metrics.fill_failed.inc(),
            };
        }
    }

    async fn run_probes(&self) {
        loop {
            tokio::time::sleep(PROBE_EVERY).await;
            join_all(self.servers.iter().map(CacheServer::try_return)).await;
        }
    }

    async fn run_usage(&self) {
        loop {
            join_all(self.servers.iter().map(CacheServer::read_usage)).await;
            tokio::time::sleep(USAGE_EVERY).await;
        }
    }

    /// The servers that hold a link.
    fn replicas(&self, id: &LinkId) -> Vec<&CacheServer> {
        let Some(ring) = &self.ring else {
            return Vec::new();
        };
        let nodes = ring.nodes_of(id.key.as_bytes(), self.settings.replicas);
        let server = |node: &curt_core::NodeIndex| self.servers.get(usize::try_from(node.0).ok()?);
        nodes.iter().filter_map(server).collect()
    }

    /// The servers to ask, in this order: two at most.
    fn order(&self, id: &LinkId) -> Vec<&CacheServer> {
        let mut servers = self.replicas(id);
        servers.retain(|server| server.is_up());
        if servers.len() < 2 {
            return servers;
        }
        let count = servers.len();
        match self.settings.balance {
            CacheBalance::RoundRobin => {
                servers.rotate_left(self.turn.fetch_add(1, Ordering::Relaxed) % count);
            }
            CacheBalance::PowerOfTwo => {
                let first = rand::random_range(0..count);
                let second = (first + rand::random_range(1..count)) % count;
                let mut pair = [servers[first], servers[second]];
                pair.sort_by_key(|server| server.latency());
                if rand::random_range(0..EXPLORE_ODDS) == 0 {
                    pair.reverse();
                }
                servers = pair.to_vec();
            }
        }
        servers.truncate(2);
        servers
    }
}

#[cfg(test)]
mod tests;
