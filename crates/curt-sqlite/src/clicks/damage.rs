//! Counting past damaged rows: what cannot be added where it belongs goes to the dead letters, and the rest is added.
//!
//! SQLite refuses every further write of a transaction that has met a damaged page. So each try tells how far it came;
//! what it could not add is remembered, for this flush and all later ones, and the next try leaves it out.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use curt_core::ports::{ClickDamage, ClickWindow};
use curt_core::{ClickSubject, Day, SubjectDay, UnixMillis};
use rusqlite::{Connection, OptionalExtension};

use super::apply::{add_day, move_offset};
use super::{blocks, subjects};
use curt_adapter_kit::click_blocks;
use curt_adapter_kit::click_days::StoredDay;

/// Things that are remembered; more than that are found again each time.
const KNOWN_MAX: usize = 10_000;

/// How far a try came: the number of the day that it was at, or behind them the clicks; past all, it is through.
#[derive(Debug, Default)]
pub(super) struct ApplyProgress(AtomicUsize);

/// What cannot be added.
#[derive(Clone, Debug, Default)]
pub(super) struct DamagedRows {
    days: HashSet<(ClickSubject, Day)>,
    /// Whether single clicks cannot be kept.
    has_clicks: bool,
}

impl DamagedRows {
    /// Learns from a try that failed where `progress` says; `false` when it was not this flush's fault.
    pub(super) fn note_failed_row(
        &mut self,
        flush: &ClickWindow,
        progress: &ApplyProgress,
    ) -> bool {
        let at = progress.0.load(Ordering::Acquire);
        if self.days.len() >= KNOWN_MAX {
            self.days.clear();
        }
        if let Some(day) = flush.days.get(at) {
            return self.days.insert((day.subject.clone(), day.day));
        }
        let is_news = at == flush.days.len() && !self.has_clicks;
        self.has_clicks |= is_news;
        is_news
    }

    /// Learns what cannot be read of all that the flush adds to: a page that is damaged may hold hundreds of rows. Not for
    /// a connection that is within a transaction.
    pub(super) fn probe(&mut self, connection: &Connection, flush: &ClickWindow) {
        for day in &flush.days {
            if read_day(connection, day).is_err_and(|error| !is_undecodable(&error)) {
                self.days.insert((day.subject.clone(), day.day));
            }
        }
    }

    /// Gives up on everything of the kind that the last try failed at.
    pub(super) fn mark_all_damaged(&mut self, flush: &ClickWindow, progress: &ApplyProgress) {
        if progress.0.load(Ordering::Acquire) < flush.days.len() {
            let days = flush.days.iter();
            self.days
                .extend(days.map(|day| (day.subject.clone(), day.day)));
        } else {
            self.has_clicks = true;
        }
    }

    fn has_day(&self, day: &SubjectDay) -> bool {
        !self.days.is_empty() && self.days.contains(&(day.subject.clone(), day.day))
    }
}

/// Does what `apply` does, and sets aside what is damaged.
pub(super) fn apply_past(
    connection: &Connection,
    flush: &ClickWindow,
    damaged: &DamagedRows,
    progress: &ApplyProgress,
) -> rusqlite::Result<bool> {
    progress.0.store(usize::MAX, Ordering::Release);
    if !move_offset(connection, flush)? {
        return Ok(false);
    }
    for (at, day) in flush.days.iter().enumerate() {
        progress.0.store(at, Ordering::Release);
        if damaged.has_day(day) {
            add_day_aside(connection, day)?;
            continue;
        }
        match add_day(connection, day) {
            Err(error) if is_undecodable(&error) => replace_undecodable_day(connection, day)?,
            added => added?,
        }
    }
    progress.0.store(flush.days.len(), Ordering::Release);
    let mut lost = 0;
    if damaged.has_clicks {
        lost = i64::try_from(flush.clicks.len()).unwrap_or(i64::MAX);
    } else {
        for block in click_blocks::encode(flush.partition, flush.from, &flush.clicks) {
            blocks::add(connection, &block)?;
        }
    }
    progress.0.store(usize::MAX, Ordering::Release);
    if lost > 0 {
        connection
            .prepare_cached("INSERT INTO clicks_lost (clicks) VALUES (?1)")?
            .execute([lost])?;
    }
    Ok(true)
}

fn read_day(connection: &Connection, day: &SubjectDay) -> rusqlite::Result<()> {
    let Some(subject) = subjects::find(connection, &day.subject)? else {
        return Ok(());
    };
    let mut statement =
        connection.prepare_cached("SELECT counts, visitors FROM click_days WHERE id = ?1")?;
    let read = statement.query_row([subject.on(day.day)], |row| {
        row.get_ref(0)?.as_blob()?;
        row.get_ref(1)?.as_blob()?;
        Ok(())
    });
    read.optional().map(drop)
}

/// Whether a row could be read and does not hold what this product writes.
fn is_undecodable(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

/// Moves a row that can be read but not decoded to the dead letters and begins a new one.
fn replace_undecodable_day(connection: &Connection, day: &SubjectDay) -> rusqlite::Result<()> {
    let row_id = subjects::find_or_add(connection, &day.subject)?.on(day.day);
    connection
        .prepare_cached(
            "INSERT INTO click_days_damaged (id, counts, visitors) \
             SELECT id, counts, visitors FROM click_days WHERE id = ?1",
        )?
        .execute([row_id])?;
    connection
        .prepare_cached("DELETE FROM click_days WHERE id = ?1")?
        .execute([row_id])?;
    add_day(connection, day)
}

fn add_day_aside(connection: &Connection, day: &SubjectDay) -> rusqlite::Result<()> {
    let (kind, number, name) = subjects::columns(&day.subject);
    let stored: Option<StoredDay> = connection
        .prepare_cached(
            "SELECT counts, visitors FROM click_days_aside WHERE kind = ?1 AND number = ?2 AND name = ?3 AND day = ?4",
        )?
        .query_row((kind, number, name, day.day.number()), |row| {
            Ok(StoredDay {
                counts: row.get(0)?,
                visitors: row.get(1)?,
            })
        })
        .optional()?;
    let sum = stored
        .and_then(|stored| stored.plus([day]).ok())
        .or_else(|| StoredDay::empty().plus([day]).ok());
    let Some(sum) = sum else { return Ok(()) };
    connection
        .prepare_cached(
            "INSERT INTO click_days_aside (kind, number, name, day, counts, visitors) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (kind, number, name, day) \
             DO UPDATE SET counts = excluded.counts, visitors = excluded.visitors",
        )?
        .execute((
            kind,
            number,
            name,
            day.day.number(),
            sum.counts,
            sum.visitors,
        ))
        .map(drop)
}

pub(super) fn damage(connection: &Connection) -> rusqlite::Result<Option<ClickDamage>> {
    let mut statement = connection.prepare_cached(
        "SELECT min(found_at), coalesce(sum(days), 0), coalesce(sum(clicks), 0) FROM ( \
         SELECT min(found_at) AS found_at, count(*) AS days, 0 AS clicks FROM click_days_damaged \
         UNION ALL SELECT min(found_at), count(*), 0 FROM click_days_aside \
         UNION ALL SELECT min(found_at), 0, sum(clicks) FROM clicks_lost)",
    )?;
    statement.query_row((), |row| {
        let since: Option<i64> = row.get(0)?;
        let since = since.map(UnixMillis);
        let (days, clicks): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(since.map(|since| ClickDamage {
            since,
            days: days.cast_unsigned(),
            clicks: clicks.cast_unsigned(),
        }))
    })
}
