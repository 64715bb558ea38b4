//! Which generation the next link under a key has.

use curt_core::LinkId;
use curt_core::ports::LinkChange;
use rusqlite::{Connection, OptionalExtension};

pub(super) fn remember(connection: &Connection, released: &LinkChange) -> rusqlite::Result<()> {
    let LinkChange { id, revision } = released;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO key_generations (domain, key, generation) VALUES (?1, ?2, ?3)",
        )?
        .execute((id.domain.0, id.key.as_str(), revision.generation))
        .map(drop)
}

/// Remembers this generation, or none.
pub(super) fn set(
    connection: &Connection,
    id: &LinkId,
    former: Option<u32>,
) -> rusqlite::Result<()> {
    let name = (id.domain.0, id.key.as_str());
    match former {
        Some(former) => connection
            .prepare_cached(
                "INSERT OR REPLACE INTO key_generations (domain, key, generation) VALUES (?1, ?2, ?3)",
            )?
            .execute((name.0, name.1, former)),
        None => connection
            .prepare_cached("DELETE FROM key_generations WHERE domain = ?1 AND key = ?2")?
            .execute(name),
    }
    .map(drop)
}

/// The generation of the last link that had the key and was released.
pub(super) fn former(connection: &Connection, id: &LinkId) -> rusqlite::Result<Option<u32>> {
    connection
        .prepare_cached("SELECT generation FROM key_generations WHERE domain = ?1 AND key = ?2")?
        .query_row((id.domain.0, id.key.as_str()), |row| row.get(0))
        .optional()
}
