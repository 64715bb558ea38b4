//! Blocks of single clicks.

use async_trait::async_trait;
use curt_adapter_kit::click_blocks::{BlockEntry, BlockList, BlockPlace, BlockRange, ClickBlocks};
use curt_core::click_block::NewBlock;
use curt_core::{PortResult, UnixMillis};
use rusqlite::{Connection, OptionalExtension, Row};

use super::SqliteClicks;
use super::damage::Damaged;
use crate::failure::BACKEND;

#[async_trait]
impl ClickBlocks for SqliteClicks {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    async fn list(
        &self,
        range: BlockRange,
        after: BlockPlace,
        limit: usize,
    ) -> PortResult<BlockList> {
        self.db
            .readers
            .scan("list blocks of clicks", move |connection| {
                // In one transaction: the version is that of the list.
                let transaction = connection.unchecked_transaction()?;
                Ok(BlockList {
                    version: moves(&transaction)?,
                    blocks: list(&transaction, range, after, limit)?,
                })
            })
            .await
    }

    async fn list_oldest(&self, limit: usize) -> PortResult<Vec<BlockEntry>> {
        self.db
            .readers
            .scan_in_background("list the oldest blocks of clicks", move |connection| {
                let oldest = "SELECT id, first_at, last_at, clicks, bytes FROM click_blocks ORDER BY first_at, id LIMIT ?1";
                list_without_subjects(connection, oldest, limit)
            })
            .await
    }

    async fn list_small(&self, limit: usize) -> PortResult<Vec<BlockEntry>> {
        self.db
            .readers
            .scan_in_background("list small blocks of clicks", move |connection| {
                let small = "SELECT id, first_at, last_at, clicks, bytes FROM click_blocks INDEXED BY click_blocks_small \
                     WHERE clicks < 4096 \
                     AND NOT EXISTS (SELECT 1 FROM click_damage WHERE kind = 1 AND id = click_blocks.id) \
                     ORDER BY id DESC LIMIT ?1";
                list_without_subjects(connection, small, limit)
            })
            .await
    }

    async fn read(&self, ids: &[i64]) -> PortResult<Vec<(i64, Vec<u8>)>> {
        let ids = ids.to_vec();
        self.db
            .readers
            .scan("read blocks of clicks", move |connection| {
                let mut read =
                    connection.prepare_cached("SELECT content FROM click_blocks WHERE id = ?1")?;
                let mut blocks = Vec::new();
                for id in ids {
                    let content = read.query_row([id], |row| row.get(0)).optional()?;
                    blocks.extend(content.map(|content| (id, content)));
                }
                Ok(blocks)
            })
            .await
    }

    async fn sum_bytes(&self) -> PortResult<u64> {
        self.db.readers.look_up("measure clicks", |connection| {
            let sum =
                "SELECT coalesce(sum(bytes), 0) FROM click_blocks INDEXED BY click_blocks_by_start";
            let bytes: i64 = connection
                .prepare_cached(sum)?
                .query_row((), |row| row.get(0))?;
            Ok(bytes.cast_unsigned())
        })
    }

    async fn replace(&self, old: &[i64], new: Vec<NewBlock>) -> PortResult<bool> {
        let old = old.to_vec();
        self.db
            .writer
            .write("replace blocks of clicks", old.len(), move |work| {
                replace(work.connection, &old, &new)
            })
            .await
    }

    async fn set_aside(&self, id: i64) -> PortResult<()> {
        self.set_aside(Damaged::Block, id).await
    }
}

pub(super) fn add(connection: &Connection, block: &NewBlock) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO click_blocks (first_at, last_at, clicks, bytes, subjects, content) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((
            block.first_at.0,
            block.last_at.0,
            block.clicks,
            block.size(),
            &block.subjects,
            &block.bytes,
        ))
        .map(drop)
}

fn moves(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT moves FROM click_block_moves")?
        .query_row((), |row| row.get(0))
}

fn list(
    connection: &Connection,
    range: BlockRange,
    after: BlockPlace,
    limit: usize,
) -> rusqlite::Result<Vec<BlockEntry>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "SELECT id, first_at, last_at, clicks, bytes, subjects FROM click_blocks INDEXED BY click_blocks_by_end \
             WHERE last_at >= ?1 AND first_at < ?2 AND (last_at, id) < (?3, ?4) ORDER BY last_at DESC, id DESC LIMIT ?5",
        )?
        .query_map(
            (range.from.0, range.before.0, after.last_at.0, after.id, limit),
            |row| {
                Ok(BlockEntry {
                    subjects: row.get(5)?,
                    ..entry(row)?
                })
            },
        )?
        .collect()
}

fn list_without_subjects(
    connection: &Connection,
    sql: &str,
    limit: usize,
) -> rusqlite::Result<Vec<BlockEntry>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached(sql)?
        .query_map([limit], entry)?
        .collect()
}

fn entry(row: &Row<'_>) -> rusqlite::Result<BlockEntry> {
    Ok(BlockEntry {
        id: row.get(0)?,
        first_at: UnixMillis(row.get(1)?),
        last_at: UnixMillis(row.get(2)?),
        clicks: row.get(3)?,
        bytes: row.get(4)?,
        subjects: Vec::new(),
    })
}

fn replace(connection: &Connection, old: &[i64], new: &[NewBlock]) -> rusqlite::Result<bool> {
    let mut is_there =
        connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM click_blocks WHERE id = ?1)")?;
    for id in old {
        if !is_there.query_row([id], |row| row.get(0))? {
            return Ok(false);
        }
    }
    let mut remove = connection.prepare_cached("DELETE FROM click_blocks WHERE id = ?1")?;
    for id in old {
        remove.execute([id])?;
    }
    for block in new {
        add(connection, block)?;
    }
    connection
        .prepare_cached("UPDATE click_block_moves SET moves = moves + 1")?
        .execute(())?;
    Ok(true)
}
