use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use curt_core::names::metric;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{self, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::live::LiveCache;

type ByResult = Family<[(&'static str, &'static str); 1], Counter<u64, Striped>>;

/// What the resolver counts. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub struct ResolveMetrics {
    pub(super) hit: Counter<u64, Striped>,
    pub(super) miss: Counter<u64, Striped>,
    pub(super) absent: Counter<u64, Striped>,
    pub(super) held: Arc<Held>,
}

impl ResolveMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let lookups = ByResult::default();
        let held = Arc::new(Held::default());
        registry.register(
            metric::CACHE_LOOKUPS,
            "Look-ups in the process's cache, by result",
            lookups.clone(),
        );
        registry.register_collector(Box::new(Arc::clone(&held)));
        let by = |result| lookups.get_or_create_owned(&[("result", result)]);
        Self {
            hit: by("hit"),
            miss: by("miss"),
            absent: by("absent"),
            held,
        }
    }
}

const STRIPES: usize = 16;

/// A counter that threads do not fight over: a redirect takes about five microseconds in all, and a cache line that
/// wanders between cores on each of them is a measurable part of that.
#[derive(Debug, Default)]
pub(super) struct Striped([Stripe; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(128))] // two lines: processors fetch them in pairs
struct Stripe(AtomicU64);

static THREADS_SEEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN_STRIPE: usize = THREADS_SEEN.fetch_add(1, Ordering::Relaxed) % STRIPES;
}

impl counter::Atomic<u64> for Striped {
    fn inc(&self) -> u64 {
        self.inc_by(1)
    }

    /// Returns the previous count of this thread's stripe, not of the whole: nobody here asks for it.
    fn inc_by(&self, by: u64) -> u64 {
        let stripe = OWN_STRIPE.try_with(|own| *own).unwrap_or(0);
        self.0[stripe].0.fetch_add(by, Ordering::Relaxed)
    }

    fn get(&self) -> u64 {
        self.0
            .iter()
            .map(|stripe| stripe.0.load(Ordering::Relaxed))
            .sum()
    }
}

/// Reads the cache's size when the metrics are asked for, so that the cache need not keep gauges up to date.
#[derive(Default)]
pub(super) struct Held(OnceLock<Weak<LiveCache>>);

impl Held {
    pub(super) fn watch(&self, cache: &Arc<LiveCache>) {
        self.0.get_or_init(|| Arc::downgrade(cache));
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl Collector for Held {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let cache = self.0.get().and_then(Weak::upgrade);
        let (bytes, links) = cache.map_or((0, 0), |cache| (cache.bytes(), cache.links() as u64));
        for (name, help, value) in [
            (
                metric::CACHE_BYTES,
                "Bytes that the process's cache holds",
                bytes,
            ),
            (
                metric::CACHE_LINKS,
                "Links that the process's cache holds",
                links,
            ),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}
