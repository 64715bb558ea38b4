//! Keys of purged links on their way back into the ledgers.

use std::collections::HashSet;

use curt_core::clock::UnixMillis;
use curt_core::ports::OpenBatch;
use curt_core::{Key, PortResult};

use super::Keysync;
use super::recover::without_link;
use crate::pace::report;

/// Keys that may wait. Past this many the oldest are forgotten: they leak, and the accounts show it.
const WAITING_MAX: usize = 100_000;

/// Keys that no ledger has taken back yet: its store was away, or the batch that the key once came with is still open,
/// because other keys of it wait in a volatile pool. A ledger never frees a key of an open batch.
#[derive(Default)]
pub(super) struct Recycling {
    waiting: Vec<Key>,
}

impl Keysync {
    /// Puts released keys back, each into its home ledger, and returns how many went back at once. The others are
    /// tried again with later sweeps; if this process dies first, the recovery of its batches finds them.
    pub(crate) async fn recycle(&self, keys: impl Iterator<Item = Key>) -> u64 {
        let mut state = self.state.lock().await;
        self.put_back(&mut state.recycling, keys.collect()).await
    }

    pub(super) async fn recycle_waiting(&self, recycling: &mut Recycling) -> PortResult<u64> {
        let waiting = std::mem::take(&mut recycling.waiting);
        if waiting.is_empty() {
            return Ok(0);
        }
        // A key that waited may have come back another way and be in use again.
        match self.unused_of(&waiting).await {
            Ok(unused) => Ok(self.put_back(recycling, unused).await),
            Err(error) => {
                recycling.waiting = waiting;
                Err(error)
            }
        }
    }

    async fn unused_of(&self, keys: &[Key]) -> PortResult<Vec<Key>> {
        without_link(&**self.ports.links()?, keys, None).await
    }

    async fn put_back(&self, recycling: &mut Recycling, keys: Vec<Key>) -> u64 {
        let mut by_home = vec![Vec::new(); self.ports.ledgers.len()];
        for key in keys {
            by_home[self.homes.node(key.as_bytes()).0 as usize].push(key);
        }
        let mut recycled = 0;
        for (shard, keys) in by_home.into_iter().enumerate() {
            if keys.is_empty() {
                continue;
            }
            match self.put_back_into(shard, recycling, &keys).await {
                Ok(back) => recycled += back,
                Err(error) => {
                    report(&error);
                    recycling.wait(keys);
                }
            }
        }
        recycled
    }

    async fn put_back_into(
        &self,
        shard: usize,
        recycling: &mut Recycling,
        keys: &[Key],
    ) -> PortResult<u64> {
        let ledger = &self.ports.ledgers[shard];
        let batches = ledger.open_batches(UnixMillis::MAX, usize::MAX).await?;
        let open: HashSet<&Key> = batches.iter().flat_map(|b: &OpenBatch| &b.keys).collect();
        let (held, closed): (Vec<Key>, Vec<Key>) =
            keys.iter().cloned().partition(|key| open.contains(key));
        let recycled = ledger.recycle(&closed).await?;
        self.metrics.recycled.inc_by(recycled);
        recycling.wait(held);
        Ok(recycled)
    }
}

impl Recycling {
    fn wait(&mut self, keys: Vec<Key>) {
        self.waiting.extend(keys);
        let overflow = self.waiting.len().saturating_sub(WAITING_MAX);
        self.waiting.drain(..overflow);
    }
}
