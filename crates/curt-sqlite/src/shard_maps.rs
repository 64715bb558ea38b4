//! The map of shards to nodes: one row.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{MapNote, MapNotes, ShardMaps};
use curt_core::{ErrorKind, PortError, PortResult, ShardMap};
use rusqlite::{Connection, OptionalExtension};
use tokio::time::Instant;

use super::Sqlite;
use super::failure::BACKEND;

/// How often a watch looks for a newer map.
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(super) struct SqliteShardMaps {
    db: Arc<Sqlite>,
}

impl SqliteShardMaps {
    pub(super) fn new(db: Arc<Sqlite>) -> Self {
        Self { db }
    }
}

#[async_trait]
impl ShardMaps for SqliteShardMaps {
    async fn load(&self) -> PortResult<ShardMap> {
        const OP: &str = "load the shard map";
        let Some(text) = self.db.readers.look_up(OP, |connection| {
            connection
                .prepare_cached("SELECT map FROM shard_map")?
                .query_row((), |row| row.get::<_, String>(0))
                .optional()
        })?
        else {
            return Ok(ShardMap::default());
        };
        let detail = "the file does not hold a shard map of this version";
        let corrupt = || PortError::new(ErrorKind::Corrupt, BACKEND, OP, detail);
        ShardMap::of_text(&text).ok_or_else(corrupt)
    }

    async fn watch(&self, seen: u64, wait: Duration) -> PortResult<Option<ShardMap>> {
        let until = Instant::now() + wait;
        loop {
            let version = self
                .db
                .readers
                .look_up("watch the shard map", read_version)?;
            if version > seen {
                return self.load().await.map(Some);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
        }
    }

    async fn advance(&self, next: &ShardMap) -> PortResult<bool> {
        let (version, text) = (next.version(), next.to_text());
        self.db
            .writer
            .write("advance the shard map", 1, move |work| {
                if read_version(work.connection)?.checked_add(1) != Some(version) {
                    return Ok(false);
                }
                work.connection
                    .prepare_cached(
                        "INSERT INTO shard_map (one, version, map) VALUES (1, ?1, ?2) \
                         ON CONFLICT (one) DO UPDATE SET version = excluded.version, map = excluded.map",
                    )?
                    .execute((version.cast_signed(), &text))?;
                Ok(true)
            })
            .await
    }
}

#[async_trait]
impl MapNotes for SqliteShardMaps {
    async fn note(&self, name: &str) -> PortResult<MapNote> {
        self.db
            .readers
            .look_up("read a note of the shard map", |connection| {
                read_note(connection, name)
            })
    }

    async fn put_note(&self, name: &str, note: &MapNote) -> PortResult<bool> {
        let (name, note) = (name.to_owned(), note.clone());
        self.db
            .writer
            .write("write a note of the shard map", 1, move |work| {
                let stored = read_note(work.connection, &name)?;
                if stored.version + 1 != note.version {
                    return Ok(false);
                }
                work.connection
                    .prepare_cached(
                        "INSERT INTO shard_map_notes (name, version, text) VALUES (?1, ?2, ?3) \
                         ON CONFLICT (name) DO UPDATE SET version = excluded.version, text = excluded.text",
                    )?
                    .execute((&name, note.version.cast_signed(), &note.text))?;
                Ok(true)
            })
            .await
    }
}

fn read_version(connection: &Connection) -> rusqlite::Result<u64> {
    let version: Option<i64> = connection
        .prepare_cached("SELECT version FROM shard_map")?
        .query_row((), |row| row.get(0))
        .optional()?;
    Ok(version.map_or(0, i64::cast_unsigned))
}

fn read_note(connection: &Connection, name: &str) -> rusqlite::Result<MapNote> {
    let note = connection
        .prepare_cached("SELECT version, text FROM shard_map_notes WHERE name = ?1")?
        .query_row([name], |row| {
            Ok(MapNote {
                version: row.get::<_, i64>(0)?.cast_unsigned(),
                text: row.get(1)?,
            })
        })
        .optional()?;
    Ok(note.unwrap_or_default())
}
