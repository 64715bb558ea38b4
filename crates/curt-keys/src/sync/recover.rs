//! Finding the keys of processes that died.
//!
//! A batch stays open in its ledger while its keys are in memory only. Its name says who took it, and a living owner
//! holds a lock of that name; a batch without a living owner is settled here. If its keys went to a pool that outlives
//! its processes, the push is repeated under the same name, which tells or makes it true that they arrived. Otherwise
//! every key without a link goes back to the ledger.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use curt_core::clock::UnixMillis;
use curt_core::names::event;
use curt_core::ports::{KeyLedger, LinkStore, Locks, OpenBatch};
use curt_core::{DomainId, Key, LinkId, PortResult};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::Keysync;
use super::batch::{owner, owner_lock, pool};

/// Batches that are read at a time; each brings up to a thousand keys.
const BATCHES_READ: usize = 16;
/// Look-ups under way at a time.
const LOOKUPS: usize = 32;

/// Which open batches to settle.
pub(super) enum Whose<'a> {
    /// Those whose owner is dead.
    Dead,
    /// Our own, at the end; `unused` are keys that are known to be unused without a look-up.
    Ours { unused: &'a HashSet<Key> },
}

impl Keysync {
    /// Settles open batches in all ledgers and returns how many keys went back into the supply.
    pub(super) async fn recover(&self, whose: &Whose<'_>, instance: &str) -> PortResult<u64> {
        let mut living = Living::new(&self.ports.locks, instance);
        let mut recovered = 0;
        for ledger in &self.ports.ledgers {
            let mut left_alone = 0;
            loop {
                let batches = ledger
                    .open_batches(UnixMillis::MAX, left_alone + BATCHES_READ)
                    .await?;
                let fresh = &batches[left_alone.min(batches.len())..];
                if fresh.is_empty() {
                    break;
                }
                for batch in fresh {
                    let ours = match whose {
                        Whose::Dead => !living.owns(batch).await,
                        Whose::Ours { .. } => *owner(&batch.id) == *instance,
                    };
                    if ours {
                        recovered += self.settle(ledger, batch, whose).await?;
                    } else {
                        left_alone += 1;
                    }
                }
            }
        }
        if recovered > 0 {
            let event = match whose {
                Whose::Dead => event::KEYS_RECOVERED,
                Whose::Ours { .. } => event::KEYS_RETURNED,
            };
            tracing::info!(event, keys = recovered, "unused keys put back");
        }
        Ok(recovered)
    }

    async fn settle(
        &self,
        ledger: &Arc<dyn KeyLedger>,
        batch: &OpenBatch,
        whose: &Whose<'_>,
    ) -> PortResult<u64> {
        let durable = pool(&batch.id)
            .and_then(|index| self.ports.pools.get(index))
            .filter(|pool| pool.survives_restart());
        if let Some(pool) = durable {
            let pushed = pool.push(&batch.id, &batch.keys).await?;
            let rest = &batch.keys[pushed.min(batch.keys.len())..];
            ledger.give_back(&batch.id, rest).await?;
            return Ok(batch.keys.len() as u64);
        }
        let known = match whose {
            Whose::Dead => None,
            Whose::Ours { unused } => Some(*unused),
        };
        let unused = without_link(&**self.ports.links()?, &batch.keys, known).await?;
        ledger.give_back(&batch.id, &unused).await
    }
}

/// Those of `keys` that no link has.
pub(super) async fn without_link(
    links: &dyn LinkStore,
    keys: &[Key],
    known: Option<&HashSet<Key>>,
) -> PortResult<Vec<Key>> {
    stream::iter(keys.iter().cloned())
        .map(|key| async move {
            if known.is_some_and(|known| known.contains(&key)) {
                return Ok(Some(key));
            }
            let id = LinkId::new(DomainId::DEFAULT, key);
            let found = links.get(&id).await?;
            Ok(found.is_none().then_some(id.key))
        })
        .buffered(LOOKUPS)
        .try_filter_map(|unused| async move { Ok(unused) })
        .try_collect()
        .await
}

/// Remembers during one sweep which owners are alive.
struct Living<'a> {
    locks: &'a Arc<dyn Locks>,
    known: HashMap<Box<str>, bool>,
}

impl<'a> Living<'a> {
    fn new(locks: &'a Arc<dyn Locks>, instance: &str) -> Self {
        Self {
            locks,
            known: HashMap::from([(instance.into(), true)]),
        }
    }

    async fn owns(&mut self, batch: &OpenBatch) -> bool {
        let owner = owner(&batch.id);
        if let Some(&alive) = self.known.get(owner) {
            return alive;
        }
        // While the lock service is away nobody counts as dead.
        let alive = self
            .locks
            .holder(&owner_lock(owner))
            .await
            .map_or(true, |holder| holder.is_some());
        self.known.insert(owner.into(), alive);
        alive
    }
}
