//! What the KEYS line counts.

use curt_core::KeyRefusal;
use curt_core::names::metric;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::heartbeat::Holdings;
use crate::key_counts::KeyCounts;
use crate::status::KeyStatus;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabel {
    stage: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ShardLabel {
    shard: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
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
    refused: Family<ReasonLabel, Counter>,
    keys: Family<StageLabel, Gauge>,
    held: Family<StageLabel, Gauge>,
    surplus: Gauge,
    ledger_free: Family<ShardLabel, Gauge>,
    pool_depth: Family<ShardLabel, Gauge>,
}

impl KeyMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            metric::KEYS,
            "Keys of the whole installation by stage, as this process sees it",
            metrics.keys.clone(),
        );
        registry.register(
            metric::KEYS_HELD,
            "Keys that this process holds, by stage",
            metrics.held.clone(),
        );
        registry.register(
            metric::KEYS_UNBALANCED,
            "Keys that are found more often than they were made, confirmed over several looks",
            metrics.surplus.clone(),
        );
        registry.register(
            metric::KEY_LEDGER_FREE,
            "Free keys in each shard of the keys database",
            metrics.ledger_free.clone(),
        );
        registry.register(
            metric::KEY_POOL_DEPTH,
            "Keys waiting in each shard of the pool",
            metrics.pool_depth.clone(),
        );
        registry.register(
            metric::KEYS_REFUSED,
            "Keys of the supply that no link got, by reason",
            metrics.refused.clone(),
        );
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

    /// Counts keys that no link may have.
    #[must_use]
    pub fn refused(&self, why: KeyRefusal) -> Counter {
        let reason = why.name();
        self.refused.get_or_create_owned(&ReasonLabel { reason })
    }

    /// Shows `counts` as the gauge family of K-2.
    pub fn show(&self, counts: &KeyCounts) {
        for (stage, keys) in counts.stages() {
            set(&self.keys, stage, keys);
        }
    }

    /// Shows every shard that is known.
    pub(crate) fn show_shards(&self, status: &KeyStatus) {
        let free = status.ledgers.iter().map(|l| l.counts.map(|c| c.free));
        show_each(&self.ledger_free, free);
        show_each(&self.pool_depth, status.pools.iter().map(|p| p.depth));
    }

    pub(crate) fn show_surplus(&self, keys: u64) {
        self.surplus.set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    pub(crate) fn show_held(&self, held: &Holdings) {
        set(&self.held, "buffered", held.buffered);
        set(&self.held, "in_transit", held.in_transit);
    }
}

fn set(family: &Family<StageLabel, Gauge>, stage: &'static str, keys: u64) {
    family
        .get_or_create(&StageLabel { stage })
        .set(i64::try_from(keys).unwrap_or(i64::MAX));
}

fn show_each(family: &Family<ShardLabel, Gauge>, shards: impl Iterator<Item = Option<u64>>) {
    for (shard, keys) in shards.enumerate() {
        let label = ShardLabel {
            shard: shard as u64,
        };
        match keys {
            Some(keys) => {
                let gauge = family.get_or_create(&label);
                gauge.set(i64::try_from(keys).unwrap_or(i64::MAX));
            }
            // An old number would look like a new one.
            None => {
                family.remove(&label);
            }
        }
    }
}
