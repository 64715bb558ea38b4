//! How long redirects take, counted so that counting costs next to nothing.
//!
//! A worker reads the clock twice per round of answers and not per request: all redirects of a round count as long as
//! the round took, from its first read to the send, which is the longest that any of them waited. It adds them up in
//! plain cells and passes them on with its other counts, so that no two threads write to the same memory per request.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Upper bounds of the buckets, nanoseconds. A cached redirect takes some microseconds, one from the store some tenths
/// of a millisecond.
const BOUNDS_NANOS: [u64; 12] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    10_000_000,
    50_000_000,
    250_000_000,
    1_000_000_000,
];
/// The bounded ones, and one for the rest.
const BUCKETS: usize = BOUNDS_NANOS.len() + 1;

fn bucket(nanos: u64) -> usize {
    let found = BOUNDS_NANOS.iter().position(|bound| nanos <= *bound);
    found.unwrap_or(BOUNDS_NANOS.len())
}

fn nanos(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// The histogram of all threads. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub struct LatencyHistogram(Arc<SharedCounts>);

#[derive(Debug, Default)]
struct SharedCounts {
    buckets: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

impl LatencyHistogram {
    /// Counts one; for paths that are not hot.
    pub(crate) fn observe(&self, elapsed: Duration) {
        let nanos = nanos(elapsed);
        self.0.buckets[bucket(nanos)].fetch_add(1, Ordering::Relaxed);
        self.0.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl EncodeMetric for LatencyHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let bounds = BOUNDS_NANOS.iter().map(|bound| in_seconds(*bound));
        let counts = self.0.buckets.iter();
        let counts = counts.map(|bucket| bucket.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = in_seconds(self.0.sum_nanos.load(Ordering::Relaxed));
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

fn in_seconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}

/// What one worker has counted since it last passed its counts on.
#[derive(Default)]
pub(crate) struct LatencyTally {
    buckets: [Cell<u64>; BUCKETS],
    sum_nanos: Cell<u64>,
}

impl LatencyTally {
    /// Counts `count` redirects that took `elapsed` each.
    pub(crate) fn count(&self, elapsed: Duration, count: u64) {
        let nanos = nanos(elapsed);
        let bucket = &self.buckets[bucket(nanos)];
        bucket.set(bucket.get() + count);
        let sum = nanos.saturating_mul(count);
        self.sum_nanos.set(self.sum_nanos.get().saturating_add(sum));
    }

    pub(crate) fn flush(&self, histogram: &LatencyHistogram) {
        for (own, all) in self.buckets.iter().zip(&histogram.0.buckets) {
            if own.get() > 0 {
                all.fetch_add(own.take(), Ordering::Relaxed);
            }
        }
        let sum = self.sum_nanos.take();
        histogram.0.sum_nanos.fetch_add(sum, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn what_workers_count_is_exposed_as_one_histogram() {
        let histogram = LatencyHistogram::default();
        let tallies = [LatencyTally::default(), LatencyTally::default()];
        tallies[0].count(Duration::from_micros(20), 3);
        tallies[1].count(Duration::from_micros(20), 1);
        tallies[1].count(Duration::from_secs(2), 1);
        for tally in &tallies {
            tally.flush(&histogram);
            tally.flush(&histogram);
        }
        histogram.observe(Duration::from_nanos(10_000));
        let mut registry = Registry::default();
        registry.register("t_seconds", "Time", histogram.clone());
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "# TYPE t_seconds histogram",
            "t_seconds_count 6",
            "t_seconds_sum 2.00009",
            "t_seconds_bucket{le=\"0.00001\"} 1",
            "t_seconds_bucket{le=\"0.000025\"} 5",
            "t_seconds_bucket{le=\"1.0\"} 5",
            "t_seconds_bucket{le=\"+Inf\"} 6",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
