//! Shards that move to another node.

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{LinkCounts, LinkShards, SeededDatabase};
use curt_core::{Epoch, PortResult, ShardId, ShardMap};

use super::{OP_COUNT, PostgresLinks, counts_in, sql};
use crate::decode::corrupt;
use crate::engine::{Step, Value, column};

#[async_trait]
impl LinkShards for PostgresLinks {
    fn routed_by(&self, map: Arc<ShardMap>) -> Arc<dyn SeededDatabase> {
        Arc::new(Self {
            tables: Arc::clone(&self.tables),
            inserts: Arc::clone(&self.inserts),
            map,
        })
    }

    async fn identity(&self) -> PortResult<Box<str>> {
        const OP: &str = "read the identity";
        let engine = self.tables.engine().await?;
        let mut rows = engine.read_latest(OP, sql::IDENTITY, &[]).await?;
        if rows.is_empty() {
            engine.write(OP, sql::MAKE_IDENTITY, &[]).await?;
            rows = engine.read_latest(OP, sql::IDENTITY, &[]).await?;
        }
        let row = rows.first().ok_or_else(|| corrupt(OP, "no identity"))?;
        Ok(column::<&str>(OP, row, 0)?.into())
    }

    async fn seal(&self, shard: ShardId, epoch: Epoch) -> PortResult<()> {
        let (shard, epoch) = (shard.number().cast_signed(), epoch.0.cast_signed());
        let seal: [Value<'_>; 2] = [&shard, &epoch];
        let steps = [(sql::LOCK_SEALS, &[][..]), (sql::SEAL, &seal)];
        let steps = steps.map(|(sql, values)| Step { sql, values });
        let engine = self.tables.engine().await?;
        engine.transact("seal a shard", &steps).await.map(drop)
    }

    async fn shard_counts(&self, shard: ShardId) -> PortResult<LinkCounts> {
        let shard = shard.number().cast_signed();
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP_COUNT, sql::SHARD_COUNTS, &[&shard]).await?;
        counts_in(rows.first())
    }
}
