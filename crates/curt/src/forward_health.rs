//! Tells whether the click stream takes what is captured here, for `/health/ready` and the metrics.

use std::sync::Arc;
use std::time::Duration;

use curt_clicks::forward::ForwardState;
use curt_core::Clock;
use curt_core::names::metric;
use curt_http::{Impact, Readiness};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::health::{note_fail, note_pass};
use crate::wiring::rfc3339;

const EVERY: Duration = Duration::from_secs(1);
const FORWARD_CLICKS: &str = "forward_clicks";
/// What is over sooner is a broker that was restarted, and told by the log. In milliseconds.
const TOLD_AFTER: i64 = 5_000;

pub(crate) struct ForwardHealth {
    state: ForwardState,
    clock: Arc<dyn Clock>,
    ready: Arc<Readiness>,
    lag_seconds: Gauge,
}

impl ForwardHealth {
    pub(crate) fn new(
        state: ForwardState,
        clock: Arc<dyn Clock>,
        ready: Arc<Readiness>,
        registry: &mut Registry,
    ) -> Self {
        let lag_seconds = Gauge::default();
        registry.register(
            metric::FORWARD_LAG,
            "Age of the oldest click in the spool that the click stream does not have, in seconds",
            lag_seconds.clone(),
        );
        Self {
            state,
            clock,
            ready,
            lag_seconds,
        }
    }

    pub(crate) async fn watch(self, stop: CancellationToken) {
        loop {
            self.tell();
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    fn tell(&self) {
        let now = self.clock.now();
        let lag = self.state.lag(now).as_secs();
        self.lag_seconds.set(i64::try_from(lag).unwrap_or(i64::MAX));
        let stopped = self.state.stopped();
        match stopped.filter(|stopped| now.0.saturating_sub(stopped.since.0) >= TOLD_AFTER) {
            None => note_pass(&self.ready, FORWARD_CLICKS),
            Some(stopped) => {
                let since = rfc3339(stopped.since);
                let reason = format!(
                    "clicks wait in the spool since {since}, and links are followed: {}",
                    stopped.reason
                );
                note_fail(&self.ready, FORWARD_CLICKS, Impact::Degraded, &reason);
            }
        }
    }
}
