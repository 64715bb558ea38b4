//! Values that are stored as text or numbers and checked when they are read.

use curt_core::{DomainId, ErrorKind, Key, LinkId, OwnerId, PortError, PortResult, UnixMillis};
use tokio_postgres::Row;

use super::engine::column;
use super::failure::BACKEND;

/// What is stored is not what this version writes.
pub(super) fn corrupt(op: &'static str, value: impl std::fmt::Debug) -> PortError {
    let detail = format!("{value:?} is stored where it has no meaning: restore a backup");
    PortError::new(ErrorKind::Corrupt, BACKEND, op, detail)
}

/// A small number that stands for one of an enumeration.
pub(super) fn number<T>(
    op: &'static str,
    row: &Row,
    index: usize,
    from_stored: impl FnOnce(u8) -> Option<T>,
) -> PortResult<T> {
    let number: i16 = column(op, row, index)?;
    let known = u8::try_from(number).ok().and_then(from_stored);
    known.ok_or_else(|| corrupt(op, number))
}

/// A number of 32 bits, which takes 64 where there are no unsigned ones.
pub(super) fn small(op: &'static str, number: i64) -> PortResult<u32> {
    u32::try_from(number).map_err(|_| corrupt(op, number))
}

/// A number of 64 bits without a sign: the same bits as with one.
pub(super) fn owner(op: &'static str, row: &Row, index: usize) -> PortResult<OwnerId> {
    Ok(OwnerId(column::<i64>(op, row, index)?.cast_unsigned()))
}

pub(super) fn time(op: &'static str, row: &Row, index: usize) -> PortResult<UnixMillis> {
    column(op, row, index).map(UnixMillis)
}

pub(super) fn time_or_none(
    op: &'static str,
    row: &Row,
    index: usize,
) -> PortResult<Option<UnixMillis>> {
    Ok(column::<Option<i64>>(op, row, index)?.map(UnixMillis))
}

/// The identity in the first two columns of a row.
pub(super) fn link_id(op: &'static str, row: &Row) -> PortResult<LinkId> {
    let domain = small(op, column(op, row, 0)?)?;
    let key = parse_key(op, column(op, row, 1)?)?;
    Ok(LinkId::new(DomainId(domain), key))
}

pub(super) fn parse_key(op: &'static str, text: &str) -> PortResult<Key> {
    Key::parse(text).map_err(|error| corrupt(op, text).with_source(error))
}

pub(super) fn hash(op: &'static str, row: &Row, index: usize) -> PortResult<[u8; 32]> {
    let bytes: &[u8] = column(op, row, index)?;
    // Not what it holds: a hash has no business in a log.
    bytes.try_into().map_err(|_| corrupt(op, "a cut hash"))
}

/// How many rows a page may have, as the engine counts them.
pub(super) fn rows_max(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A position of another engine.
pub(super) fn wrong_position(op: &'static str) -> PortError {
    let detail = "the position is not one of this database";
    PortError::new(ErrorKind::Invalid, BACKEND, op, detail)
}
