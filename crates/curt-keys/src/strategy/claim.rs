use std::sync::Arc;

use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::ports::LinkStore;
use curt_core::{LinkId, PortResult};
use tokio_util::sync::CancellationToken;

use super::{Line, Opened, Taking};
use crate::account::KeyAccounts;
use crate::error::KeyError;
use crate::lease::Leases;
use crate::metrics::KeyMetrics;
use crate::mint::{Minter, RowFill};
use crate::pace::NextPass;
use crate::settings::KeySettings;
use crate::supply::KeyPorts;

/// `claim`: rows wait in the links database itself, and the row lock is the judge.
struct ClaimLine {
    links: Arc<dyn LinkStore>,
    keygen: RowFill,
    metrics: KeyMetrics,
}

pub(super) fn open(
    settings: &KeySettings,
    ports: KeyPorts,
    metrics: &KeyMetrics,
) -> Result<Opened, KeyError> {
    let links = ports.links.ok_or(KeyError::Missing {
        strategy: settings.strategy.name(),
        needs: "the links database",
    })?;
    let keygen = RowFill::new(
        Arc::clone(&links),
        Minter::new(
            settings.alphabet,
            settings.length,
            settings.unwanted.clone(),
        ),
        settings.claim,
        metrics.clone(),
        Leases::new(ports.locks, settings.lock_ttl),
    );
    let line = ClaimLine {
        links,
        keygen,
        metrics: metrics.clone(),
    };
    Ok((Taking::Rows, Box::new(line)))
}

#[async_trait]
impl Line for ClaimLine {
    async fn generate(&self, stop: &CancellationToken) -> NextPass {
        self.keygen.pass(stop).await;
        NextPass::AtTick
    }

    async fn generating_ended(&self) {
        self.keygen.release_locks().await;
    }

    /// A row is minted with every life: seeding it again after a release counts once more.
    async fn accounts(&self) -> PortResult<KeyAccounts> {
        let counts = self.links.counts().await?;
        let used = counts.created_from(KeyOrigin::Claim);
        Ok(KeyAccounts {
            minted: counts.seeded + used,
            free: counts.seeded,
            used,
            ..KeyAccounts::default()
        })
    }

    async fn recycle(&self, ids: &[LinkId]) -> PortResult<u64> {
        let seeded = self.links.seed(ids).await?;
        self.metrics.recycled.inc_by(seeded);
        Ok(seeded)
    }
}
