//! Tells whether clicks are counted, for `/health/ready` and the metrics.

use std::sync::Arc;
use std::time::Duration;

use curt_clicks::consume::CountingState;
use curt_core::Clock;
use curt_core::names::metric;
use curt_core::ports::{ClickDamage, ClickStore};
use curt_http::{Impact, Readiness};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::health::{note_fail, note_pass};
use crate::wiring::rfc3339;

const EVERY: Duration = Duration::from_secs(1);
/// Less often: the engine is asked.
const DAMAGE_EVERY: Duration = Duration::from_secs(5);
const COUNT_CLICKS: &str = "count_clicks";
const CLICKS_DATABASE: &str = "clicks_database";

/// Watches the consumers of this process and what they count into.
pub(crate) struct ClickHealth {
    counting: CountingState,
    store: Arc<dyn ClickStore>,
    clock: Arc<dyn Clock>,
    ready: Arc<Readiness>,
    is_counting: Gauge,
    lag_seconds: Gauge,
    damaged: Family<[(&'static str, &'static str); 1], Gauge>,
}

impl ClickHealth {
    pub(crate) fn new(
        counting: CountingState,
        store: Arc<dyn ClickStore>,
        clock: Arc<dyn Clock>,
        ready: Arc<Readiness>,
        registry: &mut Registry,
    ) -> Self {
        let (is_counting, lag_seconds) = (Gauge::default(), Gauge::default());
        let damaged = Family::default();
        is_counting.set(1);
        registry.register(
            metric::CLICKS_LAG,
            "Age of the oldest click in the spool that no consumer has read, in seconds",
            lag_seconds.clone(),
        );
        registry.register(
            metric::CLICKS_COUNTING,
            "Whether clicks are counted: 1, or 0 while something stops it",
            is_counting.clone(),
        );
        registry.register(
            metric::CLICKS_DAMAGED,
            "Runs of counts and blocks of single clicks that cannot be read",
            damaged.clone(),
        );
        Self {
            counting,
            store,
            clock,
            ready,
            is_counting,
            lag_seconds,
            damaged,
        }
    }

    pub(crate) async fn watch(self, stop: CancellationToken) {
        let mut damage_asked: Option<Instant> = None;
        loop {
            self.tell_counting();
            if damage_asked.is_none_or(|asked| asked.elapsed() >= DAMAGE_EVERY) {
                damage_asked = Some(Instant::now());
                // An engine that does not answer is told by the consumers.
                if let Ok(damage) = self.store.damage().await {
                    self.tell_damage(damage);
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    fn tell_counting(&self) {
        let stopped = self.counting.stopped();
        self.is_counting.set(i64::from(stopped.is_none()));
        let lag = self.counting.lag(self.clock.now()).as_secs();
        self.lag_seconds.set(i64::try_from(lag).unwrap_or(i64::MAX));
        let reason = match (stopped, self.counting.skipping_since()) {
            (Some(stopped), _) => {
                let since = rfc3339(stopped.since);
                format!("clicks are not counted since {since}: {}", stopped.reason)
            }
            (None, Some(since)) => format!(
                "clicks are counted and not kept one by one since {}: the disk has less than twice clicks.disk_reserve",
                rfc3339(since)
            ),
            (None, None) => return note_pass(&self.ready, COUNT_CLICKS),
        };
        note_fail(&self.ready, COUNT_CLICKS, Impact::Degraded, &reason);
    }

    fn tell_damage(&self, damage: Option<ClickDamage>) {
        let Some(damage) = damage else {
            return note_pass(&self.ready, CLICKS_DATABASE);
        };
        for (what, count) in [("runs", damage.runs), ("blocks", damage.blocks)] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.damaged
                .get_or_create_owned(&[("what", what)])
                .set(count);
        }
        let reason = format!(
            "damaged since {}: {} runs of counts and {} blocks of single clicks cannot be read, all others can, and \
             counting goes on; restore the clicks database from a backup",
            rfc3339(damage.since),
            damage.runs,
            damage.blocks
        );
        note_fail(&self.ready, CLICKS_DATABASE, Impact::Degraded, &reason);
    }
}
