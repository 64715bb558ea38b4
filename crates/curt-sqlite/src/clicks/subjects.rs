//! The numbers under which subjects are stored.

use curt_core::{ClickSubject, Day};

use curt_adapter_kit::click_days::link_number;
use rusqlite::{Connection, OptionalExtension};

/// Bits of a row id of `click_days` that are the day.
const DAY_BITS: u32 = 22;
const DAY_MASK: i64 = (1 << DAY_BITS) - 1;

const _: () = assert!((Day::LAST.number() as i64) < DAY_MASK);

/// A row of `click_subjects`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SubjectNumber(pub(super) i64);

impl SubjectNumber {
    /// The row of one of its days.
    pub(super) fn on(self, day: Day) -> i64 {
        self.0 << DAY_BITS | i64::from(day.number())
    }
}

pub(super) fn day_of(row_id: i64) -> Day {
    Day::numbered(u32::try_from(row_id & DAY_MASK).unwrap_or(u32::MAX))
}

pub(super) const LINK_KIND: u8 = 4;

pub(super) fn columns(subject: &ClickSubject) -> (u8, i64, &str) {
    match subject {
        ClickSubject::Everything => (0, 0, ""),
        ClickSubject::Orphans => (1, 0, ""),
        ClickSubject::Owner(owner) => (2, owner.0.cast_signed(), ""),
        ClickSubject::Tag(owner, tag) => (3, owner.0.cast_signed(), tag),
        ClickSubject::Link(id, generation) => (
            LINK_KIND,
            link_number(id.domain, *generation),
            id.key.as_str(),
        ),
    }
}

pub(super) fn find(
    connection: &Connection,
    subject: &ClickSubject,
) -> rusqlite::Result<Option<SubjectNumber>> {
    connection
        .prepare_cached(
            "SELECT id FROM click_subjects WHERE kind = ?1 AND number = ?2 AND name = ?3",
        )?
        .query_row(columns(subject), |row| row.get(0).map(SubjectNumber))
        .optional()
}

pub(super) fn find_or_add(
    connection: &Connection,
    subject: &ClickSubject,
) -> rusqlite::Result<SubjectNumber> {
    if let Some(number) = find(connection, subject)? {
        return Ok(number);
    }
    connection
        .prepare_cached("INSERT INTO click_subjects (kind, number, name) VALUES (?1, ?2, ?3)")?
        .insert(columns(subject))
        .map(SubjectNumber)
}
