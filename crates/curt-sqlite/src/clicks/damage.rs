//! Counting past damaged rows: what cannot be added where it belongs goes to the dead letters, and the rest is added.
//!
//! SQLite refuses every further write of a transaction that has met a damaged page. So each try tells how far it came;
//! what it could not add is remembered, for this flush and all later ones, and the next try leaves it out.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use curt_core::ports::{ClickDamage, ClickWindow};
use curt_core::{Click, ClickSubject, Day, SubjectDay, UnixMillis};
use rusqlite::{Connection, OptionalExtension};

use super::apply::{add_day, move_offset};
use super::{single_clicks, subjects};
use curt_adapter_kit::click_days::StoredDay;

const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
/// Things that are remembered; more than that are found again each time.
const KNOWN_MAX: usize = 10_000;

/// How far a try came: the number of the day that it was at, or of the click behind them; past all, it is through.
#[derive(Debug, Default)]
pub(super) struct Progress(AtomicUsize);

/// What cannot be added.
#[derive(Clone, Debug, Default)]
pub(super) struct Damaged {
    days: HashSet<(ClickSubject, Day)>,
    /// Subjects whose single clicks cannot be kept.
    clicks: HashSet<ClickSubject>,
}

impl Damaged {
    /// Learns from a try that failed where `progress` says; `false` when it was not this flush's fault.
    pub(super) fn learn(&mut self, flush: &ClickWindow, progress: &Progress) -> bool {
        let at = progress.0.load(Ordering::Acquire);
        if self.days.len() + self.clicks.len() >= KNOWN_MAX {
            self.days.clear();
            self.clicks.clear();
        }
        if let Some(day) = flush.days.get(at) {
            return self.days.insert((day.subject.clone(), day.day));
        }
        match flush.clicks.get(at - flush.days.len()) {
            Some(click) => self.clicks.insert(single_clicks::subject_of(click)),
            None => false,
        }
    }

    /// Learns what cannot be read of all that the flush adds to: a page that is damaged may hold hundreds of rows. Not for
    /// a connection that is within a transaction.
    pub(super) fn probe(&mut self, connection: &Connection, flush: &ClickWindow) {
        for day in &flush.days {
            if read_day(connection, day).is_err_and(|error| !is_undecodable(&error)) {
                self.days.insert((day.subject.clone(), day.day));
            }
        }
        let subjects: HashSet<_> = flush.clicks.iter().map(single_clicks::subject_of).collect();
        for subject in subjects {
            if subjects::find(connection, &subject).is_err() {
                self.clicks.insert(subject);
            }
        }
    }

    /// Gives up on everything of the kind that the last try failed at.
    pub(super) fn give_up(&mut self, flush: &ClickWindow, progress: &Progress) {
        if progress.0.load(Ordering::Acquire) < flush.days.len() {
            let days = flush.days.iter();
            self.days
                .extend(days.map(|day| (day.subject.clone(), day.day)));
        } else {
            self.clicks
                .extend(flush.clicks.iter().map(single_clicks::subject_of));
        }
    }

    fn has_day(&self, day: &SubjectDay) -> bool {
        !self.days.is_empty() && self.days.contains(&(day.subject.clone(), day.day))
    }

    fn has_click(&self, click: &Click) -> bool {
        !self.clicks.is_empty() && self.clicks.contains(&single_clicks::subject_of(click))
    }
}

/// Does what `apply` does, and sets aside what is damaged.
pub(super) fn apply_past(
    connection: &Connection,
    flush: &ClickWindow,
    damaged: &Damaged,
    progress: &Progress,
) -> rusqlite::Result<bool> {
    progress.0.store(usize::MAX, Ordering::Release);
    if !move_offset(connection, flush)? {
        return Ok(false);
    }
    for (at, day) in flush.days.iter().enumerate() {
        progress.0.store(at, Ordering::Release);
        if damaged.has_day(day) {
            add_aside(connection, day)?;
            continue;
        }
        match add_day(connection, day) {
            Err(error) if is_undecodable(&error) => begin_anew(connection, day)?,
            added => added?,
        }
    }
    let mut lost = 0;
    for (at, click) in flush.clicks.iter().enumerate() {
        progress.0.store(flush.days.len() + at, Ordering::Release);
        match damaged.has_click(click) {
            true => lost += 1,
            false => single_clicks::add(connection, std::slice::from_ref(click))?,
        }
    }
    progress.0.store(usize::MAX, Ordering::Release);
    if lost > 0 {
        let sql = format!("INSERT INTO clicks_lost (found_at, clicks) VALUES ({NOW}, ?1)");
        connection.prepare_cached(&sql)?.execute([lost])?;
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
fn begin_anew(connection: &Connection, day: &SubjectDay) -> rusqlite::Result<()> {
    let row_id = subjects::find_or_add(connection, &day.subject)?.on(day.day);
    let sql = format!(
        "INSERT INTO click_days_damaged (id, found_at, counts, visitors) \
         SELECT id, {NOW}, counts, visitors FROM click_days WHERE id = ?1"
    );
    connection.prepare_cached(&sql)?.execute([row_id])?;
    connection
        .prepare_cached("DELETE FROM click_days WHERE id = ?1")?
        .execute([row_id])?;
    add_day(connection, day)
}

fn add_aside(connection: &Connection, day: &SubjectDay) -> rusqlite::Result<()> {
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
    let sql = format!(
        "INSERT INTO click_days_aside (kind, number, name, day, found_at, counts, visitors) \
         VALUES (?1, ?2, ?3, ?4, {NOW}, ?5, ?6) ON CONFLICT (kind, number, name, day) \
         DO UPDATE SET counts = excluded.counts, visitors = excluded.visitors"
    );
    connection
        .prepare_cached(&sql)?
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
