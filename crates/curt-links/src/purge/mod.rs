//! Links whose grace period has ended become tombstones, and tombstones may become keys again.
//!
//! A link ends by its expiry or by its deletion, and stays for its owner for the grace period; see
//! [`Links::restore`](crate::Links::restore). Nothing depends on the purge being quick: such a link is refused when it is
//! read. So the purge is gentle.
//! - *On access*: links that visitors met after their grace period are purged in batches; a full queue loses nothing but
//!   time.
//! - *Scheduled*: those that ended first, batch by batch while there are full batches, and a long nap after a short
//!   one. Two purgers at once do not harm each other: the store looks at every link again before it changes it, so an
//!   expiry that was extended in between holds.
//! - *A clock that jumped ahead* ends nothing for good: see [`ClockGuard`]. What it expired is served again when it is
//!   right again.
//! - *Idempotency records* that are too old to be replayed go, too.
//! - *Recycling*, off by default: keys whose quarantine has ended go back to the supply (L-3). Nothing of the links that
//!   had them stays: the store remembers their generation, so that the next link has another, and permissions go.

mod pace;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::limits::{IDEMPOTENCY_KEPT, PURGE_BATCH_MAX};
use curt_core::names::event;
use curt_core::ports::{Idempotency, LinkChange, LinkIndex, Permissions};
use curt_core::{Clock, ClockGuard, LinkId, PortError, PortResult, UnixMillis};
use curt_keys::KeySupply;
use tokio_util::sync::CancellationToken;

use self::pace::Pace;
pub use self::pace::Pass;
use crate::invalidate::WriteOutcome;
use crate::metrics::LinkMetrics;
use crate::resolve::{EndedSeen, Resolver};

const DAY: Duration = Duration::from_secs(24 * 3_600);
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
    /// Most links that the schedule purges in a second.
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
    /// Keys that left the store and whose next steps failed: to revoke permissions, and to give them to the supply.
    released: Mutex<Vec<LinkChange>>,
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
        Arc::new(Self {
            settings,
            ports,
            supply,
            resolver,
            metrics,
            released: Mutex::default(),
        })
    }

    /// Works until `stop`; a batch under way is finished.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let pace = Pace::new(&self.settings);
        let sweep = async {
            if self.settings.scheduled {
                pace.keep(&stop, || self.sweep()).await;
            }
        };
        let recycle = async {
            if self.settings.recycle {
                pace.keep(&stop, || self.recycle()).await;
            }
        };
        let forget = pace.keep(&stop, || self.forget());
        tokio::join!(sweep, recycle, forget, self.purge_seen(&stop));
    }

    /// One batch of links whose grace period has ended, oldest first.
    pub async fn sweep(&self) -> PortResult<Pass> {
        let Some(now) = self.ports.trusted_now() else {
            return Ok(Pass::Short);
        };
        let before = now.minus(self.settings.grace);
        let ended = self.ports.index.ended(before, self.settings.batch).await?;
        let backlog = i64::try_from(ended.len()).unwrap_or(i64::MAX);
        self.metrics.purge_backlog.set(backlog);
        let purged = self.purge(&ended, "schedule").await?;
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

    /// One batch of tombstones whose quarantine has ended.
    pub async fn recycle(&self) -> PortResult<Pass> {
        let Some(now) = self.ports.trusted_now() else {
            return Ok(Pass::Short);
        };
        let before = now.minus(self.settings.quarantine);
        let mut keys = std::mem::take(&mut *self.released());
        let wanted = self.settings.batch.saturating_sub(keys.len());
        match self.ports.index.release(before, wanted).await {
            Ok(released) => {
                self.drop_copies(&released).await;
                keys.extend(released);
            }
            Err(failure) => {
                *self.released() = keys;
                return Err(failure);
            }
        }
        if keys.is_empty() {
            return Ok(Pass::Short);
        }
        if let Err(failure) = self.give_back(&keys).await {
            *self.released() = keys;
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
            if let Err(failure) = self.purge(&batch, "access").await {
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

    async fn purge(&self, batch: &[EndedSeen], how: &'static str) -> PortResult<usize> {
        if batch.is_empty() {
            return Ok(0);
        }
        // Asked again: what a visitor met may have been met under another time.
        let Some(now) = self.ports.trusted_now() else {
            return Ok(0);
        };
        let before = now.minus(self.settings.grace);
        let purged = self.ports.index.purge(batch, before, now).await?;
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

    fn released(&self) -> std::sync::MutexGuard<'_, Vec<LinkChange>> {
        self.released.lock().unwrap_or_else(PoisonError::into_inner)
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
