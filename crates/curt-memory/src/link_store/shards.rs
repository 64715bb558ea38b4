use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use curt_core::ports::{LinkCounts, LinkShards, SeededDatabase};
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
        let shard = ShardId::of(id);
        self.0
            .get(&shard)
            .is_none_or(|lowest| map.epoch(shard) >= *lowest)
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
        let seals = &mut locked(&self.tables).seals.0;
        let lowest = seals.entry(shard).or_default();
        *lowest = epoch.max(*lowest);
        Ok(())
    }

    async fn shard_counts(&self, shard: ShardId) -> PortResult<LinkCounts> {
        Ok(locked(&self.tables).rows.shard_counts(shard))
    }
}
