//! Links whose grace period has ended become tombstones, and tombstones may become keys again.
//!
//! A link ends by its expiry or by its deletion, and stays for its owner for the grace period; see
//! [`Links::restore`](crate::Links::restore). Nothing depends on the purge being quick: such a link is refused when it is
//! read. So the purge is gentle.
//! - *On access*: links that visitors met after their grace period are purged in batches; a full queue loses nothing but
//!   time.
//! - *Scheduled*: those that ended first, batch by batch while there are full batches, and a long nap after a short
//!   one. Each links database is worked on by itself, so that one that is away, or has much to purge, delays no other, and
//!   by one process, which holds its lease: the others would do the same work again. Two purgers at once do not harm each
//!   other all the same: the store looks at every link again before it changes it, so an expiry that was extended in
//!   between holds.
//! - *A clock that jumped ahead* ends nothing for good: see [`ClockGuard`]. What it expired is served again when it is
//!   right again.
//! - *Idempotency records* that are too old to be replayed go, too.
//! - *Recycling*, off by default: keys whose quarantine has ended go back to the supply (L-3). Nothing of the links that
//!   had them stays: the store remembers their generation, so that the next link has another, and permissions go.

mod node;
mod pace;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use curt_core::limits::{IDEMPOTENCY_KEPT, PURGE_BATCH_MAX};
use curt_core::names::event;
use curt_core::ports::{Idempotency, LinkChange, LinkIndex, Permissions};
use curt_core::{Clock, ClockGuard, LinkId, PortError, PortResult, UnixMillis};
use curt_keys::{HeldLeases, KeySupply, LeaseName};
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::node::PurgeNode;
use self::pace::Pace;
pub use self::pace::Pass;
use crate::invalidate::WriteOutcome;
use crate::metrics::LinkMetrics;
use crate::resolve::{EndedSeen, Resolver};

const DAY: Duration = Duration::from_secs(24 * 3_600);
/// Databases that are worked on at a time.
const NODES_AT_ONCE_MAX: usize = 8;
/// Between two batches of links that visitors met: at most ten small transactions a second.
const ACCESS_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct PurgeSettings {
    /// How long links stay after their end.
    pub grace: Duration,
    /// Purge what visitors meet.
    pub on_access: bool,
    /// Purge by the clock.
    pub scheduled: bool,
    /// The nap after everything that is due has been purged.
    pub every: Duration,
    /// Links in one batch; at most [`PURGE_BATCH_MAX`].
    pub batch: usize,
    /// Most links that the schedule purges in a second, in each links database.
    pub rate_max: u32,
    /// Give the keys of old tombstones back to the supply.
    pub recycle: bool,
    /// How long a tombstone stays before its key may be used again.
    pub quarantine: Duration,
}

impl Default for PurgeSettings {
    fn default() -> Self {
        Self {
            grace: Duration::ZERO,
            on_access: true,
            scheduled: true,
            every: Duration::from_secs(60),
            batch: 500,
            rate_max: 5_000,
            recycle: false,
            quarantine: DAY * 180,
        }
    }
}

/// What a purger works on.
#[derive(Clone)]
pub struct PurgePorts {
    pub index: Arc<dyn LinkIndex>,
    /// Every links database by itself, where there are several; see [`LinkPorts`](curt_core::ports::LinkPorts).
    pub nodes: Vec<Arc<dyn LinkIndex>>,
    /// Only the holder of a database's lease purges it.
    pub leases: Arc<HeldLeases>,
    pub idempotency: Arc<dyn Idempotency>,
    pub permissions: Arc<dyn Permissions>,
    pub clock: Arc<dyn Clock>,
    /// Asked before anything is removed by time; `None` trusts the clock.
    pub clock_guard: Option<Arc<ClockGuard>>,
}

impl PurgePorts {
    /// What the clock says; `None` while it is not trusted.
    fn trusted_now(&self) -> Option<UnixMillis> {
        match &self.clock_guard {
            Some(guard) => guard.trusted_now(),
            None => Some(self.clock.now()),
        }
    }
}

pub struct Purger {
    settings: PurgeSettings,
    ports: PurgePorts,
    supply: Arc<KeySupply>,
    resolver: Arc<Resolver>,
    metrics: LinkMetrics,
    nodes: Vec<PurgeNode>,
    at_once: Semaphore,
}

impl Purger {
    pub fn new(
        settings: PurgeSettings,
        ports: PurgePorts,
        supply: Arc<KeySupply>,
        resolver: Arc<Resolver>,
        metrics: LinkMetrics,
    ) -> Arc<Self> {
        let settings = PurgeSettings {
            batch: settings.batch.clamp(1, PURGE_BATCH_MAX),
            rate_max: settings.rate_max.max(1),
            ..settings
        };
        let indexes = match ports.nodes.is_empty() {
            true => vec![ports.index.clone()],
            false => ports.nodes.clone(),
        };
        let nodes = indexes.into_iter().enumerate();
        Arc::new(Self {
            settings,
            ports,
            supply,
            resolver,
            metrics,
            nodes: nodes.map(|(at, index)| PurgeNode::new(at, index)).collect(),
            at_once: Semaphore::new(NODES_AT_ONCE_MAX),
        })
    }

