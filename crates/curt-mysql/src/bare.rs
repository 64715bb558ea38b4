use std::sync::Arc;

use async_trait::async_trait;
use curt_core::{Key, PortResult};
use mysql_async::prelude::Queryable as _;

use super::engine::Engine;
use super::ledger::keys;
use super::schema;
use curt_adapter_kit::bare::BareKeys;

const TAKE: &str =
    "SELECT id, name FROM bare_keys WHERE status = 0 ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED";

/// The same table and indexes as the ledger's, and nothing around them.
pub(super) struct MysqlBareKeys {
    engine: Arc<Engine>,
}

impl MysqlBareKeys {
    pub(super) async fn make(engine: Arc<Engine>) -> PortResult<Self> {
        schema::migrate(&engine).await?;
        let bare = Self { engine };
        bare.remove().await?;
        let make = "CREATE TABLE bare_keys LIKE minted_keys";
        bare.run("make a table to measure with", make).await?;
        Ok(bare)
    }

    async fn run(&self, op: &'static str, sql: &'static str) -> PortResult<()> {
        let done = self.engine.transact(op, |transaction| {
            Box::pin(async move { transaction.query_drop(sql).await })
        });
        done.await
    }
}

#[async_trait]
impl BareKeys for MysqlBareKeys {
    async fn put(&self, keys: &[Key]) -> PortResult<()> {
        let list = keys::list(keys);
        let put = self.engine.transact("put keys", |transaction| {
            let sql = concat!(
                "INSERT IGNORE INTO bare_keys (name) SELECT name FROM ",
                keys::listed!()
            );
            Box::pin(async move { transaction.exec_drop(sql, (list,)).await })
        });
        put.await
    }

    /// Two statements, because only MariaDB tells what it deletes.
    async fn take(&self, count: usize) -> PortResult<u64> {
        let taken = self.engine.transact("take keys", |transaction| {
            Box::pin(async move {
                let rows: Vec<(u64, String)> = transaction.exec(TAKE, (count as u64,)).await?;
                let ids: Vec<String> = rows.iter().map(|(id, _)| id.to_string()).collect();
                if !ids.is_empty() {
                    let delete = format!("DELETE FROM bare_keys WHERE id IN ({})", ids.join(","));
                    transaction.query_drop(delete).await?;
                }
                Ok(rows.len() as u64)
            })
        });
        taken.await
    }

    async fn remove(&self) -> PortResult<()> {
        let sql = "DROP TABLE IF EXISTS bare_keys";
        self.run("remove the table", sql).await
    }
}
