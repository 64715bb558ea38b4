//! What is kept only for so long: clicks, counts, and the salts of days that are over.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::ClickStore;
use curt_core::{Clock, ClockGuard, Day, PortResult, UnixMillis, names};
use tokio_util::sync::CancellationToken;

use super::{ConsumerMetrics, report};

/// Clicks that go at a time: they are kept in blocks of up to half as many, and one that goes in part is written again.
pub(super) const CLICK_BATCH: usize = 32_768;
/// Between two batches, so that others can write.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub struct RetentionSettings {
    /// How long single clicks are kept; `None`: for ever.
    pub clicks_kept: Option<Duration>,
    /// How long counts are kept; `None`: for ever.
    pub rollups_kept: Option<Duration>,
    /// What clicks may take together, in bytes; `None`: as much as there is room for.
    pub clicks_bytes_max: Option<u64>,
    /// Room on the store's disk below which nothing is changed, in bytes: a removal is written down first, too.
    pub disk_reserve: u64,
    /// How often to look.
    pub every: Duration,
    /// Days of subjects that go at a time.
    pub batch: usize,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self {
            clicks_kept: Some(Duration::from_secs(30 * 24 * 3_600)),
            rollups_kept: None,
            clicks_bytes_max: None,
            disk_reserve: 0,
            every: Duration::from_secs(600),
            batch: 1_000,
        }
    }
}

/// Removes what is too old.
pub struct Retention {
    store: Arc<dyn ClickStore>,
    clock: Arc<dyn Clock>,
    settings: RetentionSettings,
    metrics: ConsumerMetrics,
    clock_guard: Option<Arc<ClockGuard>>,
}

impl Retention {
    #[must_use]
    pub fn new(
        store: Arc<dyn ClickStore>,
        clock: Arc<dyn Clock>,
        settings: RetentionSettings,
        metrics: ConsumerMetrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            settings,
            metrics,
            clock_guard: None,
        })
    }

    /// Removes nothing by time while the guard does not trust the clock.
    #[must_use]
    pub fn guarded_by(self: Arc<Self>, guard: Arc<ClockGuard>) -> Arc<Self> {
        Arc::new(Self {
            store: self.store.clone(),
            clock: self.clock.clone(),
            settings: self.settings,
            metrics: self.metrics.clone(),
            clock_guard: Some(guard),
        })
    }

    fn trusted_now(&self) -> Option<UnixMillis> {
        match &self.clock_guard {
            Some(guard) => guard.trusted_now(),
            None => Some(self.clock.now()),
        }
    }

    /// Works until `stop`; a batch under way is finished.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let pause = match self.pass().await {
                Ok(0) => self.settings.every,
                Ok(_) => PAUSE,
                Err(error) => {
                    report(&error);
                    self.settings.every
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// One batch of each; says how many rows went.
    pub async fn pass(&self) -> PortResult<u64> {
        let free_bytes = self.store.free_bytes().await?;
        if free_bytes.is_some_and(|free_bytes| free_bytes < self.settings.disk_reserve) {
            return Ok(0);
        }
        let Some(now) = self.trusted_now() else {
            return Ok(0);
        };
        // Yesterday's salt stays: clicks of its last minutes may still be in the stream.
        self.store.forget_salts(Day::of(now).minus(1)).await?;
        let batch = self.settings.batch.max(1);
        let mut gone = 0;
        if let Some(kept) = self.settings.clicks_kept {
            gone += self
                .store
                .purge_clicks(now.minus(kept), CLICK_BATCH)
                .await?;
        }
        if let Some(bytes_max) = self.settings.clicks_bytes_max {
            let trimmed = self.store.trim_clicks(bytes_max, CLICK_BATCH).await?;
            self.metrics.trimmed(trimmed);
            gone += trimmed;
        }
        if let Some(kept) = self.settings.rollups_kept {
            let before = Day::of(now.minus(kept));
            gone += self.store.purge_rollups(before, batch).await?;
        }
        if gone > 0 {
            tracing::debug!(event = names::event::CLICKS_PURGED, rows = gone);
        }
        Ok(gone)
    }
}
