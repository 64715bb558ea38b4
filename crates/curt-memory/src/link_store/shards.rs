use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use curt_core::ports::{
    ChangedItems, LinkCounts, LinkShards, SeededDatabase, ShardItem, ShardPart,
};
use curt_core::{Epoch, LinkId, PortResult, ShardId, ShardMap};

use super::MemoryLinkStore;
use crate::locked;

/// One for every store of the process, and with it of the world.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

/// The lowest epoch at which each shard takes writes; any where there is none.
#[derive(Debug, Default)]
pub(super) struct Seals(BTreeMap<ShardId, Epoch>);

impl Seals {
    /// Whether a write to this link that was routed by `map` came to the shard's owner.
    pub(super) fn admit(&self, map: &ShardMap, id: &LinkId) -> bool {
        self.admit_shard(map, ShardId::of(id))
    }

    pub(super) fn admit_shard(&self, map: &ShardMap, shard: ShardId) -> bool {
        let lowest = self.0.get(&shard);
        lowest.is_none_or(|lowest| map.epoch(shard) >= *lowest)
    }

    pub(super) fn put(&mut self, shard: ShardId, epoch: Epoch) {
        let lowest = self.0.entry(shard).or_default();
        *lowest = epoch.max(*lowest);
    }
}

#[async_trait]
impl LinkShards for MemoryLinkStore {
    fn routed_by(&self, map: Arc<ShardMap>) -> Arc<dyn SeededDatabase> {
        let tables = Arc::clone(&self.tables);
        Arc::new(Self { tables, map })
    }

    async fn identity(&self) -> PortResult<Box<str>> {
        let mut tables = locked(&self.tables);
        let next = || NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
        let identity = *tables.identity.get_or_insert_with(next);
        Ok(format!("memory-{identity}").into())
    }

    async fn seal(&self, shard: ShardId, epoch: Epoch) -> PortResult<()> {
        locked(&self.tables).seals.put(shard, epoch);
        Ok(())
    }

    async fn shard_counts(&self, shard: ShardId) -> PortResult<LinkCounts> {
        Ok(locked(&self.tables).rows.shard_counts(shard))
    }

    async fn track_changes(&self, shard: ShardId, fence: u64) -> PortResult<()> {
        locked(&self.tables).track(shard, fence)
    }

    async fn stop_tracking(&self, shard: ShardId, fence: u64) -> PortResult<()> {
        locked(&self.tables).stop_tracking(shard, fence)
    }

    async fn export(&self, shard: ShardId, after: Option<&str>) -> PortResult<ShardPart> {
        Ok(locked(&self.tables).export(shard, after))
    }

    async fn changes(&self, shard: ShardId) -> PortResult<ChangedItems> {
        Ok(locked(&self.tables).changes(shard))
    }

    async fn forget_changes(&self, changes: &ChangedItems) -> PortResult<()> {
        let remembered = &mut locked(&self.tables).rows.changes;
        for number in &changes.numbers {
            remembered.remove(number);
        }
        Ok(())
    }

    async fn begin_import(&self, shard: ShardId, fence: u64, epoch: Epoch) -> PortResult<()> {
        locked(&self.tables).begin_import(shard, fence, epoch)
    }

    async fn import(&self, shard: ShardId, fence: u64, items: &[ShardItem]) -> PortResult<()> {
        locked(&self.tables).import(shard, fence, items)
    }

    async fn adopt(&self, shard: ShardId, fence: u64, counts: &LinkCounts) -> PortResult<()> {
        locked(&self.tables).adopt(shard, fence, counts)
    }

    async fn retire(&self, shard: ShardId, fence: u64, epoch: Epoch) -> PortResult<()> {
        locked(&self.tables).retire(shard, fence, epoch)
    }

    async fn discount(&self, shard: ShardId, fence: u64, counts: &LinkCounts) -> PortResult<()> {
        locked(&self.tables).discount(shard, fence, counts)
    }

    async fn drop_copy(
        &self,
        shard: ShardId,
        fence: u64,
        after: Option<&str>,
    ) -> PortResult<Option<Box<str>>> {
        locked(&self.tables).drop_copy(shard, fence, after)
    }
}
