use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::ports::{BatchId, KeyLedger, LedgerCounts, OpenBatch};
use curt_core::{Key, PortResult, UnixMillis};

use super::locked;

/// The form that forgets a key once its batch is closed. Free keys leave in the order in which they came.
#[derive(Debug, Default)]
pub struct MemoryKeyLedger {
    shard: Mutex<Shard>,
}

#[derive(Debug, Default)]
struct Shard {
    free: VecDeque<Key>,
    /// Free keys and those in open batches.
    known: HashSet<Key>,
    batches: BTreeMap<BatchId, Taken>,
    counts: LedgerCounts,
    /// The highest fencing token of an owner that inserted.
    fencing_token: u64,
}

#[derive(Debug)]
struct Taken {
    at: UnixMillis,
    keys: Vec<Key>,
}

impl MemoryKeyLedger {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Shard {
    /// Adds the keys that are not known as free and returns how many those were.
    fn add(&mut self, keys: &[Key]) -> u64 {
        let before = self.free.len();
        for key in keys {
            if self.known.insert(key.clone()) {
                self.free.push_back(key.clone());
            }
        }
        (self.free.len() - before) as u64
    }

    /// Takes a batch off the books. Its keys are neither free nor open nor known afterwards.
    fn close(&mut self, batch: &BatchId) -> Vec<Key> {
        let Some(taken) = self.batches.remove(batch) else {
            return Vec::new();
        };
        for key in &taken.keys {
            self.known.remove(key);
        }
        self.counts.open -= taken.keys.len() as u64;
        taken.keys
    }
}

#[async_trait]
impl KeyLedger for MemoryKeyLedger {
    async fn insert(&self, keys: &[Key]) -> PortResult<u64> {
        let mut shard = locked(&self.shard);
        let added = shard.add(keys);
        shard.counts.minted += added;
        Ok(added)
    }

    async fn insert_fenced(&self, fencing_token: u64, keys: &[Key]) -> PortResult<Option<u64>> {
        {
            let mut shard = locked(&self.shard);
            if fencing_token < shard.fencing_token {
                return Ok(None);
            }
            shard.fencing_token = fencing_token;
        }
        self.insert(keys).await.map(Some)
    }

    async fn take(&self, batch: &BatchId, limit: usize, now: UnixMillis) -> PortResult<Vec<Key>> {
        let mut shard = locked(&self.shard);
        if let Some(taken) = shard.batches.get(batch) {
            return Ok(taken.keys.clone());
        }
        let count = limit.min(shard.free.len());
        let keys: Vec<Key> = shard.free.drain(..count).collect();
        debug_assert!(keys.len() <= limit, "K-3");
        if !keys.is_empty() {
            shard.counts.open += keys.len() as u64;
            let taken = Taken {
                at: now,
                keys: keys.clone(),
            };
            shard.batches.insert(batch.clone(), taken);
        }
        Ok(keys)
    }

    async fn close(&self, batches: &[BatchId]) -> PortResult<()> {
        let mut shard = locked(&self.shard);
        for batch in batches {
            shard.close(batch);
        }
        Ok(())
    }

    async fn give_back(&self, batch: &BatchId, unused: &[Key]) -> PortResult<u64> {
        let mut shard = locked(&self.shard);
        let keys = shard.close(batch);
        let unused: HashSet<&Key> = unused.iter().collect();
        let returned: Vec<Key> = keys
            .into_iter()
            .filter(|key| unused.contains(key))
            .collect();
        Ok(shard.add(&returned))
    }

    async fn open_batches(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<OpenBatch>> {
        let shard = locked(&self.shard);
        let mut open: Vec<(&BatchId, &Taken)> = shard
            .batches
            .iter()
            .filter(|(_, taken)| taken.at <= before)
            .collect();
        open.sort_by_key(|(_, taken)| taken.at);
        let batch = |(id, taken): (&BatchId, &Taken)| OpenBatch {
            id: id.clone(),
            taken_at: taken.at,
            keys: taken.keys.clone(),
        };
        Ok(open.into_iter().take(limit).map(batch).collect())
    }

    async fn recycle(&self, keys: &[Key]) -> PortResult<u64> {
        let mut shard = locked(&self.shard);
        let returned = shard.add(keys);
        shard.counts.recycled += returned;
        Ok(returned)
    }

    async fn counts(&self) -> PortResult<LedgerCounts> {
        let shard = locked(&self.shard);
        Ok(LedgerCounts {
            free: shard.free.len() as u64,
            ..shard.counts
        })
    }
}
