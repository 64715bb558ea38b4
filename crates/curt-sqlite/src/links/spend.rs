//! Clicks of links that have only so many.

use curt_core::ports::SpendReply;
use curt_core::{LinkId, LinkState, Revision};
use rusqlite::{Connection, OptionalExtension};

use super::record;

pub(super) fn spend(
    connection: &Connection,
    id: &LinkId,
    seen: Revision,
) -> rusqlite::Result<SpendReply> {
    let found = record::find(connection, id)?;
    let as_seen = found
        .filter(|stored| stored.link.state == LinkState::Active && stored.link.revision == seen);
    let Some(stored) = as_seen else {
        return Ok(SpendReply::Stale);
    };
    let Some(most) = stored.link.max_clicks else {
        return Ok(SpendReply::Granted);
    };
    let spent = spent_by(connection, stored.row_id)?;
    if spent >= most {
        return Ok(SpendReply::Exhausted);
    }
    connection
        .prepare_cached(
            "INSERT INTO link_clicks (link, spent) VALUES (?1, 1) \
             ON CONFLICT (link) DO UPDATE SET spent = spent + 1",
        )?
        .execute([stored.row_id])?;
    Ok(SpendReply::Granted)
}

pub(super) fn spent(connection: &Connection, id: &LinkId) -> rusqlite::Result<u64> {
    match record::find(connection, id)? {
        Some(stored) => spent_by(connection, stored.row_id),
        None => Ok(0),
    }
}

/// A row id may be given again once its row is gone.
pub(super) fn forget(connection: &Connection, row_id: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM link_clicks WHERE link = ?1")?
        .execute([row_id])
        .map(drop)
}

pub(super) fn spent_by(connection: &Connection, row_id: i64) -> rusqlite::Result<u64> {
    let spent: Option<i64> = connection
        .prepare_cached("SELECT spent FROM link_clicks WHERE link = ?1")?
        .query_row([row_id], |row| row.get(0))
        .optional()?;
    Ok(spent.map_or(0, i64::cast_unsigned))
}
