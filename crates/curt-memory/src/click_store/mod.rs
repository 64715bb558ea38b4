mod days;
mod single_clicks;

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::ports::{
    ClickPage, ClickQuery, ClickRanking, ClickReports, ClickStore, ClickWindow, Erasure, HourRange,
    Salt, StreamPartition, Top,
};
use curt_core::{
    ClickSubject, Day, Dimension, ErrorKind, LinkId, PortError, PortResult, Rollup, UnixMillis,
};

use self::days::Days;
use self::single_clicks::SingleClicks;
use super::{BACKEND, locked};
use curt_adapter_kit::click_days::Damaged;

#[derive(Debug, Default)]
pub struct MemoryClickStore {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    positions: BTreeMap<StreamPartition, u64>,
    days: Days,
    clicks: SingleClicks,
    salts: BTreeMap<Day, Salt>,
}

impl MemoryClickStore {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl ClickStore for MemoryClickStore {
    async fn offset(&self, partition: StreamPartition) -> PortResult<u64> {
        let tables = locked(&self.tables);
        Ok(tables.positions.get(&partition).copied().unwrap_or(0))
    }

    async fn apply(&self, flush: ClickWindow) -> PortResult<bool> {
        let mut tables = locked(&self.tables);
        let position = tables.positions.entry(flush.partition).or_default();
        if *position != flush.from {
            return Ok(false);
        }
        *position = flush.to;
        for day in flush.days.iter() {
            tables.days.add(day).map_err(broken)?;
        }
        for block in &flush.blocks {
            tables.clicks.add(block).map_err(broken)?;
        }
        Ok(true)
    }

    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt> {
        Ok(*locked(&self.tables).salts.entry(day).or_insert(fresh))
    }

    async fn forget_salts(&self, before: Day) -> PortResult<()> {
        locked(&self.tables).salts.retain(|day, _| *day >= before);
        Ok(())
    }

    async fn purge_clicks(&self, before: UnixMillis, limit: usize) -> PortResult<u64> {
        Ok(locked(&self.tables).clicks.purge(before, limit))
    }

    async fn trim_clicks(&self, bytes_max: u64, limit: usize) -> PortResult<u64> {
        Ok(locked(&self.tables).clicks.trim(bytes_max, limit))
    }

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64> {
        Ok(locked(&self.tables).days.purge(before, limit))
    }

    async fn erase_clicks(
        &self,
        link: LinkId,
        generation: u32,
        _pieces_max: usize,
    ) -> PortResult<Erasure> {
        let subject = ClickSubject::Link(link, generation);
        Ok(Erasure {
            erased: locked(&self.tables).clicks.erase(&subject),
            is_complete: true,
        })
    }

    async fn erase_rollups(
        &self,
        link: LinkId,
        generation: u32,
        _pieces_max: usize,
    ) -> PortResult<Erasure> {
        let subject = ClickSubject::Link(link, generation);
        Ok(Erasure {
            erased: locked(&self.tables).days.erase(&subject),
            is_complete: true,
        })
    }
}

#[async_trait]
impl ClickReports for MemoryClickStore {
    async fn series(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
    ) -> PortResult<Vec<Rollup>> {
        let tables = locked(&self.tables);
        let series = tables.days.series(subject, dimension, range);
        series.map_err(broken)
    }

    async fn top(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
        limit: usize,
    ) -> PortResult<Top> {
        let series = self.series(subject, dimension, range).await?;
        let mut counts = BTreeMap::<Box<str>, u64>::new();
        for sum in series {
            let count = counts.entry(Box::from(&*sum.value)).or_default();
            *count = count.saturating_add(sum.count);
        }
        Ok(Top::of(counts, limit))
    }

    async fn visitors(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Day,
    ) -> PortResult<Vec<(Day, u64)>> {
        let tables = locked(&self.tables);
        let days = tables.days.visitors(subject, from, before);
        days.map_err(broken)
    }

    async fn clicks(&self, query: &ClickQuery) -> PortResult<ClickPage> {
        locked(&self.tables).clicks.page(query)
    }

    async fn rank_clicks(&self, ranking: &ClickRanking) -> PortResult<Top> {
        Ok(locked(&self.tables).clicks.rank(ranking))
    }
}

/// Nobody else writes to this memory.
fn broken(damaged: Damaged) -> PortError {
    let detail = "counts in memory are damaged; please report this";
    PortError::new(ErrorKind::Bug, BACKEND, "read counts", detail).with_source(damaged)
}
