use std::sync::Arc;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::Cursor;
use rusqlite::{Connection, OptionalExtension};

use super::Sqlite;

pub(super) struct SqliteCursor {
    db: Arc<Sqlite>,
}

impl SqliteCursor {
    pub(super) fn new(db: Arc<Sqlite>) -> Self {
        Self { db }
    }
}

#[async_trait]
impl Cursor for SqliteCursor {
    async fn get(&self, name: &str) -> PortResult<u64> {
        self.db
            .readers
            .look_up("read a cursor", |connection| read(connection, name))
    }

    async fn advance(&self, name: &str, seen: u64, next: u64) -> PortResult<bool> {
        let name = name.to_owned();
        self.db
            .writer
            .write("advance a cursor", 1, move |work| {
                if read(work.connection, &name)? != seen {
                    return Ok(false);
                }
                work.connection
                    .prepare_cached(
                        "INSERT INTO cursors (name, value) VALUES (?1, ?2) \
                         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                    )?
                    .execute((&name, next.cast_signed()))?;
                Ok(true)
            })
            .await
    }
}

fn read(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    let value: Option<i64> = connection
        .prepare_cached("SELECT value FROM cursors WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    Ok(value.map_or(0, i64::cast_unsigned))
}
