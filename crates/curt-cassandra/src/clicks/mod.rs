//! The click store: the runs of counts and blocks of clicks of `curt-adapter-kit`, without a transaction over partitions.
//!
//! A window is written under ids of its own, where nothing finds it, and counts from the moment at which its position moves:
//! one lightweight transaction, which also keeps the list of what was written (the *manifest*). Then it is entered into the
//! catalogues, and the manifest goes. Whoever finds one that was left enters it again, which changes nothing (C-1). A
//! catalogue is one partition (the runs of a day, or all blocks), so that what is merged or edited changes at once.

mod blocks;
mod contents;
mod copies;
mod manifest;
mod run_catalogue;
mod runs;
mod salts;
mod window;

use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::{Effect, click_blocks, rollup_runs};
use curt_core::ports::{
    ClickDamage, ClickPage, ClickQuery, ClickRanking, ClickReports, ClickStore, ClickWindow,
    Erasure, HourRange, Salt, StreamPartition, Top,
};
use curt_core::{
    ClickSubject, Clock, Day, Dimension, LinkId, PortResult, Rollup, SystemClock, UnixMillis, names,
};
use tokio::sync::Mutex;

use crate::engine::Engine;
use crate::failure::BACKEND;
use crate::ordered::OrderedLists;
use crate::statement::Cql;

const NOTE_DAMAGE: Cql = Cql::write(
    "INSERT INTO KEYSPACE.click_damage (namespace, kind, id, found_at) VALUES (?, ?, ?, ?)",
);
const GET_DAMAGE: Cql =
    Cql::read("SELECT id, found_at FROM KEYSPACE.click_damage WHERE namespace = ? AND kind = ?");

/// The number of each is part of the format.
#[derive(Clone, Copy, Debug)]
enum Damaged {
    Run = 0,
    Block = 1,
}

pub(crate) struct CassandraClicks {
    engine: Arc<Engine>,
    namespace: Arc<str>,
    lists: OrderedLists,
    /// Changes of catalogues from one process wait for each other: transactions on one partition hinder each other.
    turn: Mutex<()>,
}

impl CassandraClicks {
    pub(crate) fn new(engine: Arc<Engine>, namespace: Arc<str>) -> Self {
        Self {
            lists: OrderedLists::new(Arc::clone(&engine), Arc::clone(&namespace)),
            turn: Mutex::default(),
            engine,
            namespace,
        }
    }

    /// What cannot be read, with when that was found.
    async fn damaged(&self, op: &'static str, kind: Damaged) -> PortResult<Vec<(i64, i64)>> {
        let values = (&*self.namespace, kind as i8);
        self.engine.rows(op, GET_DAMAGE, values).await
    }

    async fn note_damage(&self, kind: Damaged, id: i64) -> PortResult<()> {
        tracing::error!(
            event = names::event::CLICKS_SET_ASIDE,
            backend = BACKEND,
            kind = ?kind,
            id,
            "clicks database is damaged"
        );
        const OP: &str = "note damage";
        let known = self.damaged(OP, kind).await?;
        if known.iter().any(|(noted, _)| *noted == id) {
            return Ok(());
        }
        let values = (&*self.namespace, kind as i8, id, SystemClock.now().0);
        let noted = self.engine.write(OP, Effect::Unknown, NOTE_DAMAGE, values);
        noted.await
    }
}

#[async_trait]
impl ClickStore for CassandraClicks {
    async fn offset(&self, partition: StreamPartition) -> PortResult<u64> {
        const OP: &str = "read a click offset";
        self.engine
            .change_much(OP, self.finished_offset(OP, partition))
            .await
    }

    async fn apply(&self, flush: ClickWindow) -> PortResult<bool> {
        self.apply_window(flush).await
    }

    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt> {
        self.keep_salt(day, fresh).await
    }

    async fn forget_salts(&self, before: Day) -> PortResult<()> {
        self.forget_salts_before(before).await
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
        const OP: &str = "ask for damage";
        let runs = self.damaged(OP, Damaged::Run).await?;
        let blocks = self.damaged(OP, Damaged::Block).await?;
        let since = runs.iter().chain(&blocks).map(|(_, at)| *at).min();
        Ok(since.map(|since| ClickDamage {
            since: UnixMillis(since),
            runs: runs.len() as u64,
            blocks: blocks.len() as u64,
        }))
    }

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64> {
        self.purge_runs(before, limit).await
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
impl ClickReports for CassandraClicks {
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
