//! Values that are stored as text or numbers and checked when they are read.

use curt_core::Key;
use rusqlite::Row;
use rusqlite::types::Type;

/// What is stored is not what this version writes.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unknown(String);

/// The failure of a column that holds `value`.
pub(super) fn unknown(column: usize, kind: Type, value: impl std::fmt::Debug) -> rusqlite::Error {
    let what = Unknown(format!("{value:?} is not a value of this column"));
    rusqlite::Error::FromSqlConversionFailure(column, kind, Box::new(what))
}

/// A small number that stands for one of an enumeration.
pub(super) fn number<T>(
    row: &Row<'_>,
    column: usize,
    from_stored: impl FnOnce(u8) -> Option<T>,
) -> rusqlite::Result<T> {
    let number: u8 = row.get(column)?;
    from_stored(number).ok_or_else(|| unknown(column, Type::Integer, number))
}

pub(super) fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<Key> {
    parse_key(row.get_ref(column)?.as_str()?, column)
}

/// Keys, one per line.
pub(super) fn keys(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<Key>> {
    row.get_ref(column)?
        .as_str()?
        .lines()
        .map(|line| parse_key(line, column))
        .collect()
}

pub(super) fn parse_key(text: &str, column: usize) -> rusqlite::Result<Key> {
    Key::parse(text).map_err(|_| unknown(column, Type::Text, text))
}
