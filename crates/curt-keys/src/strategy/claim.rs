use std::sync::Arc;

use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::ports::{LinkTotals, SeededLinks};
use curt_core::{LinkId, PortResult};

use crate::key_counts::KeyCounts;
use crate::metrics::KeyMetrics;
use crate::pace::Nudges;
use crate::source::{KeyRequest, KeySource, SuppliedKey};

/// `claim`: rows wait in the links database itself, and the row lock is the judge.
pub(super) struct RowSource {
    pub(super) rows: Arc<dyn SeededLinks>,
    pub(super) totals: Arc<dyn LinkTotals>,
    pub(super) metrics: KeyMetrics,
    pub(super) nudges: Arc<Nudges>,
}

#[async_trait]
impl KeySource for RowSource {
    fn origin(&self) -> KeyOrigin {
        KeyOrigin::Claim
    }

    /// Asked only when the rows have run out.
    fn make(&self, _hint: &KeyRequest<'_>) -> Option<SuppliedKey> {
        self.nudges.keygen.notify_one();
        None
    }

    fn claims_rows(&self) -> bool {
        true
    }

    /// A row is minted with every life: seeding it again after a release counts once more.
    async fn count_keys(&self, _buffered: u64) -> PortResult<KeyCounts> {
        let counts = self.totals.counts().await?;
        let used = counts.created_from(KeyOrigin::Claim);
        Ok(KeyCounts {
            minted: counts.seeded + used,
            free: counts.seeded,
            used,
            ..KeyCounts::default()
        })
    }

    async fn recycle(&self, ids: &[LinkId]) -> PortResult<u64> {
        let seeded = self.rows.seed(ids).await?;
        self.metrics.recycled.inc_by(seeded);
        Ok(seeded)
    }
}
