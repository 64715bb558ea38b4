//! What is kept only for so long: visits, counts, and the salts of days that are over.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::ClickStore;
use curt_core::{Clock, Day, PortResult, names};
use tokio_util::sync::CancellationToken;

use super::report;

/// Between two batches, so that others can write.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub struct RetentionSettings {
    /// How long single visits are kept; `None`: for ever.
    pub visits_kept: Option<Duration>,
    /// How long counts are kept; `None`: for ever.
    pub sums_kept: Option<Duration>,
    /// How often to look.
    pub every: Duration,
    /// Rows that go at a time.
    pub batch: usize,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self {
            visits_kept: Some(Duration::from_secs(30 * 24 * 3_600)),
            sums_kept: None,
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
}

impl Retention {
    #[must_use]
    pub fn new(
        store: Arc<dyn ClickStore>,
        clock: Arc<dyn Clock>,
        settings: RetentionSettings,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            settings,
        })
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
        let now = self.clock.now();
        // Yesterday's salt stays: visits of its last minutes may still be in the stream.
        self.store.forget_salts(Day::of(now).minus(1)).await?;
        let batch = self.settings.batch.max(1);
        let mut gone = 0;
        if let Some(kept) = self.settings.visits_kept {
            gone += self.store.purge_visits(now.minus(kept), batch).await?;
        }
        if let Some(kept) = self.settings.sums_kept {
            let before = Day::of(now.minus(kept));
            gone += self.store.purge_sums(before, batch).await?;
        }
        if gone > 0 {
            tracing::debug!(event = names::event::CLICKS_PURGED, rows = gone);
        }
        Ok(gone)
    }
}
