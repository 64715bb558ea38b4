use std::sync::Arc;

use async_trait::async_trait;
use curt_core::names::event;
use curt_core::ports::{LinkTotals, SeededLinks};
use curt_core::{DomainId, LinkId, PortResult};
use tokio_util::sync::CancellationToken;

use super::{KeySpace, Minter};
use crate::lease::{HeldLeases, LeaseName};
use crate::metrics::KeyMetrics;
use crate::pace::{NextPass, report};
use crate::settings::ClaimSettings;
use crate::source::KeyProducer;

/// Keeps enough unclaimed rows in the links database.
pub(crate) struct RowFill {
    pub(crate) rows: Arc<dyn SeededLinks>,
    pub(crate) totals: Arc<dyn LinkTotals>,
    pub(crate) minter: Minter,
    pub(crate) settings: ClaimSettings,
    pub(crate) metrics: KeyMetrics,
    pub(crate) leases: HeldLeases,
}

impl RowFill {
    async fn owns(&self) -> bool {
        self.leases.keep(&LeaseName::Rows).await
    }

    async fn fill(&self, stop: &CancellationToken) -> PortResult<u64> {
        let mut seeded = self.totals.counts().await?.seeded;
        if seeded >= self.settings.low {
            return Ok(0);
        }
        let mut total = 0;
        let mut key_space = KeySpace::default();
        while seeded < self.settings.high && !stop.is_cancelled() && self.owns().await {
            let missing = usize::try_from(self.settings.high - seeded).unwrap_or(usize::MAX);
            let batch = missing.min(self.settings.seed_batch);
            let ids: Vec<LinkId> = std::iter::repeat_with(|| self.minter.mint())
                .map(|key| LinkId::new(DomainId::DEFAULT, key))
                .take(batch)
                .collect();
            let new = self.rows.seed(&ids).await?;
            self.metrics
                .duplicates
                .inc_by((batch as u64).saturating_sub(new));
            total += new;
            if key_space.is_exhausted(new) {
                break;
            }
            seeded = self.totals.counts().await?.seeded;
        }
        Ok(total)
    }
}

#[async_trait]
impl KeyProducer for RowFill {
    async fn generate(&self, stop: &CancellationToken) -> NextPass {
        if self.owns().await {
            match self.fill(stop).await {
                Ok(0) => {}
                Ok(rows) => tracing::info!(event = event::KEYS_MINTED, rows, "rows seeded"),
                Err(error) => report(&error),
            }
        }
        NextPass::AtTick
    }

    async fn release_leases(&self) {
        self.leases.release_all().await;
    }
}
