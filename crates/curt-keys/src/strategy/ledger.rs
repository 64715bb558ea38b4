use std::sync::Arc;

use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::placement::Modulo;
use curt_core::{Key, LinkId, PortResult};
use tokio_util::sync::CancellationToken;

use super::Opened;
use crate::error::KeySupplyError;
use crate::lease::HeldLeases;
use crate::metrics::KeyMetrics;
use crate::mint::LedgerFill;
use crate::pace::{NextPass, Nudges};
use crate::ports::KeyPorts;
use crate::settings::{BufferSettings, KeySettings};
use crate::source::{KeyProducer, KeySource};
use crate::status::KeyStatus;
use crate::sync::{FullestPool, Keysync, LedgerFeed, Recovery};

/// `pool` and `status`: random keys that keygen minted ahead into the ledgers.
struct LedgerSource {
    ports: KeyPorts,
    buffer: BufferSettings,
    keygen: LedgerFill,
    stage: Stage,
    recovery: Recovery,
    nudges: Arc<Nudges>,
}

/// What stands between the ledgers and the buffer.
#[expect(
    clippy::large_enum_variant,
    reason = "a process has one, and keeps it to its end"
)]
enum Stage {
    Nothing(LedgerFeed),
    Pools(FullestPool, Keysync),
}

pub(super) fn open(
    settings: &KeySettings,
    ports: KeyPorts,
    metrics: &KeyMetrics,
    nudges: &Arc<Nudges>,
) -> Result<Opened, KeySupplyError> {
    let homes = Modulo::new(ports.ledgers.len()).ok_or(KeySupplyError::Missing {
        strategy: settings.strategy.name(),
        needs: "1 to 1,024 ledgers",
    })?;
    let leases = || HeldLeases::new(Arc::clone(&ports.leases), settings.lease_ttl);
    let keygen = LedgerFill::new(&ports, homes, settings, metrics.clone());
    let (buffer, stage) = if ports.pools.is_empty() {
        // The buffer holds what a pool would, because a crash costs none of it: the open batches tell where its keys
        // are.
        let buffer = BufferSettings {
            capacity: usize::try_from(settings.pool.high).unwrap_or(usize::MAX),
            low: usize::try_from(settings.pool.low).unwrap_or(usize::MAX),
        };
        let feed = LedgerFeed::new(&ports, &settings.pool, leases());
        (buffer, Stage::Nothing(feed))
    } else {
        let pools = FullestPool {
            pools: ports.pools.clone(),
            low: settings.pool.low,
            nudges: Arc::clone(nudges),
        };
        let keysync = Keysync::new(&ports, settings.pool, Arc::clone(nudges), leases());
        (settings.buffer, Stage::Pools(pools, keysync))
    };
    let source = LedgerSource {
        buffer,
        keygen,
        stage,
        recovery: Recovery::new(&ports, homes, metrics.clone(), settings.lease_ttl),
        nudges: Arc::clone(nudges),
        ports,
    };
    let source = Arc::new(source);
    let producer: Arc<dyn KeyProducer> = source.clone();
    Ok((source, Some(producer)))
}

#[async_trait]
impl KeySource for LedgerSource {
    fn origin(&self) -> KeyOrigin {
        KeyOrigin::Ledger
    }

    fn buffer(&self) -> Option<BufferSettings> {
        Some(self.buffer)
    }

    async fn draw(&self, room: usize) -> PortResult<Vec<Key>> {
        Ok(match &self.stage {
            Stage::Nothing(feed) => {
                let keys = feed.draw(room).await;
                // Keys left a ledger, or none were left to take: either way keygen may have work.
                self.nudges.keygen.notify_one();
                keys
            }
            Stage::Pools(pools, _) => pools.draw(room).await,
        })
    }

    async fn take_back(&self, unused: Vec<Key>) -> Vec<Key> {
        match &self.stage {
            // A ledger takes keys back with the batch that they are of.
            Stage::Nothing(_) => unused,
            Stage::Pools(_, keysync) => keysync.take_back(unused).await,
        }
    }

    async fn status(&self) -> Option<KeyStatus> {
        Some(KeyStatus::read(&self.ports).await)
    }

    async fn recycle(&self, ids: &[LinkId]) -> PortResult<u64> {
        let keys = ids.iter().map(|id| id.key.clone()).collect();
        Ok(self.recovery.recycle(keys).await)
    }

    async fn close(&self, drain: &(dyn Fn() -> Vec<Key> + Sync)) -> PortResult<()> {
        let unused = drain();
        self.keygen.release_leases().await;
        let (owner, unused) = match &self.stage {
            Stage::Nothing(feed) => (feed.close().await, unused),
            // What no pool took is leaked: the batch that it came with was closed long ago.
            Stage::Pools(_, keysync) => (keysync.close(unused).await, Vec::new()),
        };
        let completed = match owner {
            Some(owner) => self.recovery.settle_own(owner, unused).await,
            None => Ok(()),
        };
        // After the batches: another process that found their owner's lease free would settle them, too.
        match &self.stage {
            Stage::Nothing(feed) => feed.release_leases().await,
            Stage::Pools(_, keysync) => keysync.release_leases().await,
        }
        completed
    }
}

#[async_trait]
impl KeyProducer for LedgerSource {
    async fn generate(&self, stop: &CancellationToken) -> NextPass {
        let wake = match &self.stage {
            Stage::Nothing(_) => &self.nudges.buffer,
            Stage::Pools(..) => &self.nudges.keysync,
        };
        self.keygen.pass(stop, wake).await
    }

    async fn release_leases(&self) {
        self.keygen.release_leases().await;
    }

    async fn sync(&self, handed_out: u64, stop: &CancellationToken) -> NextPass {
        let (next, owner) = match &self.stage {
            Stage::Nothing(feed) => (NextPass::AtTick, feed.close_used(handed_out).await),
            Stage::Pools(_, keysync) => keysync.pass(stop).await,
        };
        // Last, because looking up the keys of a big crash takes a while and creates are waiting.
        if let Some(owner) = owner {
            self.recovery.sweep(owner).await;
        }
        next
    }

    fn keys_in_transit(&self) -> u64 {
        match &self.stage {
            Stage::Nothing(_) => 0,
            Stage::Pools(_, keysync) => keysync.keys_in_transit(),
        }
    }
}
