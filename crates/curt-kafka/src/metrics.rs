use curt_core::names::metric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// What consumers meet in the stream.
#[derive(Clone, Debug, Default)]
pub struct KafkaMetrics {
    pub(super) repeated: Counter,
    pub(super) lost: Counter,
    dead_letters: Family<[(&'static str, &'static str); 1], Counter>,
}

impl KafkaMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            metric::STREAM_REPEATED,
            "Records of the stream that a producer sent again, and that were left out",
            metrics.repeated.clone(),
        );
        registry.register(
            metric::STREAM_LOST,
            "Records that the stream's retention removed before they were counted",
            metrics.lost.clone(),
        );
        registry.register(
            metric::STREAM_DEAD_LETTERS,
            "Records of the stream that cannot be read, by reason",
            metrics.dead_letters.clone(),
        );
        metrics
    }

    pub(super) fn note_dead_letter(&self, reason: &'static str) {
        self.dead_letters
            .get_or_create_owned(&[("reason", reason)])
            .inc();
    }

    /// Dead letters of a reason.
    #[must_use]
    pub fn dead_letters(&self, reason: &'static str) -> u64 {
        self.dead_letters
            .get_or_create_owned(&[("reason", reason)])
            .get()
    }

    /// Records that were left out because they had come before.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated.get()
    }
}
