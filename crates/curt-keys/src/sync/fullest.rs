use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::KeyPool;
use curt_core::{ErrorKind, Key, PortError};
use futures_util::future::join_all;
use tokio::time::timeout;

use crate::pace::{Nudges, report};

/// A shard that takes longer to say how much it has is passed over, so that it does not hold up the others.
const DEPTH_TIMEOUT: Duration = Duration::from_millis(250);

/// Draws from the pool shard that has most keys. Depths are asked once per draw, never per create; a shard that
/// does not answer or turns out empty is passed over.
pub(crate) struct FullestPool {
    pub(crate) pools: Vec<Arc<dyn KeyPool>>,
    /// A pool below this many keys wakes keysync.
    pub(crate) low: u64,
    pub(crate) nudges: Arc<Nudges>,
}

impl FullestPool {
    pub(crate) async fn draw(&self, room: usize) -> Vec<Key> {
        let depths = self
            .pools
            .iter()
            .map(|pool| timeout(DEPTH_TIMEOUT, pool.depth()));
        let depths = join_all(depths).await;
        let mut shards = Vec::with_capacity(depths.len());
        for (shard, depth) in depths.into_iter().enumerate() {
            match depth {
                Ok(Ok(depth)) => shards.push((depth, shard)),
                Ok(Err(error)) => report(&error),
                Err(_) => report(&silent(shard)),
            }
        }
        shards.sort_unstable_by_key(|&(depth, shard)| (Reverse(depth), shard));
        let popped = self.pop_first_of(&shards, room).await;
        let taken = popped.len() as u64;
        let fullest = shards.first().map_or(0, |&(depth, _)| depth);
        let least = shards.last().map_or(0, |&(depth, _)| depth);
        if least.min(fullest.saturating_sub(taken)) < self.low {
            self.nudges.keysync.notify_one();
        }
        popped
    }

    async fn pop_first_of(&self, shards: &[(u64, usize)], room: usize) -> Vec<Key> {
        for &(depth, shard) in shards {
            if depth == 0 {
                break;
            }
            match self.pools[shard].pop(room).await {
                // Another process was quicker.
                Ok(keys) if keys.is_empty() => {}
                Ok(keys) => return keys,
                Err(error) => report(&error),
            }
        }
        Vec::new()
    }
}

fn silent(shard: usize) -> PortError {
    let detail =
        format!("pool shard {shard} did not answer within {DEPTH_TIMEOUT:?} and is passed over");
    PortError::new(ErrorKind::Timeout, "key pool", "count keys", detail)
}
