//! What the KEYS line counts.

use curt_core::names::metric;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::account::KeyAccounts;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabel {
    stage: &'static str,
}

/// The counters and gauges of the KEYS line. Clones share their numbers; the default is registered nowhere.
#[derive(Clone, Debug, Default)]
pub struct KeyMetrics {
    pub conflicts: Counter,
    pub duplicates: Counter,
    pub fallbacks: Counter,
    pub recovered: Counter,
    pub recycled: Counter,
    pub corrupt_blocks: Counter,
    keys: Family<StageLabel, Gauge>,
}

impl KeyMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(metric::KEYS, "Keys by stage (K-2)", metrics.keys.clone());
        for (name, help, counter) in [
            (
                metric::KEY_CONFLICTS,
                "Keys that met an existing link at insert",
                &metrics.conflicts,
            ),
            (
                metric::KEY_DUPLICATES,
                "Minted keys that were known already",
                &metrics.duplicates,
            ),
            (
                metric::KEY_FALLBACKS,
                "Keys made on the spot because the supply was dry",
                &metrics.fallbacks,
            ),
            (
                metric::KEYS_RECOVERED,
                "Keys found in batches of a process that died, and put back",
                &metrics.recovered,
            ),
            (
                metric::KEYS_RECYCLED,
                "Keys put back into the supply after their quarantine",
                &metrics.recycled,
            ),
            (
                metric::KEY_BLOCKS_CORRUPT,
                "Blocks of a key file that were skipped because they are damaged",
                &metrics.corrupt_blocks,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        metrics
    }

    /// Shows `accounts` as the gauge family of K-2.
    pub fn show(&self, accounts: &KeyAccounts) {
        for (stage, keys) in accounts.stages() {
            self.keys
                .get_or_create(&StageLabel { stage })
                .set(i64::try_from(keys).unwrap_or(i64::MAX));
        }
    }
}
