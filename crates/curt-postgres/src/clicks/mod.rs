//! The click store.
//!
//! A subject's day is one row, as in SQLite: see `click_days`. Several processes count into the same rows, so a flush
//! locks the days that it adds to, all flushes in the same order, and is the one transaction here that waits for its
//! client: the rollups of a day are made in this process.

mod apply;
mod blocks;
mod purge;
mod report;
mod salts;
mod subject;

use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::click_blocks;
use curt_core::ports::{
    ClickDamage, ClickPage, ClickQuery, ClickRanking, ClickReports, ClickStore, ClickWindow,
    HourRange, Salt, StreamPartition, Top,
};
use curt_core::{ClickSubject, Day, Dimension, PortResult, Rollup, UnixMillis};
use tokio::sync::Mutex;

use super::engine::Engine;
use super::schema::{CLICKS, Tables};

pub(super) struct PostgresClicks {
    tables: Tables,
    /// Every flush adds to the row of everything, so that those of one process wait for each other anyway: here, and
    /// not each with a connection that a create could use.
    turn: Mutex<()>,
}

impl PostgresClicks {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            tables: Tables::new(engine, &CLICKS),
            turn: Mutex::default(),
        }
    }
}

#[async_trait]
impl ClickStore for PostgresClicks {
    async fn offset(&self, partition: StreamPartition) -> PortResult<u64> {
        apply::offset(self.tables.engine().await?, partition).await
    }

    async fn apply(&self, flush: ClickWindow) -> PortResult<bool> {
        let engine = self.tables.engine().await?;
        let _turn = self.turn.lock().await;
        apply::apply(engine, &flush).await
    }

    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt> {
        salts::keep_salt(self.tables.engine().await?, day, fresh).await
    }

    async fn forget_salts(&self, before: Day) -> PortResult<()> {
        salts::forget_salts(self.tables.engine().await?, before).await
    }

    async fn purge_clicks(&self, before: UnixMillis, limit: usize) -> PortResult<u64> {
        click_blocks::purge(self, before, limit).await
    }

    async fn trim_clicks(&self, bytes_max: u64, limit: usize) -> PortResult<u64> {
        click_blocks::trim(self, bytes_max, limit).await
    }

    async fn merge_clicks(&self) -> PortResult<()> {
        click_blocks::merge_small(self).await
    }

    async fn damage(&self) -> PortResult<Option<ClickDamage>> {
        apply::damage(self.tables.engine().await?).await
    }

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64> {
        purge::purge_rollups(self.tables.engine().await?, before, limit).await
    }
}

#[async_trait]
impl ClickReports for PostgresClicks {
    async fn series(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
    ) -> PortResult<Vec<Rollup>> {
        report::series(self.tables.engine().await?, subject, dimension, range).await
    }

    async fn top(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
        limit: usize,
    ) -> PortResult<Top> {
        let engine = self.tables.engine().await?;
        report::top(engine, subject, dimension, range, limit).await
    }

    async fn visitors(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Day,
    ) -> PortResult<Vec<(Day, u64)>> {
        report::visitors(self.tables.engine().await?, subject, from, before).await
    }

    async fn clicks(&self, query: &ClickQuery) -> PortResult<ClickPage> {
        click_blocks::read_page(self, query).await
    }

    async fn rank_clicks(&self, ranking: &ClickRanking) -> PortResult<Top> {
        click_blocks::rank(self, ranking).await
    }
}
