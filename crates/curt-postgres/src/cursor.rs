use std::sync::Arc;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::Cursor;

use super::engine::{Engine, column};
use super::schema::{CURSORS, DISTRIBUTED_LINKS, Tables};

pub(super) struct PostgresCursor {
    tables: Tables,
}

impl PostgresCursor {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        let set = match engine.address().is_distributed {
            true => &DISTRIBUTED_LINKS,
            false => &CURSORS,
        };
        Self {
            tables: Tables::new(engine, set),
        }
    }
}

#[async_trait]
impl Cursor for PostgresCursor {
    async fn get(&self, name: &str) -> PortResult<u64> {
        const OP: &str = "read a cursor";
        let engine = self.tables.engine().await?;
        let sql = "SELECT value FROM cursors WHERE name = $1";
        let rows = engine.read(OP, sql, &[&name]).await?;
        let value: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
        Ok(value.cast_unsigned())
    }

    async fn advance(&self, name: &str, seen: u64, next: u64) -> PortResult<bool> {
        // A name that is absent counts as 0. Two that add it at once meet at its primary key, and the later one finds
        // a row that is no longer 0.
        let sql = match seen {
            0 => {
                "INSERT INTO cursors (name, value) VALUES ($1, $3) \
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE cursors.value = $2 RETURNING 1"
            }
            _ => "UPDATE cursors SET value = $3 WHERE name = $1 AND value = $2 RETURNING 1",
        };
        let (seen, next) = (seen.cast_signed(), next.cast_signed());
        let engine = self.tables.engine().await?;
        let moved = engine
            .write("advance a cursor", sql, &[&name, &seen, &next])
            .await?;
        Ok(!moved.is_empty())
    }
}
