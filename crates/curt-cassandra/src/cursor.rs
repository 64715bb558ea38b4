use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_core::PortResult;
use curt_core::ports::Cursor;

use crate::engine::Engine;
use crate::statement::Cql;
use curt_adapter_kit::wide_column::Decided;

const GET: Cql =
    Cql::read("SELECT value FROM KEYSPACE.cursors WHERE namespace = ? AND name = ?").serial();
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.cursors (namespace, name, value) VALUES (?, ?, ?) IF NOT EXISTS",
);
const ADVANCE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.cursors SET value = ? WHERE namespace = ? AND name = ? IF value = ?",
);

/// Numbers as rows, which move by lightweight transactions.
pub(crate) struct CassandraCursor {
    engine: Arc<Engine>,
    namespace: Arc<str>,
}

impl CassandraCursor {
    pub(crate) fn new(engine: Arc<Engine>, namespace: Arc<str>) -> Self {
        Self { engine, namespace }
    }

    async fn find(&self, op: &'static str, name: &str) -> PortResult<Option<u64>> {
        let values = (&*self.namespace, name);
        let row: Option<(i64,)> = self.engine.first(op, GET, values).await?;
        Ok(row.map(|(value,)| value.cast_unsigned()))
    }

    async fn try_advance(
        &self,
        op: &'static str,
        name: &str,
        seen: u64,
        next: u64,
    ) -> PortResult<bool> {
        let (namespace, next) = (&*self.namespace, next.cast_signed());
        let decided = match self.find(op, name).await? {
            None if seen == 0 => {
                let values = (namespace, name, next);
                self.engine.decide(op, INSERT, values).await?
            }
            Some(now) if now == seen => {
                let values = (next, namespace, name, seen.cast_signed());
                self.engine.decide(op, ADVANCE, values).await?
            }
            _ => return Ok(false),
        };
        match decided {
            Decided::Applied => Ok(true),
            Decided::Refused => Ok(false),
            Decided::Unknown(error) => Err(error),
        }
    }
}

#[async_trait]
impl Cursor for CassandraCursor {
    async fn get(&self, name: &str) -> PortResult<u64> {
        const OP: &str = "read a cursor";
        let limit = self.engine.settings.call_timeout;
        let found = self.find(OP, name);
        let found = self
            .engine
            .deadlines
            .within(OP, limit, Effect::None, found)
            .await?;
        Ok(found.unwrap_or(0))
    }

    async fn advance(&self, name: &str, seen: u64, next: u64) -> PortResult<bool> {
        const OP: &str = "move a cursor";
        let limit = self.engine.settings.call_timeout;
        let moved = self.try_advance(OP, name, seen, next);
        self.engine
            .deadlines
            .within(OP, limit, Effect::Unknown, moved)
            .await
    }
}

/// Reads as it was decided, which takes the replicas that a conditional write takes.
pub(crate) async fn ping(engine: &Engine, namespace: &str, op: &'static str) -> PortResult<()> {
    let read = engine.rows::<(i64,)>(op, GET, (namespace, "ping"));
    read.await.map(drop)
}
