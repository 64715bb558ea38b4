use std::collections::HashSet;
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
use crate::pace::{NextPass, RefillPace, report};
use crate::settings::LedgerSettings;
use crate::supply::KeyPorts;

/// Keeps every ledger shard between its marks. Keys go to the shard that their hash names, so that one shard's unique
/// constraint is enough: the same key cannot be minted into two.
pub(crate) struct LedgerFill {
    ledgers: Vec<Arc<dyn KeyLedger>>,
    homes: Modulo,
    minter: Minter,
    settings: LedgerSettings,
    metrics: KeyMetrics,
    leases: Mutex<Leases>,
    paces: Mutex<Vec<RefillPace>>,
    /// Shards whose ledger has refused us as their owner, and not let us in since.
    refused: Mutex<HashSet<usize>>,
}

impl LedgerFill {
    pub(crate) fn new(
        ports: &KeyPorts,
        homes: Modulo,
        minter: Minter,
        settings: LedgerSettings,
        metrics: KeyMetrics,
        leases: Leases,
    ) -> Self {
        let pace = |_| RefillPace::new(settings.low, settings.high, ports.pools_last());
        Self {
            paces: Mutex::new(ports.ledgers.iter().map(pace).collect()),
            ledgers: ports.ledgers.clone(),
            homes,
            minter,
            settings,
            metrics,
            leases: Mutex::new(leases),
            refused: Mutex::default(),
        }
    }

    /// One pass over all shards. `minted` is told after every insert, so that the first keys flow on at once.
    pub(crate) async fn pass(
        &self,
        stop: &CancellationToken,
        minted: &(dyn Fn() + Sync),
    ) -> NextPass {
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
        self.leases.lock().await.hold(&ledger_lock(shard)).await
    }

    async fn fill(
        &self,
        shard: usize,
        pace: &mut RefillPace,
        stop: &CancellationToken,
        minted: &(dyn Fn() + Sync),
    ) -> PortResult<u64> {
        let ledger = &self.ledgers[shard];
        let mut free = ledger.counts().await?.free;
        let full = free + pace.room(free);
        let mut total = 0;
        let mut barren = Barren::default();
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
            minted();
            if barren.is_reached(new) {
                break;
            }
            free = ledger.counts().await?.free;
        }
        Ok(total)
    }

    /// Inserts as the shard's owner. `None`: we are no longer that, and somebody else may be.
    ///
    /// Refused with a new lease, too, it is the fences that went back: the lock service was exchanged, or has lost its
    /// data. Two owners at once are a waste and never a wrong, so then the keys go in without a fence.
    async fn insert(&self, shard: usize, keys: &[Key]) -> PortResult<Option<u64>> {
        let ledger = &self.ledgers[shard];
        let lock = ledger_lock(shard);
        let Some(fence) = self.leases.lock().await.fence(&lock) else {
            return Ok(None);
        };
        let mut refused = self.refused.lock().await;
        if let Some(new) = ledger.insert_fenced(fence, keys).await? {
            refused.remove(&shard);
            return Ok(Some(new));
        }
        let is_new = refused.insert(shard);
        tracing::warn!(
            event = event::KEY_OWNER_REFUSED,
            shard,
            fence,
            "an owner with a higher fence has minted here"
        );
        if is_new {
            self.leases.lock().await.release(&lock).await;
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

    pub(crate) async fn release_locks(&self) {
        self.leases.lock().await.release_all().await;
    }
}

/// The lock of whoever looks after a ledger shard.
pub(crate) fn ledger_lock(shard: usize) -> String {
    format!("shard-locks/keys-db-{shard}")
}
