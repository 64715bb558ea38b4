//! Shards that move to another node.

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{
    ChangedItems, LinkCounts, LinkShards, SeededDatabase, ShardItem, ShardPart,
};
use curt_core::{Epoch, PortResult, ShardId, ShardMap};

use super::{PostgresLinks, copies, sql};
use crate::decode::corrupt;
use crate::engine::{Step, Value, column};

#[async_trait]
impl LinkShards for PostgresLinks {
    fn routed_by(&self, map: Arc<ShardMap>) -> Arc<dyn SeededDatabase> {
        Arc::new(Self {
            tables: Arc::clone(&self.tables),
            inserts: Arc::clone(&self.inserts),
            lookups: Arc::clone(&self.lookups),
            recent: Arc::clone(&self.recent),
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
        copies::shard_counts(&*self.background().await?, shard).await
    }

    async fn track_changes(&self, shard: ShardId, fence: u64) -> PortResult<()> {
        copies::track(&*self.background().await?, shard, fence).await
    }

    async fn stop_tracking(&self, shard: ShardId, fence: u64) -> PortResult<()> {
        copies::stop_tracking(&*self.background().await?, shard, fence).await
    }

    async fn export(&self, shard: ShardId, after: Option<&str>) -> PortResult<ShardPart> {
        copies::export(&*self.background().await?, shard, after).await
    }

    async fn changes(&self, shard: ShardId) -> PortResult<ChangedItems> {
        copies::changes(&*self.background().await?, shard).await
    }

    async fn forget_changes(&self, changes: &ChangedItems) -> PortResult<()> {
        copies::forget_changes(&*self.background().await?, changes).await
    }

    async fn begin_import(&self, shard: ShardId, fence: u64, epoch: Epoch) -> PortResult<()> {
        copies::begin_import(&*self.background().await?, shard, fence, epoch).await
    }

    async fn import(&self, shard: ShardId, fence: u64, items: &[ShardItem]) -> PortResult<()> {
        copies::import(&*self.background().await?, shard, fence, items).await
    }

    async fn adopt(&self, shard: ShardId, fence: u64, counts: &LinkCounts) -> PortResult<()> {
        copies::adopt(&*self.background().await?, shard, fence, counts).await
    }

    async fn retire(&self, shard: ShardId, fence: u64, epoch: Epoch) -> PortResult<()> {
        copies::retire(&*self.background().await?, shard, fence, epoch).await
    }

    async fn discount(&self, shard: ShardId, fence: u64, counts: &LinkCounts) -> PortResult<()> {
        copies::discount(&*self.background().await?, shard, fence, counts).await
    }

    async fn drop_copy(
        &self,
        shard: ShardId,
        fence: u64,
        after: Option<&str>,
    ) -> PortResult<Option<Box<str>>> {
        copies::drop_copy(&*self.background().await?, shard, fence, after).await
    }
}
