//! The click store: the runs of counts and blocks of clicks of this crate, without a transaction over partitions.
//!
//! A window is written under ids of its own, where nothing finds it, and counts from the moment at which its position moves:
//! one conditional write, which also keeps the list of what was written (the *manifest*). Then it is entered into the
//! catalogues, and the manifest goes. Whoever finds one that was left enters it again, which changes nothing (C-1). A
//! catalogue is one partition (the runs of a day, or all blocks), so that what is merged or edited changes at once.

mod blocks;
mod copies;
mod manifest;
mod rows;
mod run_catalogue;
mod runs;
mod salts;
mod window;

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{ClickDamage, ClickWindow, Salt, StreamPartition};
use curt_core::{Clock, Day, ErrorKind, PortError, PortResult, SystemClock, names};
use tokio::sync::Mutex;

use super::ordered::{ListRows, OrderedLists};
use super::{Deadlines, together};
use crate::ClickTables;

pub use manifest::{BlockRow, RunRow};
pub use rows::{
    CataloguedRun, ClickBlockRows, Content, ContentRows, DamageRows, DamagedKind, OffsetRows,
    RunRows, SaltRows, StoredBlock, StoredOffset,
};

/// All that an engine keeps of clicks.
pub trait ClickRows:
    ClickBlockRows + ContentRows + DamageRows + OffsetRows + RunRows + SaltRows
{
}

impl<T> ClickRows for T where
    T: ClickBlockRows + ContentRows + DamageRows + OffsetRows + RunRows + SaltRows
{
}

/// A clicks database.
pub struct WideClicks {
    rows: Arc<dyn ClickRows>,
    lists: OrderedLists,
    deadlines: Deadlines,
    /// Changes of catalogues from one process wait for each other: conditional writes of one partition hinder
    /// each other.
    turn: Mutex<()>,
}

impl WideClicks {
    #[must_use]
    pub fn new(rows: Arc<dyn ClickRows>, lists: Arc<dyn ListRows>, deadlines: Deadlines) -> Self {
        Self {
            rows,
            lists: OrderedLists::new(lists),
            deadlines,
            turn: Mutex::default(),
        }
    }

    async fn note_damage(&self, kind: DamagedKind, id: i64) -> PortResult<()> {
        const OP: &str = "note damage";
        tracing::error!(
            event = names::event::CLICKS_SET_ASIDE,
            backend = self.deadlines.backend,
            kind = ?kind,
            id,
            "clicks database is damaged"
        );
        let known = self.rows.get_damage(OP, kind).await?;
        if known.iter().any(|(noted, _)| *noted == id) {
            return Ok(());
        }
        self.rows.put_damage(OP, kind, id, SystemClock.now()).await
    }

    /// Removes values that nothing names any more. What is left of them when this fails takes room and nothing else.
    async fn delete_contents(&self, op: &'static str, ids: Vec<i64>) {
        let deletes = ids.into_iter().map(|id| self.rows.delete_content(op, id));
        together(deletes).await.ok();
    }

    fn corrupt(&self, op: &'static str, what: impl std::fmt::Display) -> PortError {
        let detail = format!("a row holds what this version does not write: {what}");
        PortError::new(ErrorKind::Corrupt, self.deadlines.backend, op, detail)
    }
}

#[async_trait]
impl ClickTables for WideClicks {
    async fn offset(&self, partition: StreamPartition) -> PortResult<u64> {
        const OP: &str = "read a click offset";
        self.deadlines
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

    async fn damage(&self) -> PortResult<Option<ClickDamage>> {
        const OP: &str = "ask for damage";
        let runs = self.rows.get_damage(OP, DamagedKind::Run).await?;
        let blocks = self.rows.get_damage(OP, DamagedKind::Block).await?;
        let since = runs.iter().chain(&blocks).map(|(_, at)| *at).min();
        Ok(since.map(|since| ClickDamage {
            since,
            runs: runs.len() as u64,
            blocks: blocks.len() as u64,
        }))
    }

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64> {
        self.purge_runs(before, limit).await
    }
}
