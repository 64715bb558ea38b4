//! The map of shards to nodes: one row, which others look at a few times a second.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{MapNote, MapNotes, ShardMaps};
use curt_core::{PortResult, ShardMap};
use tokio::time::Instant;

use super::decode::corrupt;
use super::engine::{Engine, column};
use super::schema::{SHARD_MAP, Tables};

/// How often a watch looks for a newer map. Nothing depends on it but how long calls are routed by the old one first.
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(super) struct PostgresShardMaps {
    tables: Tables,
}

impl PostgresShardMaps {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            tables: Tables::new(engine, &SHARD_MAP),
        }
    }

    /// The stored map if it is newer than `seen`.
    async fn find_newer(
        &self,
        op: &'static str,
        seen: Option<u64>,
    ) -> PortResult<Option<ShardMap>> {
        let sql = "SELECT map FROM shard_map WHERE version > $1";
        let seen = seen.map_or(-1, u64::cast_signed);
        let engine = self.tables.engine().await?;
        let rows = engine.read_latest(op, sql, &[&seen]).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let map = ShardMap::of_text(column(op, row, 0)?);
        map.map(Some).ok_or_else(|| corrupt(op, "a shard map"))
    }
}

#[async_trait]
impl ShardMaps for PostgresShardMaps {
    async fn load(&self) -> PortResult<ShardMap> {
        let map = self.find_newer("load the shard map", None).await?;
        Ok(map.unwrap_or_default())
    }

    async fn watch(&self, seen: u64, wait: Duration) -> PortResult<Option<ShardMap>> {
        let until = Instant::now() + wait;
        loop {
            let newer = self.find_newer("watch the shard map", Some(seen)).await?;
            let left = until.saturating_duration_since(Instant::now());
            if newer.is_some() || left.is_zero() {
                return Ok(newer);
            }
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
        }
    }

    async fn advance(&self, next: &ShardMap) -> PortResult<bool> {
        let Some(seen) = next.version().checked_sub(1) else {
            return Ok(false);
        };
        // Two that make the first map meet at the primary key.
        let sql = match seen {
            0 => {
                "INSERT INTO shard_map (one, version, map) SELECT true, $1::bigint + 1, $2 \
                 ON CONFLICT (one) DO NOTHING RETURNING 1"
            }
            _ => {
                "UPDATE shard_map SET version = $1::bigint + 1, map = $2 WHERE version = $1 RETURNING 1"
            }
        };
        let engine = self.tables.engine().await?;
        let values = (seen.cast_signed(), next.to_text());
        let moved = engine
            .write("advance the shard map", sql, &[&values.0, &values.1])
            .await?;
        Ok(!moved.is_empty())
    }
}

#[async_trait]
impl MapNotes for PostgresShardMaps {
    async fn note(&self, name: &str) -> PortResult<MapNote> {
        const OP: &str = "read a note of the shard map";
        let sql = "SELECT version, text FROM shard_map_notes WHERE name = $1";
        let engine = self.tables.engine().await?;
        let rows = engine.read_latest(OP, sql, &[&name]).await?;
        let Some(row) = rows.first() else {
            return Ok(MapNote::default());
        };
        Ok(MapNote {
            version: column::<i64>(OP, row, 0)?.cast_unsigned(),
            text: column(OP, row, 1)?,
        })
    }

    async fn put_note(&self, name: &str, note: &MapNote) -> PortResult<bool> {
        let Some(seen) = note.version.checked_sub(1) else {
            return Ok(false);
        };
        let sql = match seen {
            0 => {
                "INSERT INTO shard_map_notes (name, version, text) SELECT $1, $2::bigint + 1, $3 \
                 ON CONFLICT (name) DO NOTHING RETURNING 1"
            }
            _ => {
                "UPDATE shard_map_notes SET version = $2::bigint + 1, text = $3 \
                 WHERE name = $1 AND version = $2 RETURNING 1"
            }
        };
        let engine = self.tables.engine().await?;
        let seen = seen.cast_signed();
        let moved = engine
            .write(
                "write a note of the shard map",
                sql,
                &[&name, &seen, &note.text],
            )
            .await?;
        Ok(!moved.is_empty())
    }
}
