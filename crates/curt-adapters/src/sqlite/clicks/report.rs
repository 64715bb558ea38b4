//! Reads of what was counted: the days of a subject, which are neighbours.

use std::collections::HashMap;

use curt_core::ports::{HourRange, Top};
use curt_core::{ClickSubject, ClickSum, Day, Dimension, Sketch};
use rusqlite::Connection;
use rusqlite::types::Type;

use super::day_counts::{self, Damaged, Hours};
use super::subjects::{self, day_of};
use crate::sqlite::decode::unknown;

pub(super) fn series(
    connection: &Connection,
    subject: &ClickSubject,
    dimension: Dimension,
    range: HourRange,
) -> rusqlite::Result<Vec<ClickSum>> {
    let mut sums = Vec::new();
    each_day(connection, subject, range, |day, hours_asked, counts| {
        let first = sums.len();
        day_counts::each_of(counts, dimension, |value, hours| {
            let counted = hours_of(hours_asked, hours).filter(|(_, count)| *count > 0);
            sums.extend(counted.map(|(hour, count)| ClickSum {
                hour: day.hour(hour),
                dimension,
                value: value.into(),
                count,
            }));
        })?;
        // Values rise already, so a stable sort by hour is all that is missing.
        sums[first..].sort_by_key(|sum| sum.hour);
        Ok(())
    })?;
    Ok(sums)
}

pub(super) fn top(
    connection: &Connection,
    subject: &ClickSubject,
    dimension: Dimension,
    range: HourRange,
    limit: usize,
) -> rusqlite::Result<Top> {
    let mut counts = HashMap::<Box<str>, u64>::new();
    each_day(connection, subject, range, |_, hours_asked, bytes| {
        day_counts::each_of(bytes, dimension, |value, hours| {
            let mut new = 0_u64;
            for (hour, count) in hours.iter().enumerate() {
                if hours_asked >> hour & 1 == 1 {
                    new = new.saturating_add(*count);
                }
            }
            if new == 0 {
                return;
            }
            match counts.get_mut(value) {
                Some(count) => *count = count.saturating_add(new),
                None => drop(counts.insert(value.into(), new)),
            }
        })
    })?;
    Ok(Top::of(counts, limit))
}

pub(super) fn visitors(
    connection: &Connection,
    subject: &ClickSubject,
    from: Day,
    before: Day,
) -> rusqlite::Result<Vec<(Day, u64)>> {
    let Some(number) = subjects::find(connection, subject)?.filter(|_| from < before) else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(
        "SELECT id, visitors FROM click_days WHERE id >= ?1 AND id < ?2 ORDER BY id",
    )?;
    let mut rows = statement.query((number.on(from), number.on(before)))?;
    let mut days = Vec::new();
    while let Some(row) = rows.next()? {
        let sketch = Sketch::from_bytes(row.get_ref(1)?.as_blob()?)
            .map_err(|_| unknown(1, Type::Blob, row.get::<_, i64>(0)))?;
        if !sketch.is_empty() {
            days.push((day_of(row.get(0)?), sketch.estimate()));
        }
    }
    Ok(days)
}

/// Shows each day of the range with a bit for each of its hours that was asked for, and its counts.
fn each_day(
    connection: &Connection,
    subject: &ClickSubject,
    range: HourRange,
    mut see: impl FnMut(Day, u32, &[u8]) -> Result<(), Damaged>,
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
        let day = day_of(row_id);
        let is_asked = |hour: &u8| range.contains(day.hour(*hour));
        let hours_asked = (0..24)
            .filter(is_asked)
            .fold(0, |mask, hour| mask | 1 << hour);
        see(day, hours_asked, row.get_ref(1)?.as_blob()?)
            .map_err(|_| unknown(1, Type::Blob, row_id))?;
    }
    Ok(())
}

fn hours_of(asked: u32, hours: &Hours) -> impl Iterator<Item = (u8, u64)> {
    (0..24_u8)
        .zip(hours)
        .filter(move |(hour, _)| asked >> hour & 1 == 1)
        .map(|(hour, count)| (hour, *count))
}
