//! Adding a flush.

use curt_adapter_kit::click_days::Damaged;
use curt_adapter_kit::rollup_runs::{self, NewRun};
use curt_core::click_block::NewBlock;
use curt_core::ports::{ClickWindow, StreamPartition};
use rusqlite::{Connection, OptionalExtension};

use super::{blocks, runs};

/// A flush as it is stored.
pub(super) struct EncodedWindow {
    partition: StreamPartition,
    from: u64,
    to: u64,
    runs: Vec<NewRun>,
    blocks: Vec<NewBlock>,
}

impl EncodedWindow {
    pub(super) fn of(window: ClickWindow) -> Result<Self, Damaged> {
        Ok(Self {
            partition: window.partition,
            from: window.from,
            to: window.to,
            runs: rollup_runs::encode(&window.days)?,
            blocks: window.blocks,
        })
    }

    /// Rows that it adds.
    pub(super) fn rows(&self) -> usize {
        let chunks = self.runs.iter().map(|run| run.chunks.len()).sum::<usize>();
        self.runs.len() + chunks + self.blocks.len()
    }
}

pub(super) fn offset(
    connection: &Connection,
    StreamPartition { stream, number }: StreamPartition,
) -> rusqlite::Result<u64> {
    let offset: Option<i64> = connection
        .prepare_cached(
            "SELECT next_offset FROM click_offsets WHERE stream = ?1 AND partition = ?2",
        )?
        .query_row((stream.0.cast_signed(), number), |row| row.get(0))
        .optional()?;
    Ok(offset.map_or(0, i64::cast_unsigned))
}

pub(super) fn apply(connection: &Connection, window: &EncodedWindow) -> rusqlite::Result<bool> {
    if !move_offset(connection, window)? {
        return Ok(false);
    }
    for run in &window.runs {
        runs::add(connection, run)?;
    }
    for block in &window.blocks {
        blocks::add(connection, block)?;
    }
    Ok(true)
}

/// Says whether the offset was where the flush begins.
fn move_offset(connection: &Connection, flush: &EncodedWindow) -> rusqlite::Result<bool> {
    let partition = flush.partition;
    if offset(connection, partition)? != flush.from {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "INSERT INTO click_offsets (stream, partition, next_offset) VALUES (?1, ?2, ?3) \
             ON CONFLICT (stream, partition) DO UPDATE SET next_offset = excluded.next_offset",
        )?
        .execute((
            partition.stream.0.cast_signed(),
            partition.number,
            flush.to.cast_signed(),
        ))?;
    Ok(true)
}
