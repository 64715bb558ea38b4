//! Watches the machine's clock, and remembers the time for the next start.

use std::sync::Arc;
use std::time::Duration;

use curt_core::names::{event, metric};
use curt_core::ports::Cursor;
use curt_core::{ClockGuard, ClockGuardSettings, ClockJump, PortError, UnixMillis};
use curt_http::{Impact, Readiness};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::wiring::Stores;

/// The check that fails while the clock is not trusted.
const CLOCK: &str = "clock";
/// The number under which the last time is kept, in milliseconds since 1970.
const LAST_SEEN: &str = "clock-last-seen";
const EVERY: Duration = Duration::from_secs(1);
const START_WAIT: Duration = Duration::from_secs(1);
/// How often the time is noted: how much of it a start may take for a pause.
const NOTED_EVERY: Duration = Duration::from_secs(300);

pub(crate) struct ClockWatch {
    guard: Arc<ClockGuard>,
    cursor: Arc<dyn Cursor>,
    ready: Arc<Readiness>,
    is_trusted: Gauge,
}

impl ClockWatch {
    /// Compares the clock with the last time that was noted, if the database tells it.
    pub(crate) async fn open(
        settings: ClockGuardSettings,
        stores: &Stores,
        ready: Arc<Readiness>,
        registry: &mut Registry,
    ) -> Self {
        let cursor = stores.main.cursor.clone();
        // An engine that is away is not waited for: there is nothing to purge without it either.
        let last_seen = match tokio::time::timeout(START_WAIT, cursor.get(LAST_SEEN)).await {
            Ok(Ok(0)) | Err(_) => None,
            Ok(Ok(millis)) => i64::try_from(millis).ok().map(UnixMillis),
            Ok(Err(error)) => {
                report(&error);
                None
            }
        };
        let is_trusted = Gauge::default();
        registry.register(
            metric::CLOCK_TRUSTED,
            "Whether the clock is trusted to purge by: 1, or 0 after a jump",
            is_trusted.clone(),
        );
        let guard = ClockGuard::new(stores.clock.clone(), settings, last_seen);
        Self {
            guard: Arc::new(guard),
            cursor,
            ready,
            is_trusted,
        }
    }

    pub(crate) fn guard(&self) -> Arc<ClockGuard> {
        self.guard.clone()
    }

    pub(crate) async fn watch(self, stop: CancellationToken) {
        let mut noted: Option<Instant> = None;
        loop {
            self.tell(self.guard.jump());
            if noted.is_none_or(|noted| noted.elapsed() >= NOTED_EVERY) {
                self.note().await;
                noted = Some(Instant::now());
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
        self.note().await;
    }

    fn tell(&self, jump: Option<ClockJump>) {
        self.is_trusted.set(i64::from(jump.is_none()));
        let Some(jump) = jump else {
            if self.ready.pass(CLOCK) {
                info!(event = event::CLOCK_JUMPED, "clock is trusted");
            }
            return;
        };
        let reason = format!(
            "the clock is {} s ahead of the time that was last seen: nothing is purged until it is right again, or has \
             run steadily for another {} s (purge.clock_settle)",
            jump.ahead.as_secs(),
            jump.settles_in.as_secs()
        );
        if self.ready.fail(CLOCK, Impact::Degraded, reason) {
            warn!(
                event = event::CLOCK_JUMPED,
                ahead_seconds = jump.ahead.as_secs(),
                settles_in_seconds = jump.settles_in.as_secs(),
                "clock jumped ahead, purge paused"
            );
        }
    }

    /// Notes a time that is trusted. Another process may be faster: then its note is as good.
    async fn note(&self) {
        let noted = async {
            let seen = self.cursor.get(LAST_SEEN).await?;
            let Some(now) = self.guard.trusted_now() else {
                return Ok(true);
            };
            let now = u64::try_from(now.0).unwrap_or(0);
            self.cursor.advance(LAST_SEEN, seen, now).await
        };
        match noted.await {
            Ok(_) => {}
            Err(error) => report(&error),
        }
    }
}

fn report(error: &PortError) {
    debug!(event = event::STORE_FAILED, backend = error.backend, %error, "time is not noted");
}
