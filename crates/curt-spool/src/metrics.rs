use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use curt_core::names::metric;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::{Core, SpoolCounts};

/// What the spool counts, read when the metrics are asked for: the writers keep plain numbers of their own.
#[derive(Clone, Debug, Default)]
pub struct SpoolMetrics {
    watched: Arc<Watched>,
}

impl SpoolMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_collector(Box::new(Arc::clone(&metrics.watched)));
        metrics
    }

    pub(super) fn watch(&self, core: &Arc<Core>) {
        self.watched.0.get_or_init(|| Arc::downgrade(core));
    }
}

#[derive(Default)]
struct Watched(OnceLock<Weak<Core>>);

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl Collector for Watched {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let core = self.0.get().and_then(Weak::upgrade);
        let counts = core.map_or_else(SpoolCounts::default, |core| core.counts());
        let captured = ConstCounter::new(counts.captured);
        let help = "Clicks written to the spool.";
        captured.encode(encoder.encode_descriptor(
            metric::CLICKS_CAPTURED,
            help,
            None,
            MetricType::Counter,
        )?)?;
        by_reason(
            &mut encoder,
            metric::CLICKS_DROPPED,
            "Clicks that found no room in the spool, by reason.",
            &counts.dropped_by_reason(),
        )?;
        let dead_letters: Vec<_> = counts.dead_letters.into_iter().collect();
        by_reason(
            &mut encoder,
            metric::CLICK_DEAD_LETTERS,
            "Click records that cannot be read, by reason.",
            &dead_letters,
        )?;
        let bytes = ConstGauge::new(i64::try_from(counts.bytes).unwrap_or(i64::MAX));
        let help = "Bytes that the spool's files take.";
        bytes.encode(encoder.encode_descriptor(
            metric::SPOOL_BYTES,
            help,
            None,
            MetricType::Gauge,
        )?)
    }
}

fn by_reason(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    counts: &[(&'static str, u64)],
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (reason, count) in counts {
        let labels = [("reason", *reason)];
        ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
