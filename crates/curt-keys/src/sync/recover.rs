use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use curt_core::clock::UnixMillis;
use curt_core::names::event;
use curt_core::placement::Modulo;
use curt_core::ports::{KeyLedger, Leases, LinkStore, OpenBatch};
use curt_core::{DomainId, Key, LinkId, PortResult};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::batch::{BatchName, BatchOwner, Destination};
use crate::metrics::KeyMetrics;
use crate::pace::report;
use crate::ports::KeyPorts;

/// How often batches of dead processes are looked for where there is no pool: a crash of this process alone leaves
/// some, and they are found at the next start. With a pool it is once in the life of a lease.
const SWEEP_EVERY: Duration = Duration::from_secs(300);
/// Backoff of a sweep that failed.
const SWEEP_RETRY: Duration = Duration::from_secs(5);
/// Batches that are read at a time; each brings up to a thousand keys.
const BATCHES_READ: usize = 16;
/// Look-ups under way at a time.
const LOOKUPS: usize = 32;
/// Keys that may wait to be recycled. Past this many the oldest are forgotten: they leak, and the counts show it.
const WAITING_MAX: usize = 100_000;

/// Brings keys back to their ledgers: those of processes that died, and those of purged links.
///
/// A batch is open in its ledger while its keys are only in memory. Its name says who took it, and a living owner holds
/// a lease of that name; a batch without a living owner is settled here. If its keys went to a pool, the push is
/// repeated under the same name, which tells or makes it true that they arrived. Otherwise every key without a link
/// goes back to the ledger.
pub(crate) struct Recovery {
    ports: KeyPorts,
    homes: Modulo,
    metrics: KeyMetrics,
    sweep_every: Duration,
    state: Mutex<RecoveryState>,
}

struct RecoveryState {
    sweep_at: Instant,
    /// Keys that no ledger has taken back yet: its store was away, or the batch that the key once came with is still
    /// open, because other keys of it are in a buffer. A ledger never frees a key of an open batch.
    waiting: Vec<Key>,
}

impl Recovery {
    pub(crate) fn new(
        ports: &KeyPorts,
        homes: Modulo,
        metrics: KeyMetrics,
        lease_ttl: Duration,
    ) -> Self {
        Self {
            sweep_every: match ports.pools.is_empty() {
                true => SWEEP_EVERY,
                false => lease_ttl,
            },
            ports: ports.clone(),
            homes,
            metrics,
            state: Mutex::new(RecoveryState {
                sweep_at: Instant::now(),
                waiting: Vec::new(),
            }),
        }
    }

    /// Settles the batches of dead processes from time to time, and recycles what could not be recycled before.
    /// `owner` is alive.
    pub(crate) async fn sweep(&self, owner: BatchOwner) {
        let mut state = self.state.lock().await;
        if Instant::now() < state.sweep_at {
            return;
        }
        let pause = match self.settle(owner, None).await {
            Ok(keys) => {
                self.metrics.recovered.inc_by(keys);
                self.sweep_every
            }
            Err(error) => {
                report(&error);
                SWEEP_RETRY
            }
        };
        state.sweep_at = Instant::now() + pause;
        let waiting = std::mem::take(&mut state.waiting);
        // A key that waited may have come back another way and be in use again.
        match self.without_link(&waiting, None).await {
            Ok(unused) => _ = self.put_back(&mut state, unused).await,
            Err(error) => {
                report(&error);
                state.waiting = waiting;
            }
        }
    }

    /// Settles all batches of `owner`, which takes no more. `unused` are keys that are known to be on no link.
    pub(crate) async fn settle_own(&self, owner: BatchOwner, unused: Vec<Key>) -> PortResult<()> {
        let unused = unused.into_iter().collect();
        self.settle(owner, Some(&unused)).await?;
        Ok(())
    }

