//! The click store.
//!
//! What is counted is kept in sorted runs, single clicks in blocks of columns: see `rollup_runs` and `click_blocks`.
//! Both are added, merged and removed, and changed only when a link is erased, so that a flush reads nothing but its
//! partition's offset.

mod apply;
mod blocks;
mod copies;
mod damage;
mod runs;
mod salts;

use std::fs;
use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::{ClickTables, EncodedWindow};
use curt_core::ports::{ClickDamage, ClickWindow, Salt, StreamPartition};
use curt_core::{Day, PortResult};

use super::Sqlite;
use super::disk;
use super::failure::BACKEND;

pub(super) struct SqliteClicks {
    db: Arc<Sqlite>,
}

impl SqliteClicks {
    pub(super) fn new(db: Arc<Sqlite>) -> Self {
        Self { db }
    }
}

#[async_trait]
impl ClickTables for SqliteClicks {
    async fn offset(&self, partition: StreamPartition) -> PortResult<u64> {
        self.db
            .readers
            .look_up("read a click offset", |connection| {
                apply::offset(connection, partition)
            })
    }

    async fn apply(&self, flush: ClickWindow) -> PortResult<bool> {
        const OP: &str = "add clicks";
        let encoded = EncodedWindow::encode(BACKEND, OP, flush).await?;
        let write = self.db.writer.write(OP, encoded.rows(), move |work| {
            apply::apply(work.connection, &encoded)
        });
        write.await
    }

    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt> {
        const OP: &str = "read the salt of a day";
        let kept = self
            .db
            .readers
            .look_up(OP, |connection| salts::find_salt(connection, day))?;
        if let Some(salt) = kept {
            return Ok(salt);
        }
        self.db
            .writer
            .write(OP, 1, move |work| {
                salts::keep_salt(work.connection, day, fresh)
            })
            .await
    }

    async fn forget_salts(&self, before: Day) -> PortResult<()> {
        self.db
            .writer
            .write("forget salts", 1, move |work| {
                salts::forget_salts(work.connection, before)
            })
            .await
    }

    /// The file grows only at a checkpoint: what is in the log and not in the file is promised.
    async fn free_bytes(&self) -> PortResult<Option<u64>> {
        const OP: &str = "read free disk space";
        let bytes: u64 = self.db.readers.look_up(OP, |connection| {
            let read = |pragma| connection.pragma_query_value(None, pragma, |row| row.get(0));
            let (pages, page_bytes): (u32, u32) = (read("page_count")?, read("page_size")?);
            Ok(u64::from(pages) * u64::from(page_bytes))
        })?;
        let in_file = fs::metadata(&self.db.path).map_or(0, |file| file.len());
        let promised = bytes.saturating_sub(in_file);
        Ok(disk::free_bytes(&self.db.path).map(|free| free.saturating_sub(promised)))
    }

    async fn checkpoint(&self) -> PortResult<()> {
        self.db.writer.checkpoint("checkpoint the clicks").await
    }

    async fn damage(&self) -> PortResult<Option<ClickDamage>> {
        self.db.readers.look_up("ask for damage", damage::damage)
    }

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64> {
        self.db
            .writer
            .write("purge click rollups", limit, move |work| {
                runs::purge(work.connection, before, limit)
            })
            .await
    }
}
