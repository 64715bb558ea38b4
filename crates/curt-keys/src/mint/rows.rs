use std::sync::Arc;

use curt_core::names::event;
use curt_core::ports::LinkStore;
use curt_core::{DomainId, LinkId, PortResult};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Barren, Minter};
use crate::lease::Leases;
use crate::metrics::KeyMetrics;
use crate::pace::report;
use crate::settings::ClaimSettings;

const LOCK: &str = "shard-locks/link-seeds";

/// Keeps enough unclaimed rows in the links database.
pub(crate) struct RowFill {
    links: Arc<dyn LinkStore>,
    minter: Minter,
    settings: ClaimSettings,
    metrics: KeyMetrics,
    leases: Mutex<Leases>,
}

impl RowFill {
    pub(crate) fn new(
        links: Arc<dyn LinkStore>,
        minter: Minter,
        settings: ClaimSettings,
        metrics: KeyMetrics,
        leases: Leases,
    ) -> Self {
        Self {
            links,
            minter,
            settings,
            metrics,
            leases: Mutex::new(leases),
        }
    }

    pub(crate) async fn pass(&self, stop: &CancellationToken) {
        if !self.owns().await {
            return;
        }
        match self.fill(stop).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(event = event::KEYS_MINTED, rows, "rows seeded"),
            Err(error) => report(&error),
        }
    }

    async fn owns(&self) -> bool {
        self.leases.lock().await.hold(LOCK).await
    }

    async fn fill(&self, stop: &CancellationToken) -> PortResult<u64> {
        let mut seeded = self.links.counts().await?.seeded;
        if seeded >= self.settings.low {
            return Ok(0);
        }
        let mut total = 0;
        let mut barren = Barren::default();
        while seeded < self.settings.high && !stop.is_cancelled() && self.owns().await {
            let missing = usize::try_from(self.settings.high - seeded).unwrap_or(usize::MAX);
            let batch = missing.min(self.settings.seed_batch);
            let ids: Vec<LinkId> = std::iter::repeat_with(|| self.minter.mint())
                .map(|key| LinkId::new(DomainId::DEFAULT, key))
                .take(batch)
                .collect();
            let new = self.links.seed(&ids).await?;
            self.metrics
                .duplicates
                .inc_by((batch as u64).saturating_sub(new));
            total += new;
            if barren.is_reached(new) {
                break;
            }
            seeded = self.links.counts().await?.seeded;
        }
        Ok(total)
    }

    pub(crate) async fn release_locks(&self) {
        self.leases.lock().await.release_all().await;
    }
}
