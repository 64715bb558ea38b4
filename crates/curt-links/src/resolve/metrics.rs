use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use curt_core::names::metric;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::live::LiveCache;

type ByResult = Family<[(&'static str, &'static str); 1], Counter>;

/// What the resolver counts. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub struct ResolveMetrics {
    pub(super) hit: Counter,
    pub(super) miss: Counter,
    pub(super) absent: Counter,
    pub(super) refreshed: Counter,
    pub(super) from_shared: Counter,
    pub(super) from_store: Counter,
    pub(super) cache_size: Arc<CacheSize>,
}

impl ResolveMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let lookups = ByResult::default();
        let cache_size = Arc::new(CacheSize::default());
        registry.register(
            metric::CACHE_LOOKUPS,
            "Look-ups in the process's cache, by result",
            lookups.clone(),
        );
        let loads = ByResult::default();
        registry.register(
            metric::CACHE_LOADS,
            "Loads of links that were not in the process's cache, by where from",
            loads.clone(),
        );
        let from = |place| loads.get_or_create_owned(&[("from", place)]);
        let refreshed = Counter::default();
        registry.register(
            metric::CACHE_REFRESHES,
            "Copies that were loaded again before they ended, because they are wanted often",
            refreshed.clone(),
        );
        registry.register_collector(Box::new(Arc::clone(&cache_size)));
        let by = |result| lookups.get_or_create_owned(&[("result", result)]);
        Self {
            hit: by("hit"),
            miss: by("miss"),
            absent: by("absent"),
            refreshed,
            from_shared: from("shared"),
            from_store: from("store"),
            cache_size,
        }
    }
}

/// Reads the cache's size when the metrics are asked for, so that the cache need not keep gauges up to date.
#[derive(Default)]
pub(super) struct CacheSize(OnceLock<Weak<LiveCache>>);

impl CacheSize {
    pub(super) fn watch(&self, cache: &Arc<LiveCache>) {
        self.0.get_or_init(|| Arc::downgrade(cache));
    }
}

impl fmt::Debug for CacheSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheSize").finish_non_exhaustive()
    }
}

impl Collector for CacheSize {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let cache = self.0.get().and_then(Weak::upgrade);
        let (bytes, links) = cache.map_or((0, 0), |cache| (cache.bytes(), cache.links() as u64));
        for (name, help, value) in [
            (
                metric::CACHE_BYTES,
                "Bytes that the process's cache holds.",
                bytes,
            ),
            (
                metric::CACHE_LINKS,
                "Links that the process's cache holds.",
                links,
            ),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}