    /// Works until `stop`; a batch under way is finished.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let pace = Pace::new(&self.settings);
        let (pace, stop, purger) = (&pace, &stop, &*self);
        let nodes = || self.nodes.iter().enumerate();
        let sweeps = nodes().map(|(at, node)| async move {
            if purger.settings.scheduled {
                let pass = || purger.on_lease(&node.lease, purger.sweep(at));
                pace.keep(stop, pass).await;
            }
        });
        let recycles = nodes().map(|(at, node)| async move {
            if purger.settings.recycle {
                let pass = || purger.on_lease(&node.lease, purger.recycle(at));
                pace.keep(stop, pass).await;
            }
        });
        let forget = pace.keep(stop, || {
            purger.on_lease(&LeaseName::Requests, purger.forget())
        });
        let nodes = async { tokio::join!(join_all(sweeps), join_all(recycles)) };
        tokio::join!(nodes, forget, self.purge_seen(stop));
        self.ports.leases.release_all().await;
    }

    /// Runs a pass if its work is this process's, beside few others.
    async fn on_lease(
        &self,
        lease: &LeaseName,
        pass: impl Future<Output = PortResult<Pass>>,
    ) -> PortResult<Pass> {
        // It is never closed.
        let _permit = self.at_once.acquire().await;
        match self.ports.leases.keep(lease).await {
            true => pass.await,
            false => Ok(Pass::Short),
        }
    }

    /// One batch of links whose grace period has ended, oldest first, of the links database with this
    /// number.
    pub async fn sweep(&self, node: usize) -> PortResult<Pass> {
        let (Some(now), Some(node)) = (self.ports.trusted_now(), self.nodes.get(node)) else {
            return Ok(Pass::Short);
        };
        let before = now.minus(self.settings.grace);
        let ended = node.index.ended(before, self.settings.batch).await?;
        node.set_backlog(ended.len());
        let backlog = self.nodes.iter().map(PurgeNode::backlog).sum();
        self.metrics.purge_backlog.set(backlog);
        let purged = self.purge(&*node.index, &ended, "schedule").await?;
        Ok(Pass::of(ended.len(), purged, self.settings.batch))
    }

    /// One batch of idempotency records that are too old to be replayed.
    pub async fn forget(&self) -> PortResult<Pass> {
        let Some(now) = self.ports.trusted_now() else {
            return Ok(Pass::Short);
        };
        let (before, batch) = (now.minus(IDEMPOTENCY_KEPT), self.settings.batch);
        let forgotten = self.ports.idempotency.forget_before(before, batch).await?;
        Ok(Pass::of(forgotten, forgotten, batch))
    }

    /// One batch of tombstones whose quarantine has ended, of the links database with this
    /// number.
    pub async fn recycle(&self, node: usize) -> PortResult<Pass> {
        let (Some(now), Some(node)) = (self.ports.trusted_now(), self.nodes.get(node)) else {
            return Ok(Pass::Short);
        };
        let before = now.minus(self.settings.quarantine);
        let mut keys = std::mem::take(&mut *node.released());
        let wanted = self.settings.batch.saturating_sub(keys.len());
        match node.index.release(before, wanted).await {
            Ok(released) => {
                self.drop_copies(&released).await;
                keys.extend(released);
            }
            Err(failure) => {
                *node.released() = keys;
                return Err(failure);
            }
        }
        if keys.is_empty() {
            return Ok(Pass::Short);
        }
        if let Err(failure) = self.give_back(&keys).await {
            *node.released() = keys;
            return Err(failure);
        }
        Ok(Pass::of(keys.len(), keys.len(), self.settings.batch))
    }

    /// Removes what is left of the links that had the keys, and lets the supply give the keys again.
    async fn give_back(&self, keys: &[LinkChange]) -> PortResult<()> {
        self.ports.permissions.revoke_released(keys).await?;
        let ids: Vec<LinkId> = keys.iter().map(|one| one.id.clone()).collect();
        self.supply.recycle(&ids).await.map(drop)
    }

    /// Purges what the resolver met, until `stop`.
    async fn purge_seen(&self, stop: &CancellationToken) {
        if !self.settings.on_access {
            return;
        }
        let Some(mut seen) = self.resolver.take_ended_seen() else {
            return;
        };
        let mut batch: Vec<EndedSeen> = Vec::new();
        loop {
            let taken = tokio::select! {
                () = stop.cancelled() => return,
                taken = seen.recv_many(&mut batch, self.settings.batch) => taken,
            };
            if taken == 0 {
                return;
            }
            let mut ids = HashSet::new();
            batch.retain(|(id, _)| ids.insert(id.clone()));
            if let Err(failure) = self.purge(&*self.ports.index, &batch, "access").await {
                // Dropped: the schedule finds these links, or the next visitor does.
                report(&failure);
            }
            batch.clear();
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(ACCESS_PAUSE) => {}
            }
        }
    }

    async fn purge(
        &self,
        index: &dyn LinkIndex,
        batch: &[EndedSeen],
        how: &'static str,
    ) -> PortResult<usize> {
        if batch.is_empty() {
            return Ok(0);
        }
        // Asked again: what a visitor met may have been met under another time.
        let Some(now) = self.ports.trusted_now() else {
            return Ok(0);
        };
        let before = now.minus(self.settings.grace);
        let purged = index.purge(batch, before, now).await?;
        self.drop_copies(&purged).await;
        self.metrics.purged(how).inc_by(purged.len() as u64);
        if !purged.is_empty() {
            tracing::debug!(
                event = event::LINKS_PURGED,
                links = purged.len(),
                how,
                "links purged"
            );
        }
        Ok(purged.len())
    }

    async fn drop_copies(&self, changes: &[LinkChange]) {
        self.resolver.invalidate(changes);
        let outcome = WriteOutcome::Changed;
        self.resolver.publish(changes.to_vec(), outcome).await;
    }
}

fn report(failure: &PortError) {
    tracing::warn!(
        event = event::STORE_FAILED,
        kind = failure.kind.as_str(),
        error = %failure,
        "purge failed"
    );
}
