//! The click store.
//!
//! The same runs of counts and blocks of clicks as in SQLite: see `rollup_runs` and `click_blocks`. Several processes add to
//! the same tables, and none of them waits for another: what is stored is changed only when a link is erased.

mod apply;
mod blocks;
mod copies;
mod damage;
mod runs;
mod salts;

use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::{click_blocks, rollup_runs};
use curt_core::ports::{
    ClickDamage, ClickPage, ClickQuery, ClickRanking, ClickReports, ClickStore, ClickWindow,
    Erasure, HourRange, Salt, StreamPartition, Top,
};
use curt_core::{ClickSubject, Day, Dimension, LinkId, PortResult, Rollup, UnixMillis};
use tokio::sync::Mutex;

use super::engine::Engine;
use super::schema::{CLICKS, Tables};

pub(super) struct PostgresClicks {
    tables: Tables,
    /// Flushes of one process wait for each other here, and not each with a connection that a create could use.
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
        apply::apply(engine, flush).await
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

    async fn compact(&self) -> PortResult<()> {
        rollup_runs::merge_small(self).await?;
        click_blocks::merge_small(self).await
    }

    async fn damage(&self) -> PortResult<Option<ClickDamage>> {
        damage::damage(self.tables.engine().await?).await
    }

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64> {
        runs::purge(self.tables.engine().await?, before, limit).await
    }

    async fn erase_clicks(
        &self,
        link: LinkId,
        generation: u32,
        pieces_max: usize,
    ) -> PortResult<Erasure> {
        click_blocks::erase(self, ClickSubject::Link(link, generation), pieces_max).await
    }

    async fn erase_rollups(
        &self,
        link: LinkId,
        generation: u32,
        pieces_max: usize,
    ) -> PortResult<Erasure> {
        rollup_runs::erase(self, &ClickSubject::Link(link, generation), pieces_max).await
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
        rollup_runs::read_series(self, subject, dimension, range).await
    }

    async fn top(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
        limit: usize,
    ) -> PortResult<Top> {
        rollup_runs::read_top(self, subject, dimension, range, limit).await
    }

    async fn tops(
        &self,
        subject: &ClickSubject,
        dimensions: &[(Dimension, usize)],
        range: HourRange,
    ) -> PortResult<Vec<Top>> {
        rollup_runs::read_tops(self, subject, dimensions, range).await
    }

    async fn visitors(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Day,
    ) -> PortResult<Vec<(Day, u64)>> {
        rollup_runs::read_visitors(self, subject, from, before).await
    }

    async fn clicks(&self, query: &ClickQuery) -> PortResult<ClickPage> {
        click_blocks::read_page(self, query).await
    }

    async fn rank_clicks(&self, ranking: &ClickRanking) -> PortResult<Top> {
        click_blocks::rank(self, ranking).await
    }
}
