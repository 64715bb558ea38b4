use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::ports::{ClickFlush, ClickStore, ClickSum};
use curt_core::{LinkId, PortResult, UnixMillis};

use super::locked;

#[derive(Debug, Default)]
pub struct MemoryClickStore {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    positions: BTreeMap<u32, u64>,
    series: BTreeMap<(LinkId, Box<str>), Series>,
}

/// The sums of one link in one dimension, by hour and value.
type Series = BTreeMap<(UnixMillis, Box<str>), u64>;

impl MemoryClickStore {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl ClickStore for MemoryClickStore {
    async fn position(&self, partition: u32) -> PortResult<u64> {
        let tables = locked(&self.tables);
        Ok(tables.positions.get(&partition).copied().unwrap_or(0))
    }

    async fn apply(&self, flush: ClickFlush) -> PortResult<bool> {
        let mut tables = locked(&self.tables);
        let position = tables.positions.entry(flush.partition).or_default();
        if *position != flush.from {
            return Ok(false);
        }
        *position = flush.to;
        for (link, sum) in flush.sums {
            let series = tables.series.entry((link, sum.dimension)).or_default();
            let count = series.entry((sum.hour, sum.value)).or_default();
            *count = count.saturating_add(sum.count);
        }
        Ok(true)
    }

    async fn read(
        &self,
        link: &LinkId,
        dimension: &str,
        from: UnixMillis,
        before: UnixMillis,
    ) -> PortResult<Vec<ClickSum>> {
        let tables = locked(&self.tables);
        let name = (link.clone(), dimension.into());
        let Some(series) = tables.series.get(&name).filter(|_| from < before) else {
            return Ok(Vec::new());
        };
        let hours = series.range((from, "".into())..(before, "".into()));
        let sum = |((hour, value), count): (&(UnixMillis, Box<str>), &u64)| ClickSum {
            hour: *hour,
            dimension: dimension.into(),
            value: value.clone(),
            count: *count,
        };
        Ok(hours.map(sum).collect())
    }
}
