//! Reads of what was counted: the days of a subject, which are neighbours.

use curt_core::ports::{HourRange, Top};
use curt_core::{ClickSubject, Day, Dimension, Rollup};
use rusqlite::Connection;
use rusqlite::types::Type;

use super::subjects::{self, day_of};
use crate::decode::unknown;
use curt_adapter_kit::click_days::{Damaged, Ranking, Series, estimate};

pub(super) fn series(
    connection: &Connection,
    subject: &ClickSubject,
    dimension: Dimension,
    range: HourRange,
) -> rusqlite::Result<Vec<Rollup>> {
    let mut series = Series::new(dimension, range);
    each_day(connection, subject, range, |day, counts| {
        series.add(day, counts)
    })?;
    Ok(series.finish())
}

pub(super) fn top(
    connection: &Connection,
    subject: &ClickSubject,
    dimension: Dimension,
    range: HourRange,
    limit: usize,
) -> rusqlite::Result<Top> {
    let mut ranking = Ranking::new(dimension, range);
    each_day(connection, subject, range, |day, counts| {
        ranking.add(day, counts)
    })?;
    Ok(ranking.finish(limit))
}

pub(super) fn visitors(
    connection: &Connection,
    subject: &ClickSubject,
    from: Day,
    before: Day,
) -> rusqlite::Result<Vec<(Day, u64)>> {
    let Some(number) = subjects::find(connection, subject)? else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(
        "SELECT id, visitors FROM click_days WHERE id >= ?1 AND id < ?2 ORDER BY id",
    )?;
    let mut rows = statement.query((number.on(from), number.on(before)))?;
    let mut days = Vec::new();
    while let Some(row) = rows.next()? {
        let count = estimate(row.get_ref(1)?.as_blob()?)
            .map_err(|_| unknown(1, Type::Blob, row.get::<_, i64>(0)))?;
        if let Some(count) = count {
            days.push((day_of(row.get(0)?), count));
        }
    }
    Ok(days)
}

/// Shows the counts of each day that the range touches.
fn each_day(
    connection: &Connection,
    subject: &ClickSubject,
    range: HourRange,
    mut see: impl FnMut(Day, &[u8]) -> Result<(), Damaged>,
) -> rusqlite::Result<()> {
    let Some(number) = subjects::find(connection, subject)?.filter(|_| range.from < range.before)
    else {
        return Ok(());
    };
    let (first, last) = (Day::of(range.from), Day::of(range.before));
    let mut statement = connection.prepare_cached(
        "SELECT id, counts FROM click_days WHERE id >= ?1 AND id <= ?2 ORDER BY id",
    )?;
    let mut rows = statement.query((number.on(first), number.on(last)))?;
    while let Some(row) = rows.next()? {
        let row_id: i64 = row.get(0)?;
        see(day_of(row_id), row.get_ref(1)?.as_blob()?)
            .map_err(|_| unknown(1, Type::Blob, row_id))?;
    }
    Ok(())
}
