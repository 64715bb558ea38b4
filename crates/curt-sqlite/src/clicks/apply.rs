//! Adding a flush.

use curt_adapter_kit::EncodedWindow;
use curt_core::ports::StreamPartition;
use rusqlite::{Connection, OptionalExtension};

use super::{blocks, runs};

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
