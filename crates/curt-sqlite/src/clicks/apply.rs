//! Adding a flush, and removing what is too old.

use curt_core::ports::{ClickWindow, StreamPartition};
use curt_core::{Day, SubjectDay};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension};

use super::blocks;
use super::subjects;
use crate::decode::unknown;
use curt_adapter_kit::click_blocks;
use curt_adapter_kit::click_days::StoredDay;

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

pub(super) fn apply(connection: &Connection, flush: &ClickWindow) -> rusqlite::Result<bool> {
    if !move_offset(connection, flush)? {
        return Ok(false);
    }
    for day in &flush.days {
        add_day(connection, day)?;
    }
    for block in click_blocks::encode(flush.partition, flush.from, &flush.clicks) {
        blocks::add(connection, &block)?;
    }
    Ok(true)
}

/// Says whether the offset was where the flush begins.
pub(super) fn move_offset(connection: &Connection, flush: &ClickWindow) -> rusqlite::Result<bool> {
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

pub(super) fn add_day(connection: &Connection, new: &SubjectDay) -> rusqlite::Result<()> {
    let row_id = subjects::find_or_add(connection, &new.subject)?.on(new.day);
    let stored: Option<StoredDay> = connection
        .prepare_cached("SELECT counts, visitors FROM click_days WHERE id = ?1")?
        .query_row([row_id], |row| {
            Ok(StoredDay {
                counts: row.get(0)?,
                visitors: row.get(1)?,
            })
        })
        .optional()?;
    let is_new = stored.is_none();
    let sum = stored
        .unwrap_or_else(StoredDay::empty)
        .plus([new])
        .map_err(|_| unknown(0, Type::Blob, row_id))?;
    let statement = match is_new {
        true => "INSERT INTO click_days (id, counts, visitors) VALUES (?1, ?2, ?3)",
        false => "UPDATE click_days SET counts = ?2, visitors = ?3 WHERE id = ?1",
    };
    connection
        .prepare_cached(statement)?
        .execute((row_id, sum.counts, sum.visitors))
        .map(drop)
}

pub(super) fn purge(connection: &Connection, before: Day, limit: usize) -> rusqlite::Result<u64> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let purged = connection
        .prepare_cached(
            "DELETE FROM click_days WHERE id IN (SELECT id FROM click_days INDEXED BY click_days_by_day \
             WHERE id & 4194303 < ?1 ORDER BY id & 4194303 LIMIT ?2)",
        )?
        .execute((before.number(), limit))?;
    Ok(purged as u64)
}
