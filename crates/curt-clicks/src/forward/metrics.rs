use curt_core::names::metric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Default)]
pub struct ForwardMetrics {
    pub(super) forwarded: Counter,
}

impl ForwardMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            metric::CLICKS_FORWARDED,
            "Clicks forwarded from the spool to the click stream",
            metrics.forwarded.clone(),
        );
        metrics
    }
}
