//! What is reported on, as it is stored.

use std::borrow::Cow;

use curt_core::{ClickSubject, Day, PortResult};
use tokio_postgres::Row;

use crate::decode::corrupt;
use crate::engine::column;
use curt_adapter_kit::click_days::link_number;

/// The columns that name a subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject<'a> {
    pub(super) kind: i16,
    pub(super) number: i64,
    pub(super) name: Cow<'a, str>,
}

impl<'a> From<&'a ClickSubject> for Subject<'a> {
    fn from(subject: &'a ClickSubject) -> Self {
        let (kind, number, name) = match subject {
            ClickSubject::Everything => (0, 0, ""),
            ClickSubject::Orphans => (1, 0, ""),
            ClickSubject::Owner(owner) => (2, owner.0.cast_signed(), ""),
            ClickSubject::Tag(owner, tag) => (3, owner.0.cast_signed(), &**tag),
            ClickSubject::Link(id, generation) => {
                (4, link_number(id.domain, *generation), id.key.as_str())
            }
        };
        Self {
            kind,
            number,
            name: without_nul(name),
        }
    }
}

/// PostgreSQL keeps no text with a NUL in it, and one visitor who sends such a text must not keep everybody's clicks
/// from being counted.
pub(super) fn without_nul(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// A day as its number.
pub(super) fn stored_day(day: Day) -> i32 {
    day.number().cast_signed()
}

pub(super) fn day_of(op: &'static str, row: &Row, index: usize) -> PortResult<Day> {
    let number: i32 = column(op, row, index)?;
    let number = u32::try_from(number).map_err(|_| corrupt(op, number))?;
    Ok(Day::numbered(number))
}
