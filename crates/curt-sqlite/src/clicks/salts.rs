use curt_core::Day;
use curt_core::ports::Salt;
use rusqlite::{Connection, OptionalExtension};

pub(super) fn find_salt(connection: &Connection, day: Day) -> rusqlite::Result<Option<Salt>> {
    connection
        .prepare_cached("SELECT salt FROM click_salts WHERE day = ?1")?
        .query_row([day.number()], |row| row.get(0))
        .optional()
}

/// The salt that the day has, or `fresh` from now on.
pub(super) fn keep_salt(connection: &Connection, day: Day, fresh: Salt) -> rusqlite::Result<Salt> {
    if let Some(salt) = find_salt(connection, day)? {
        return Ok(salt);
    }
    connection
        .prepare_cached("INSERT INTO click_salts (day, salt) VALUES (?1, ?2)")?
        .execute((day.number(), fresh))?;
    Ok(fresh)
}

pub(super) fn forget_salts(connection: &Connection, before: Day) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM click_salts WHERE day < ?1")?
        .execute([before.number()])
        .map(drop)
}
