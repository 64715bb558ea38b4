use std::collections::HashSet;
use std::sync::Arc;

use curt_core::names::event;
use curt_core::placement::Modulo;
use curt_core::ports::KeyLedger;
use curt_core::{Key, PortResult};
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

use super::{KeySpace, Minter};
use crate::lease::{HeldLeases, LeaseName};
use crate::metrics::KeyMetrics;
use crate::pace::{NextPass, RefillPace, report};
use crate::ports::KeyPorts;
use crate::settings::{KeySettings, LedgerSettings};

/// Keeps every ledger shard between its watermarks. Keys go to the shard that their hash names, so that one shard's
/// unique constraint is enough: the same key cannot be minted into two.
pub(crate) struct LedgerFill {
    ledgers: Vec<Arc<dyn KeyLedger>>,
    homes: Modulo,
    minter: Minter,
    settings: LedgerSettings,
    metrics: KeyMetrics,
    leases: HeldLeases,
    paces: Mutex<Vec<RefillPace>>,
    /// Shards whose ledger has refused our fencing token, and accepted none since.
    refused: Mutex<HashSet<usize>>,
}

impl LedgerFill {
    pub(crate) fn new(
        ports: &KeyPorts,
        homes: Modulo,
        settings: &KeySettings,
        metrics: KeyMetrics,
    ) -> Self {
        let LedgerSettings { low, high, .. } = settings.ledger;
        let pace = |_| RefillPace::new(low, high, !ports.pools.is_empty());
        Self {
            paces: Mutex::new(ports.ledgers.iter().map(pace).collect()),
            ledgers: ports.ledgers.clone(),
            homes,
            minter: Minter::of(settings),
            settings: settings.ledger,
            metrics,
            leases: HeldLeases::new(Arc::clone(&ports.leases), settings.lease_ttl),
            refused: Mutex::default(),
        }
    }

    /// Makes one pass over all shards. `minted` is notified after every insert, so that the first keys flow on at once.
    pub(crate) async fn pass(&self, stop: &CancellationToken, minted: &Notify) -> NextPass {
        let mut next = NextPass::AtTick;
        for (shard, pace) in self.paces.lock().await.iter_mut().enumerate() {
            if stop.is_cancelled() {
                break;
            }
            if !self.owns(shard).await {
                continue;
            }
            match self.fill(shard, pace, stop, minted).await {
                Ok(0) => {}
                Ok(keys) => tracing::debug!(event = event::KEYS_MINTED, shard, keys, "keys minted"),
                Err(error) => report(&error),
            }
            next = next.or(pace.next());
        }
        next
    }

    async fn owns(&self, shard: usize) -> bool {
        self.leases.keep(&LeaseName::Ledger(shard)).await
    }

    async fn fill(
        &self,
        shard: usize,
        pace: &mut RefillPace,
        stop: &CancellationToken,
        minted: &Notify,
    ) -> PortResult<u64> {
        let ledger = &self.ledgers[shard];
        let mut free = ledger.counts().await?.free;
        let full = free + pace.room(free);
        let mut total = 0;
        let mut key_space = KeySpace::default();
        while free < full && !stop.is_cancelled() && self.owns(shard).await {
            let missing = usize::try_from(full - free).unwrap_or(usize::MAX);
            let keys = self.mint_for(shard, missing.min(self.settings.mint_batch));
            let Some(new) = self.insert(shard, &keys).await? else {
                break;
            };
            self.metrics
                .duplicates
                .inc_by((keys.len() as u64).saturating_sub(new));
            total += new;
            minted.notify_one();
            if key_space.is_exhausted(new) {
                break;
            }
            free = ledger.counts().await?.free;
        }
        Ok(total)
    }

    /// Inserts with the fencing token of the shard's lease. `None`: another process has had the lease since.
    ///
    /// Refused with a new lease, too, it is the tokens that went back: the lease service was exchanged, or has lost its
    /// data. Two owners at once are a waste and never a wrong, so then the keys go in without a token.
    async fn insert(&self, shard: usize, keys: &[Key]) -> PortResult<Option<u64>> {
        let ledger = &self.ledgers[shard];
        let lease = LeaseName::Ledger(shard);
        let Some(token) = self.leases.fencing_token(&lease).await else {
            return Ok(None);
        };
        let mut refused = self.refused.lock().await;
        if let Some(new) = ledger.insert_fenced(token, keys).await? {
            refused.remove(&shard);
            return Ok(Some(new));
        }
        let is_new = refused.insert(shard);
        tracing::warn!(
            event = event::KEY_OWNER_REFUSED,
            shard,
            fencing_token = token,
            "fencing token refused by ledger"
        );
        if is_new {
            // The next pass acquires a new lease, with a higher token if the tokens are in order.
            self.leases.release(&lease).await;
            return Ok(None);
        }
        ledger.insert(keys).await.map(Some)
    }

    fn mint_for(&self, shard: usize, count: usize) -> Vec<Key> {
        std::iter::repeat_with(|| self.minter.mint())
            .filter(|key| self.homes.node(key.as_bytes()).0 as usize == shard)
            .take(count)
            .collect()
    }

    pub(crate) async fn release_leases(&self) {
        self.leases.release_all().await;
    }
}
