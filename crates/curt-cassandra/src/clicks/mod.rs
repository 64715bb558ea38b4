//! The rows of clicks. When they are written: [`curt_adapter_kit::wide_column::clicks`].

mod blocks;
mod contents;
mod offsets;
mod runs;
mod salts;

use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_adapter_kit::wide_column::clicks::{DamageRows, DamagedKind};
use curt_core::{PortResult, UnixMillis};

use crate::engine::Engine;
use crate::statement::Cql;

const NOTE_DAMAGE: Cql = Cql::write(
    "INSERT INTO KEYSPACE.click_damage (namespace, kind, id, found_at) VALUES (?, ?, ?, ?)",
);
const GET_DAMAGE: Cql =
    Cql::read("SELECT id, found_at FROM KEYSPACE.click_damage WHERE namespace = ? AND kind = ?");

pub(crate) struct CassandraClicks {
    engine: Arc<Engine>,
    namespace: Arc<str>,
}

impl CassandraClicks {
    pub(crate) fn new(engine: Arc<Engine>, namespace: Arc<str>) -> Self {
        Self { engine, namespace }
    }
}

#[async_trait]
impl DamageRows for CassandraClicks {
    async fn get_damage(
        &self,
        op: &'static str,
        kind: DamagedKind,
    ) -> PortResult<Vec<(i64, UnixMillis)>> {
        let values = (&*self.namespace, kind as i8);
        let rows: Vec<(i64, i64)> = self.engine.rows(op, GET_DAMAGE, values).await?;
        let rows = rows.into_iter().map(|(id, at)| (id, UnixMillis(at)));
        Ok(rows.collect())
    }

    async fn put_damage(
        &self,
        op: &'static str,
        kind: DamagedKind,
        id: i64,
        at: UnixMillis,
    ) -> PortResult<()> {
        let values = (&*self.namespace, kind as i8, id, at.0);
        let noted = self.engine.write(op, Effect::Unknown, NOTE_DAMAGE, values);
        noted.await
    }
}
