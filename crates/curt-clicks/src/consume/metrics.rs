use std::time::Duration;

use curt_core::PortResult;
use curt_core::names::metric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// A flush should take milliseconds; seconds mean a disk in trouble.
const SECONDS: [f64; 9] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0];

/// What the pipeline counts. Cheap to clone; clones count together.
#[derive(Clone, Debug)]
pub struct ConsumerMetrics {
    counted: Counter,
    trimmed: Counter,
    skipped: Counter,
    flushes: Family<[(&'static str, &'static str); 1], Counter>,
    seconds: Histogram,
}

impl Default for ConsumerMetrics {
    fn default() -> Self {
        Self {
            counted: Counter::default(),
            trimmed: Counter::default(),
            skipped: Counter::default(),
            flushes: Family::default(),
            seconds: Histogram::new(SECONDS),
        }
    }
}

impl ConsumerMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            metric::CLICKS_COUNTED,
            "Clicks counted in the store, of every class",
            metrics.counted.clone(),
        );
        registry.register(
            metric::CLICKS_TRIMMED,
            "Oldest single clicks that were removed because all of them took more than clicks.retention_size",
            metrics.trimmed.clone(),
        );
        registry.register(
            metric::CLICKS_SKIPPED,
            "Single clicks that were counted and not kept because the disk had too little room",
            metrics.skipped.clone(),
        );
        registry.register(
            metric::CLICK_FLUSHES,
            "Writes of click counts, by result",
            metrics.flushes.clone(),
        );
        registry.register(
            metric::CLICK_FLUSH_SECONDS,
            "Time to write click counts, seconds",
            metrics.seconds.clone(),
        );
        metrics
    }

    pub(super) fn tried(&self, applied: &PortResult<bool>, took: Duration) {
        let result = match applied {
            Ok(true) => "applied",
            Ok(false) => "refused",
            Err(_) => "failed",
        };
        self.flushes
            .get_or_create_owned(&[("result", result)])
            .inc();
        self.seconds.observe(took.as_secs_f64());
    }

    pub(super) fn trimmed(&self, clicks: u64) {
        self.trimmed.inc_by(clicks);
    }

    pub(super) fn skipped(&self, clicks: usize) {
        self.skipped.inc_by(clicks as u64);
    }

    pub(super) fn counted(&self, counted: &Counted) {
        self.counted.inc_by(counted.clicks);
    }
}

/// What a window adds to the metrics once it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) clicks: u64,
}

#[cfg(test)]
impl ConsumerMetrics {
    pub(super) fn counted_now(&self) -> u64 {
        self.counted.get()
    }

    pub(super) fn flushes_now(&self, result: &'static str) -> u64 {
        self.flushes
            .get_or_create_owned(&[("result", result)])
            .get()
    }
}
