use curt_core::names::metric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type ByLabel = Family<[(&'static str, &'static str); 1], Counter>;

/// What is counted about changes that processes tell each other. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub struct InvalidationMetrics {
    /// Changes that were sent, by result.
    pub(super) sent: Counter,
    pub(super) failed: Counter,
    pub(super) dropped: Counter,
    pub(super) received: Counter,
    pub(super) gaps: Counter,
    pub(super) up: Gauge,
}

impl InvalidationMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let published = ByLabel::default();
        registry.register(
            metric::INVALIDATIONS_PUBLISHED,
            "Changes of links that other processes were to be told, by result",
            published.clone(),
        );
        let by = |result| published.get_or_create_owned(&[("result", result)]);
        let metrics = Self {
            sent: by("sent"),
            failed: by("failed"),
            dropped: by("dropped"),
            ..Self::default()
        };
        registry.register(
            metric::INVALIDATIONS_RECEIVED,
            "Changes of links that the channel told",
            metrics.received.clone(),
        );
        registry.register(
            metric::INVALIDATION_GAPS,
            "Times that all copies were dropped because changes may have been missed",
            metrics.gaps.clone(),
        );
        registry.register(
            metric::INVALIDATIONS_UP,
            "Whether changes that others make reach this process: 1 or 0",
            metrics.up.clone(),
        );
        metrics
    }
}
