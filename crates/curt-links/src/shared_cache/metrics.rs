use std::sync::atomic::AtomicU64;

use curt_core::names::metric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type ByResult = Family<[(&'static str, &'static str); 1], Counter>;
type ByServer<G> = Family<[(&'static str, String); 1], G>;

/// What the shared cache counts. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub struct SharedCacheMetrics {
    pub(super) hit: Counter,
    pub(super) miss: Counter,
    pub(super) outdated: Counter,
    pub(super) error: Counter,
    pub(super) skipped: Counter,
    pub(super) filled: Counter,
    pub(super) fill_failed: Counter,
    pub(super) fill_dropped: Counter,
    pub(super) invalidated: Counter,
    pub(super) invalidation_failed: Counter,
    up: ByServer<Gauge>,
    bytes: ByServer<Gauge<u64, AtomicU64>>,
    bytes_max: ByServer<Gauge<u64, AtomicU64>>,
}

/// The gauges of one server.
#[derive(Clone, Debug)]
pub(super) struct ServerGauges {
    pub(super) up: Gauge,
    pub(super) bytes: Gauge<u64, AtomicU64>,
    pub(super) bytes_max: Gauge<u64, AtomicU64>,
}

impl SharedCacheMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let (lookups, fills, invalidations) = Default::default();
        let families: [(&str, &str, &ByResult); 3] = [
            (
                metric::SHARED_CACHE_LOOKUPS,
                "Look-ups in the shared cache, by result",
                &lookups,
            ),
            (
                metric::SHARED_CACHE_FILLS,
                "Links that were to be put into the shared cache, by result",
                &fills,
            ),
            (
                metric::SHARED_CACHE_INVALIDATIONS,
                "Entries of the shared cache that were to be invalidated, by result",
                &invalidations,
            ),
        ];
        for (name, help, family) in families {
            registry.register(name, help, family.clone());
        }
        let of = |family: &ByResult, result| family.get_or_create_owned(&[("result", result)]);
        let metrics = Self {
            hit: of(&lookups, "hit"),
            miss: of(&lookups, "miss"),
            outdated: of(&lookups, "outdated"),
            error: of(&lookups, "error"),
            skipped: of(&lookups, "skipped"),
            filled: of(&fills, "done"),
            fill_failed: of(&fills, "failed"),
            fill_dropped: of(&fills, "dropped"),
            invalidated: of(&invalidations, "done"),
            invalidation_failed: of(&invalidations, "failed"),
            ..Self::default()
        };
        metrics.register_servers(registry);
        metrics
    }

    fn register_servers(&self, registry: &mut Registry) {
        registry.register(
            metric::SHARED_CACHE_SERVER_UP,
            "Whether this process uses a cache server: 1 or 0",
            self.up.clone(),
        );
        registry.register(
            metric::SHARED_CACHE_BYTES,
            "Bytes that a cache server holds",
            self.bytes.clone(),
        );
        registry.register(
            metric::SHARED_CACHE_BYTES_MAX,
            "Bytes that a cache server may hold; 0 without a limit",
            self.bytes_max.clone(),
        );
    }

    pub(super) fn of_server(&self, name: &str) -> ServerGauges {
        let label = [("server", name.to_owned())];
        let gauges = ServerGauges {
            up: self.up.get_or_create_owned(&label),
            bytes: self.bytes.get_or_create_owned(&label),
            bytes_max: self.bytes_max.get_or_create_owned(&label),
        };
        gauges.up.set(1);
        gauges
    }
}
