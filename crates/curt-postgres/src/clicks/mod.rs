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
use curt_adapter_kit::ClickTables;
use curt_core::ports::{ClickDamage, ClickWindow, Salt, StreamPartition};
use curt_core::{Day, PortResult};
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
impl ClickTables for PostgresClicks {
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

    async fn damage(&self) -> PortResult<Option<ClickDamage>> {
        damage::damage(self.tables.engine().await?).await
    }

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64> {
        runs::purge(self.tables.engine().await?, before, limit).await
    }
}
