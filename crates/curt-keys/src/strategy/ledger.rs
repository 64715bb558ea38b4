use std::sync::Arc;

use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::place::Modulo;
use curt_core::{ErrorKind, LinkId, PortError, PortResult};
use tokio_util::sync::CancellationToken;

use super::{Line, Opened, Taking};
use crate::account::KeyAccounts;
use crate::buffer::Buffer;
use crate::error::KeyError;
use crate::lease::Leases;
use crate::metrics::KeyMetrics;
use crate::mint::{LedgerFill, Minter};
use crate::pace::{NextPass, Nudges};
use crate::presence::{Held, Presence};
use crate::settings::KeySettings;
use crate::status::KeyStatus;
use crate::supply::KeyPorts;
use crate::sync::{FullestPool, Keysync};

/// `pool` and `status`: mint, ledger, sync, pool, buffer.
struct LedgerLine {
    ports: KeyPorts,
    buffer: Arc<Buffer>,
    keygen: LedgerFill,
    keysync: Keysync,
    nudges: Arc<Nudges>,
    presence: Presence,
}

pub(super) fn open(
    settings: &KeySettings,
    ports: KeyPorts,
    metrics: &KeyMetrics,
    nudges: &Arc<Nudges>,
    presence: &Presence,
) -> Result<Opened, KeyError> {
    let missing = |needs| KeyError::Missing {
        strategy: settings.strategy.name(),
        needs,
    };
    let shards = u32::try_from(ports.ledgers.len()).unwrap_or(u32::MAX);
    let homes = Modulo::new(shards).ok_or_else(|| missing("1 to 1,024 ledgers"))?;
    if ports.pools.is_empty() {
        return Err(missing("a pool"));
    }
    let feed = FullestPool {
        pools: ports.pools.clone(),
        low: settings.pool.low,
        nudges: Arc::clone(nudges),
    };
    let buffer = Arc::new(Buffer::new(
        Box::new(feed),
        settings.buffer.capacity,
        settings.buffer.low,
        settings.dry_wait,
    ));
    let leases = || Leases::new(Arc::clone(&ports.locks), settings.lock_ttl);
    let keygen = LedgerFill::new(
        &ports,
        homes,
        Minter::new(
            settings.alphabet,
            settings.length,
            settings.unwanted.clone(),
        ),
        settings.ledger,
        metrics.clone(),
        leases(),
    );
    let keysync = Keysync::new(
        &ports,
        homes,
        settings.pool,
        metrics.clone(),
        Arc::clone(&buffer),
        leases(),
    );
    let taking = Taking::Ring {
        buffer: Arc::clone(&buffer),
        origin: KeyOrigin::Ledger,
    };
    let line = LedgerLine {
        ports,
        buffer,
        keygen,
        keysync,
        nudges: Arc::clone(nudges),
        presence: presence.clone(),
    };
    Ok((taking, Box::new(line)))
}

impl LedgerLine {
    async fn look(&self) -> KeyStatus {
        let mut status = KeyStatus::read(&self.ports).await;
        let held = Held {
            ring: self.buffer.len() as u64,
            moving: self.keysync.moving(),
        };
        if let Some(processes) = &mut status.processes {
            self.presence.correct(processes, held);
        }
        status
    }
}

fn unknown() -> PortError {
    let detail = "not every stage is known";
    PortError::new(
        ErrorKind::Unavailable,
        "key supply",
        "do the accounts",
        detail,
    )
}

#[async_trait]
impl Line for LedgerLine {
    async fn generate(&self, stop: &CancellationToken) -> NextPass {
        let minted = || self.nudges.keysync.notify_one();
        self.keygen.pass(stop, &minted).await
    }

    async fn generating_ended(&self) {
        self.keygen.release_locks().await;
    }

    async fn move_on(&self, stop: &CancellationToken) -> NextPass {
        let passed = self.keysync.pass(stop).await;
        if passed.touched_ledgers {
            self.nudges.keygen.notify_one();
        }
        passed.next
    }

    async fn accounts(&self) -> PortResult<KeyAccounts> {
        self.ports.links()?;
        let mut status = self.look().await;
        match (status.failures.pop(), status.accounts()) {
            (None, Some(accounts)) => Ok(accounts),
            (failure, _) => Err(failure.unwrap_or_else(unknown)),
        }
    }

    async fn status(&self) -> Option<KeyStatus> {
        Some(self.look().await)
    }

    fn moving(&self) -> u64 {
        self.keysync.moving()
    }

    async fn recycle(&self, ids: &[LinkId]) -> PortResult<u64> {
        let keys = ids.iter().map(|id| id.key.clone());
        Ok(self.keysync.recycle(keys).await)
    }

    async fn close(&self) -> PortResult<()> {
        self.keygen.release_locks().await;
        self.keysync.close().await
    }
}
