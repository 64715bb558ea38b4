use std::sync::Arc;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{MapNote, MapNotes};

use crate::engine::Engine;
use crate::statement::Cql;

const GET: Cql =
    Cql::read("SELECT version, body FROM KEYSPACE.notes WHERE namespace = ? AND name = ?").serial();
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.notes (namespace, name, version, body) VALUES (?, ?, ?, ?) IF NOT EXISTS",
);
const UPDATE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.notes SET version = ?, body = ? WHERE namespace = ? AND name = ? IF version = ?",
);

/// Texts as rows, which change by lightweight transactions.
pub(crate) struct CassandraNotes {
    engine: Arc<Engine>,
    namespace: Arc<str>,
}

impl CassandraNotes {
    pub(crate) fn new(engine: Arc<Engine>, namespace: Arc<str>) -> Self {
        Self { engine, namespace }
    }

    async fn put(&self, op: &'static str, name: &str, note: &MapNote) -> PortResult<bool> {
        let (namespace, version) = (&*self.namespace, note.version.cast_signed());
        let decided = match version {
            ..=0 => return Ok(false),
            1 => {
                let values = (namespace, name, version, &note.text);
                self.engine.decide(op, INSERT, values).await?
            }
            _ => {
                let values = (version, &note.text, namespace, name, version - 1);
                self.engine.decide(op, UPDATE, values).await?
            }
        };
        decided.into_result()
    }
}

#[async_trait]
impl MapNotes for CassandraNotes {
    async fn note(&self, name: &str) -> PortResult<MapNote> {
        const OP: &str = "read a note";
        let found = self.engine.first(OP, GET, (&*self.namespace, name));
        let found: Option<(i64, String)> = self.engine.deadlines.look_up(OP, found).await?;
        Ok(
            found.map_or_else(MapNote::default, |(version, text)| MapNote {
                version: version.cast_unsigned(),
                text,
            }),
        )
    }

    async fn put_note(&self, name: &str, note: &MapNote) -> PortResult<bool> {
        const OP: &str = "write a note";
        self.engine
            .deadlines
            .change(OP, self.put(OP, name, note))
            .await
    }
}
