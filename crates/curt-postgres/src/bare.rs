use std::sync::Arc;

use async_trait::async_trait;
use curt_core::{Key, PortResult};

use super::by_index::BY_INDEX;
use super::engine::{Engine, Step};
use super::schema::{self, KEYS};
use curt_adapter_kit::bare::BareKeys;

const PUT: &str =
    "insert into bare_keys (key) select key from unnest($1::text[]) key on conflict do nothing";

/// In the shape that is fastest whatever the planner knows of the table.
const TAKE: &str = "with picked as materialized (select id from bare_keys where status = 0 order by id limit $1 \
    for update skip locked) \
    delete from bare_keys where status = 0 and id = any (array(select id from picked)) returning key";

/// The same table and indexes as the ledger's, and nothing around them.
pub(super) struct PostgresBareKeys {
    engine: Arc<Engine>,
}

impl PostgresBareKeys {
    pub(super) async fn make(engine: Arc<Engine>) -> PortResult<Self> {
        const OP: &str = "make a table to measure with";
        schema::migrate(&engine, &KEYS).await?;
        for sql in [
            "drop table if exists bare_keys",
            "create table bare_keys (like keys including all)",
        ] {
            engine.write(OP, sql, &[]).await?;
        }
        Ok(Self { engine })
    }
}

#[async_trait]
impl BareKeys for PostgresBareKeys {
    async fn put(&self, keys: &[Key]) -> PortResult<()> {
        let texts: Vec<&str> = keys.iter().map(Key::as_str).collect();
        self.engine.write("put keys", PUT, &[&texts]).await?;
        Ok(())
    }

    async fn take(&self, count: usize) -> PortResult<u64> {
        let limit = count as i64;
        let take = Step {
            sql: TAKE,
            values: &[&limit],
        };
        let steps = [BY_INDEX, take];
        let answers = self.engine.transact("take keys", &steps).await?;
        Ok(answers.last().map_or(0, |rows| rows.len() as u64))
    }

    async fn remove(&self) -> PortResult<()> {
        let sql = "drop table if exists bare_keys";
        self.engine.write("remove the table", sql, &[]).await?;
        Ok(())
    }
}
