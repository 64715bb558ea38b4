use curt_core::KeyOrigin;
use curt_core::names::metric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type ByLabel = Family<[(&'static str, &'static str); 1], Counter>;

/// What creating, changing and purging links counts. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub struct LinkMetrics {
    created: ByLabel,
    pub(crate) edited: Counter,
    pub(crate) deleted: Counter,
    purged: ByLabel,
    pub(crate) purge_backlog: Gauge,
}

impl LinkMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            metric::LINKS_CREATED,
            "Links created, by the origin of their key",
            metrics.created.clone(),
        );
        registry.register(metric::LINKS_EDITED, "Links edited", metrics.edited.clone());
        registry.register(
            metric::LINKS_DELETED,
            "Links deleted by their owner",
            metrics.deleted.clone(),
        );
        registry.register(
            metric::LINKS_PURGED,
            "Links purged after expiry, by how",
            metrics.purged.clone(),
        );
        registry.register(
            metric::PURGE_BACKLOG,
            "Expired links that the last look of the purge found, purge.batch at most; 0 when none is left",
            metrics.purge_backlog.clone(),
        );
        metrics
    }

    pub(crate) fn created(&self, origin: KeyOrigin) -> Counter {
        self.created
            .get_or_create_owned(&[("origin", origin.name())])
    }

    pub(crate) fn purged(&self, how: &'static str) -> Counter {
        self.purged.get_or_create_owned(&[("how", how)])
    }
}
