//! The clicks database over an engine's runs of counts and blocks of single clicks.

use async_trait::async_trait;
use curt_core::ports::{
    ClickDamage, ClickOverview, ClickPage, ClickQuery, ClickRanking, ClickReports, ClickStore,
    ClickWindow, Erasure, HourRange, Salt, StreamPartition, Top,
};
use curt_core::{ClickSubject, Day, Dimension, LinkId, PortResult, Rollup, UnixMillis};

use crate::click_blocks::{self, ClickBlocks};
use crate::rollup_runs::{self, RollupRuns};

/// What each engine does in its own way beside runs and blocks. A method promises what the one of [`ClickStore`] with its
/// name does.
#[async_trait]
pub trait ClickTables: RollupRuns + ClickBlocks {
    async fn offset(&self, partition: StreamPartition) -> PortResult<u64>;

    async fn apply(&self, flush: ClickWindow) -> PortResult<bool>;

    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt>;

    async fn forget_salts(&self, before: Day) -> PortResult<()>;

    async fn damage(&self) -> PortResult<Option<ClickDamage>>;

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64>;

    async fn free_bytes(&self) -> PortResult<Option<u64>> {
        Ok(None)
    }

    async fn checkpoint(&self) -> PortResult<()> {
        Ok(())
    }
}

/// A clicks database: both its ports over the tables of an engine.
pub struct TableClicks<T>(T);

impl<T: ClickTables> TableClicks<T> {
    #[must_use]
    pub fn new(tables: T) -> Self {
        Self(tables)
    }
}

#[async_trait]
impl<T: ClickTables> ClickStore for TableClicks<T> {
    async fn offset(&self, partition: StreamPartition) -> PortResult<u64> {
        self.0.offset(partition).await
    }

    async fn apply(&self, flush: ClickWindow) -> PortResult<bool> {
        self.0.apply(flush).await
    }

    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt> {
        self.0.salt(day, fresh).await
    }

    async fn forget_salts(&self, before: Day) -> PortResult<()> {
        self.0.forget_salts(before).await
    }

    async fn purge_clicks(&self, before: UnixMillis, limit: usize) -> PortResult<u64> {
        click_blocks::purge(&self.0, before, limit).await
    }

    async fn trim_clicks(&self, bytes_max: u64, limit: usize) -> PortResult<u64> {
        click_blocks::trim(&self.0, bytes_max, limit).await
    }

    async fn compact(&self) -> PortResult<()> {
        rollup_runs::merge_small(&self.0).await?;
        click_blocks::merge_small(&self.0).await
    }

    async fn free_bytes(&self) -> PortResult<Option<u64>> {
        self.0.free_bytes().await
    }

    async fn checkpoint(&self) -> PortResult<()> {
        self.0.checkpoint().await
    }

    async fn damage(&self) -> PortResult<Option<ClickDamage>> {
        self.0.damage().await
    }

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64> {
        self.0.purge_rollups(before, limit).await
    }

    async fn erase_clicks(
        &self,
        link: LinkId,
        generation: u32,
        pieces_max: usize,
    ) -> PortResult<Erasure> {
        click_blocks::erase(&self.0, ClickSubject::Link(link, generation), pieces_max).await
    }

    async fn erase_rollups(
        &self,
        link: LinkId,
        generation: u32,
        pieces_max: usize,
    ) -> PortResult<Erasure> {
        rollup_runs::erase(&self.0, &ClickSubject::Link(link, generation), pieces_max).await
    }
}

#[async_trait]
impl<T: ClickTables> ClickReports for TableClicks<T> {
    async fn series(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
    ) -> PortResult<Vec<Rollup>> {
        rollup_runs::read_series(&self.0, subject, dimension, range).await
    }

    async fn top(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
        limit: usize,
    ) -> PortResult<Top> {
        rollup_runs::read_top(&self.0, subject, dimension, range, limit).await
    }

    async fn overview(
        &self,
        subject: &ClickSubject,
        dimensions: &[(Dimension, usize)],
        range: HourRange,
    ) -> PortResult<ClickOverview> {
        rollup_runs::read_overview(&self.0, subject, dimensions, range).await
    }

    async fn visitors(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Day,
    ) -> PortResult<Vec<(Day, u64)>> {
        rollup_runs::read_visitors(&self.0, subject, from, before).await
    }

    async fn clicks(&self, query: &ClickQuery) -> PortResult<ClickPage> {
        click_blocks::read_page(&self.0, query).await
    }

    async fn rank_clicks(&self, ranking: &ClickRanking) -> PortResult<Top> {
        click_blocks::rank(&self.0, ranking).await
    }
}
