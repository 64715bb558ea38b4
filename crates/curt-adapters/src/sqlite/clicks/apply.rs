//! Adding a flush, and removing what is too old.

use curt_core::ports::ClickFlush;
use curt_core::{Day, Sketch, SubjectDay};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension};

use super::day_counts::DayCounts;
use super::subjects;
use super::visits;
use crate::sqlite::decode::unknown;

pub(super) fn position(connection: &Connection, partition: u32) -> rusqlite::Result<u64> {
    let position: Option<i64> = connection
        .prepare_cached("SELECT position FROM click_positions WHERE partition = ?1")?
        .query_row([partition], |row| row.get(0))
        .optional()?;
    Ok(position.map_or(0, i64::cast_unsigned))
}

pub(super) fn apply(connection: &Connection, flush: &ClickFlush) -> rusqlite::Result<bool> {
    if position(connection, flush.partition)? != flush.from {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "INSERT INTO click_positions (partition, position) VALUES (?1, ?2) \
             ON CONFLICT (partition) DO UPDATE SET position = excluded.position",
        )?
        .execute((flush.partition, flush.to.cast_signed()))?;
    for day in &flush.days {
        add_day(connection, day)?;
    }
    visits::add(connection, &flush.visits)?;
    Ok(true)
}

fn add_day(connection: &Connection, new: &SubjectDay) -> rusqlite::Result<()> {
    let row_id = subjects::find_or_add(connection, &new.subject)?.on(new.day);
    let stored: Option<(Vec<u8>, Vec<u8>)> = connection
        .prepare_cached("SELECT counts, visitors FROM click_days WHERE id = ?1")?
        .query_row([row_id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (mut counts, mut visitors) = match &stored {
        Some((counts, visitors)) => (
            DayCounts::decode(counts).map_err(|_| unknown(0, Type::Blob, row_id))?,
            Sketch::from_bytes(visitors).map_err(|_| unknown(1, Type::Blob, row_id))?,
        ),
        None => (DayCounts::default(), Sketch::new()),
    };
    for sum in &new.sums {
        counts.add(new.day, sum);
    }
    visitors.merge(&new.visitors);
    let columns = (row_id, counts.encode(), visitors.to_bytes());
    let statement = match stored {
        Some(_) => "UPDATE click_days SET counts = ?2, visitors = ?3 WHERE id = ?1",
        None => "INSERT INTO click_days (id, counts, visitors) VALUES (?1, ?2, ?3)",
    };
    connection
        .prepare_cached(statement)?
        .execute(columns)
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