    /// Settles the open batches of `owner` in all ledgers, given its unused keys; without them those of dead owners.
    /// Returns how many keys went back into the supply.
    async fn settle(&self, owner: BatchOwner, unused: Option<&HashSet<Key>>) -> PortResult<u64> {
        let mut living = Living::new(&self.ports.leases, owner);
        let mut recovered = 0;
        for ledger in &self.ports.ledgers {
            // Batches that are not to be settled stay in front of the list, so that each page starts behind them.
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
                    let name = batch.id.0.parse().ok();
                    let is_due = match unused {
                        None => !living.owns(name).await,
                        Some(_) => name.is_some_and(|name| name.owner == owner),
                    };
                    match is_due {
                        true => recovered += self.settle_one(ledger, batch, name, unused).await?,
                        false => left_alone += 1,
                    }
                }
            }
        }
        if recovered > 0 {
            let event = match unused {
                None => event::KEYS_RECOVERED,
                Some(_) => event::KEYS_RETURNED,
            };
            tracing::info!(event, keys = recovered, "unused keys put back");
        }
        Ok(recovered)
    }

    async fn settle_one(
        &self,
        ledger: &Arc<dyn KeyLedger>,
        batch: &OpenBatch,
        name: Option<BatchName>,
        unused: Option<&HashSet<Key>>,
    ) -> PortResult<u64> {
        if let Some(Destination::Pool(shard)) = name.map(|name| name.to)
            && let Some(pool) = self.ports.pools.get(shard)
        {
            let pushed = pool.push(&batch.id, &batch.keys).await?;
            let rest = &batch.keys[pushed.min(batch.keys.len())..];
            ledger.give_back(&batch.id, rest).await?;
            return Ok(batch.keys.len() as u64);
        }
        let unused = self.without_link(&batch.keys, unused).await?;
        ledger.give_back(&batch.id, &unused).await
    }

    /// Returns those of `keys` that no link has. Those in `known` are not looked up.
    async fn without_link(
        &self,
        keys: &[Key],
        known: Option<&HashSet<Key>>,
    ) -> PortResult<Vec<Key>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let links: &dyn LinkStore = &*self.ports.links()?.store;
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

    /// Puts keys of purged links back, each into its home ledger, and returns how many went back at once. The others
    /// are tried again with later sweeps; if this process dies first, the recovery of its batches finds them.
    pub(crate) async fn recycle(&self, keys: Vec<Key>) -> u64 {
        let mut state = self.state.lock().await;
        self.put_back(&mut state, keys).await
    }

    async fn put_back(&self, state: &mut RecoveryState, keys: Vec<Key>) -> u64 {
        let mut by_home = vec![Vec::new(); self.ports.ledgers.len()];
        for key in keys {
            by_home[self.homes.node(key.as_bytes()).0 as usize].push(key);
        }
        let mut recycled = 0;
        for (ledger, keys) in self.ports.ledgers.iter().zip(by_home) {
            if keys.is_empty() {
                continue;
            }
            match recycle_into(&**ledger, &keys).await {
                Ok((back, held)) => {
                    recycled += back;
                    state.wait(held);
                }
                Err(error) => {
                    report(&error);
                    state.wait(keys);
                }
            }
        }
        self.metrics.recycled.inc_by(recycled);
        recycled
    }
}

impl RecoveryState {
    fn wait(&mut self, keys: Vec<Key>) {
        self.waiting.extend(keys);
        let overflow = self.waiting.len().saturating_sub(WAITING_MAX);
        self.waiting.drain(..overflow);
    }
}

/// Recycles the keys whose batches are closed. Returns how many went back, and the keys that did not.
async fn recycle_into(ledger: &dyn KeyLedger, keys: &[Key]) -> PortResult<(u64, Vec<Key>)> {
    let batches = ledger.open_batches(UnixMillis::MAX, usize::MAX).await?;
    let open: HashSet<&Key> = batches.iter().flat_map(|batch| &batch.keys).collect();
    let (held, closed): (Vec<Key>, Vec<Key>) =
        keys.iter().cloned().partition(|key| open.contains(key));
    let recycled = ledger.recycle(&closed).await?;
    Ok((recycled, held))
}

/// Remembers during one sweep which owners are alive.
struct Living<'a> {
    leases: &'a Arc<dyn Leases>,
    known: HashMap<BatchOwner, bool>,
}

impl<'a> Living<'a> {
    fn new(leases: &'a Arc<dyn Leases>, owner: BatchOwner) -> Self {
        Self {
            leases,
            known: HashMap::from([(owner, true)]),
        }
    }

    /// Whether the owner that a batch names is alive. A batch with a foreign name has none.
    async fn owns(&mut self, batch: Option<BatchName>) -> bool {
        let Some(owner) = batch.map(|name| name.owner) else {
            return false;
        };
        if let Some(&alive) = self.known.get(&owner) {
            return alive;
        }
        // While the lease service is away no owner counts as dead.
        let holder = self.leases.holder(&owner.lease().to_string()).await;
        let alive = holder.map_or(true, |holder| holder.is_some());
        self.known.insert(owner, alive);
        alive
    }
}
