use std::sync::Arc;

use curt_core::names::event;
use curt_core::place::Modulo;
use curt_core::ports::KeyLedger;
use curt_core::{Key, PortResult};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Barren, Minter};
use crate::lease::Leases;
use crate::metrics::KeyMetrics;
use crate::pace::report;
use crate::settings::LedgerSettings;

/// Keeps every ledger shard between its marks. Keys go to the shard that their hash names, so that one shard's unique
/// constraint is enough: the same key cannot be minted into two.
pub(crate) struct LedgerFill {
    ledgers: Vec<Arc<dyn KeyLedger>>,
    homes: Modulo,
    minter: Minter,
    settings: LedgerSettings,
    metrics: KeyMetrics,
    leases: Mutex<Leases>,
}

impl LedgerFill {
    pub(crate) fn new(
        ledgers: Vec<Arc<dyn KeyLedger>>,
        homes: Modulo,
        minter: Minter,
        settings: LedgerSettings,
        metrics: KeyMetrics,
        leases: Leases,
    ) -> Self {
        Self {
            ledgers,
            homes,
            minter,
            settings,
            metrics,
            leases: Mutex::new(leases),
        }
    }

    /// One pass over all shards. `minted` is told after every insert, so that the first keys flow on at once.
    pub(crate) async fn pass(&self, stop: &CancellationToken, minted: &(dyn Fn() + Sync)) {
        for shard in 0..self.ledgers.len() {
            if !self.owns(shard).await {
                continue;
            }
            match self.fill(shard, stop, minted).await {
                Ok(0) => {}
                Ok(keys) => tracing::info!(event = event::KEYS_MINTED, shard, keys, "keys minted"),
                Err(error) => report(&error),
            }
            if stop.is_cancelled() {
                return;
            }
        }
    }

    async fn owns(&self, shard: usize) -> bool {
        let lock = format!("shard-locks/keys-db-{shard}");
        self.leases.lock().await.hold(&lock).await
    }

    async fn fill(
        &self,
        shard: usize,
        stop: &CancellationToken,
        minted: &(dyn Fn() + Sync),
    ) -> PortResult<u64> {
        let ledger = &self.ledgers[shard];
        let mut free = ledger.counts().await?.free;
        if free >= self.settings.low {
            return Ok(0);
        }
        let mut total = 0;
        let mut barren = Barren::default();
        while free < self.settings.high && !stop.is_cancelled() && self.owns(shard).await {
            let missing = usize::try_from(self.settings.high - free).unwrap_or(usize::MAX);
            let keys = self.mint_for(shard, missing.min(self.settings.mint_batch));
            let new = ledger.insert(&keys).await?;
            self.metrics
                .duplicates
                .inc_by((keys.len() as u64).saturating_sub(new));
            total += new;
            minted();
            if barren.is_reached(new) {
                break;
            }
            free = ledger.counts().await?.free;
        }
        Ok(total)
    }

    fn mint_for(&self, shard: usize, count: usize) -> Vec<Key> {
        std::iter::repeat_with(|| self.minter.mint())
            .filter(|key| self.homes.node(key.as_bytes()).0 as usize == shard)
            .take(count)
            .collect()
    }

    pub(crate) async fn release_locks(&self) {
        self.leases.lock().await.release_all().await;
    }
}
