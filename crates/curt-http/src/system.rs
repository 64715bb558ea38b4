//! The installation as administrators see it: this process, the engines that it uses, the other processes that it
//! knows of, and the figures that its metrics have.

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::names::metric;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::Serialize;
use utoipa::ToSchema;

/// What only the process itself knows.
#[async_trait]
pub trait ProcessStatus: Send + Sync {
    /// The roles that it has.
    fn roles(&self) -> &str;

    /// The engines that it uses, each asked for a sign of life.
    async fn stores(&self) -> Vec<StoreStatus>;

    /// The processes that tell each other that they live.
    async fn instances(&self) -> Vec<InstanceStatus>;
}

/// An engine.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StoreStatus {
    /// Without secrets.
    #[schema(example = "sqlite:curt.db")]
    pub address: String,
    /// Why it does not answer; `null`: it does.
    #[schema(required = true)]
    pub failure: Option<String>,
}

/// A process that sends heartbeats.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InstanceStatus {
    pub name: String,
    /// As it describes itself.
    pub about: String,
    /// Keys in its buffer.
    pub buffered: u64,
    /// Keys that it found on links already, since its start.
    pub conflicts: u64,
    /// Keys that it made on the spot because the supply was dry, since its start.
    pub fallbacks: u64,
}

/// Figures about one part of the process.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct FigureGroup {
    #[schema(example = "caches")]
    pub(crate) name: &'static str,
    pub(crate) figures: Vec<SystemFigure>,
}

/// One figure, as `/metrics` has it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct SystemFigure {
    pub(crate) metric: String,
    /// What sets it apart from others of the same name, such as `stage="free"`.
    pub(crate) labels: String,
    pub(crate) value: f64,
}

/// Where the facts come from.
#[derive(Clone)]
pub struct SystemSource {
    pub(crate) process: Arc<dyn ProcessStatus>,
    registry: Arc<Registry>,
}

impl SystemSource {
    #[must_use]
    pub fn new(process: Arc<dyn ProcessStatus>, registry: Arc<Registry>) -> Self {
        Self { process, registry }
    }
}

/// The metrics that each group has.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "keys",
        &[
            metric::KEYS,
            metric::KEY_LEDGER_FREE,
            metric::KEY_POOL_DEPTH,
            metric::KEY_CONFLICTS,
            metric::KEY_FALLBACKS,
        ],
    ),
    (
        "caches",
        &[
            metric::CACHE_LINKS,
            metric::CACHE_BYTES,
            metric::CACHE_LOOKUPS,
            metric::SHARED_CACHE_LOOKUPS,
            metric::SHARED_CACHE_SERVER_UP,
            metric::INVALIDATIONS_UP,
            metric::INVALIDATION_GAPS,
        ],
    ),
    (
        "clicks",
        &[
            metric::CLICKS_CAPTURED,
            metric::CLICKS_COUNTED,
            metric::CLICKS_DROPPED,
            metric::CLICK_DEAD_LETTERS,
            metric::CLICKS_LAG,
            metric::SPOOL_BYTES,
        ],
    ),
    (
        "stores",
        &[
            metric::DATABASE_BYTES,
            metric::STORE_ERRORS,
            metric::REPLICA_LAG_SECONDS,
            metric::LINKS_NODE_UP,
            metric::SHARD_MAP_VERSION,
            metric::PURGE_BACKLOG,
        ],
    ),
    (
        "requests",
        &[
            metric::REDIRECTS,
            metric::HTTP_CONNECTIONS,
            metric::HTTP_REQUESTS_SHED,
            metric::HTTP_REQUESTS_REFUSED,
            metric::LIMIT_REFUSALS,
            metric::QUOTAS_DEGRADED,
            metric::SIGN_IN_FAILURES,
        ],
    ),
];

/// Figures of one metric at most: one may have a label for each of many shards.
const FIGURES_MAX: usize = 40;

impl SystemSource {
    /// The figures that the metrics have now.
    pub(crate) fn figures(&self) -> Vec<FigureGroup> {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::warn!(%error, "metrics not encoded");
        }
        let samples: Vec<SystemFigure> = text.lines().filter_map(read_sample).collect();
        let group = |(name, metrics): (&'static str, &[&str])| FigureGroup {
            name,
            figures: metrics
                .iter()
                .flat_map(|metric| {
                    let is_of = move |sample: &&SystemFigure| {
                        let name = sample.metric.strip_prefix(metric);
                        matches!(name, Some("" | "_total"))
                    };
                    samples.iter().filter(is_of).take(FIGURES_MAX).cloned()
                })
                .collect(),
        };
        GROUPS.into_iter().map(group).collect()
    }
}

/// Reads `name{labels} value`; other lines tell about metrics.
fn read_sample(line: &str) -> Option<SystemFigure> {
    if line.starts_with('#') {
        return None;
    }
    let (named, value) = line.rsplit_once(' ')?;
    let (metric, labels) = match named.split_once('{') {
        Some((metric, labels)) => (metric, labels.strip_suffix('}')?),
        None => (named, ""),
    };
    Some(SystemFigure {
        metric: metric.to_owned(),
        labels: labels.to_owned(),
        value: value.parse().ok().filter(|value: &f64| value.is_finite())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_as_they_are_written() {
        let read = read_sample("curt_keys{stage=\"free\",x=\"a b\"} 17").unwrap();
        assert_eq!((read.metric.as_str(), read.value), ("curt_keys", 17.0));
        assert_eq!(read.labels, "stage=\"free\",x=\"a b\"");
        assert_eq!(
            read_sample("curt_links_created_total 3").unwrap().labels,
            ""
        );
        for line in ["# HELP curt_keys Keys.", "# EOF", "", "curt_keys NaN"] {
            assert_eq!(read_sample(line), None, "{line}");
        }
    }
}
