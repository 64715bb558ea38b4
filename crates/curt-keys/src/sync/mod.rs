//! From the ledgers to where keys are handed out, a batch at a time.
//!
//! A batch is open in its ledger from the take on. Without a pool [`LedgerFeed`] brings it to the buffer of this
//! process, and it stays open until its keys are used. With pools [`Keysync`] moves it to a pool shard, and it is
//! closed as soon as the push is confirmed, because pools outlive processes. [`Recovery`] finds the batches that a
//! crash left open. Every step may be repeated after a failure under the same batch name, and a lost lease costs an
//! overfull pool at worst.

mod batch;
mod feed;
mod fullest;
mod recover;
mod shard;

pub(crate) use self::batch::BatchOwner;
pub(crate) use self::feed::LedgerFeed;
pub(crate) use self::fullest::FullestPool;
pub(crate) use self::recover::Recovery;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use curt_core::names::event;
use curt_core::{ErrorKind, Key, PortResult};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::batch::{BatchTaker, Destination};
use self::shard::PoolShard;
use crate::lease::{HeldLeases, LeaseName};
use crate::pace::{NextPass, Nudges, RefillPace, report};
use crate::ports::KeyPorts;
use crate::settings::PoolSettings;

/// Moves keys from the ledgers to the pool shards.
pub(crate) struct Keysync {
    ports: KeyPorts,
    settings: PoolSettings,
    nudges: Arc<Nudges>,
    state: Mutex<SyncState>,
    /// Keys that we hold between a ledger and a pool, readable while a pass is under way.
    in_transit: AtomicU64,
}

struct SyncState {
    taker: BatchTaker,
    shards: Vec<PoolShard>,
    is_closed: bool,
}

/// What a pool shard is to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShardLease {
    None,
    Ours,
    /// Filled once, beyond the limit, because no other process does.
    Borrowed,
}

impl Keysync {
    pub(crate) fn new(
        ports: &KeyPorts,
        settings: PoolSettings,
        nudges: Arc<Nudges>,
        leases: HeldLeases,
    ) -> Self {
        let shard = |pool| PoolShard::new(pool, RefillPace::new(settings.low, settings.high, true));
        let state = SyncState {
            taker: BatchTaker::new(ports, leases),
            shards: ports.pools.iter().cloned().map(shard).collect(),
            is_closed: false,
        };
        Self {
            ports: ports.clone(),
            settings,
            nudges,
            state: Mutex::new(state),
            in_transit: AtomicU64::new(0),
        }
    }

    /// Makes one pass over all pool shards. Returns when the next is due, and who we are if others know that we live.
    pub(crate) async fn pass(&self, stop: &CancellationToken) -> (NextPass, Option<BatchOwner>) {
        let mut state = self.state.lock().await;
        let mut next = NextPass::AtTick;
        if state.is_closed || !state.taker.keep_owner_lease().await {
            return (next, None);
        }
        for shard in 0..self.ports.pools.len() {
            if stop.is_cancelled() {
                break;
            }
            let lease = self.lease_shard(&mut state, shard).await;
            if lease == ShardLease::None {
                // What we moved while it was ours is still ours to close.
                state.shards[shard]
                    .finish_closing(&self.ports.ledgers)
                    .await;
                continue;
            }
            if let Err(error) = self.fill(&mut state, shard, lease).await {
                report(&error);
            }
            next = next.or(state.shards[shard].pace.next());
            if !state.shards[shard].can_close_later() {
                state.shards[shard]
                    .finish_closing(&self.ports.ledgers)
                    .await;
                self.note_keys_in_transit(&state);
            }
            if lease == ShardLease::Borrowed {
                state.taker.leases.release(&LeaseName::Pool(shard)).await;
            }
        }
        (next, Some(state.taker.owner()))
    }

    /// Acquires or keeps the lease of a pool shard, up to the limit of shards. The limit gives way for a shard that
    /// runs low and that no process has wanted for the life of a lease, until it is filled: so one keysync that is left
    /// alone serves them all, and does not keep them from those that come after it.
    async fn lease_shard(&self, state: &mut SyncState, shard: usize) -> ShardLease {
        let name = LeaseName::Pool(shard);
        let mut others = 0;
        for other in (0..self.ports.pools.len()).filter(|&other| other != shard) {
            others += usize::from(state.taker.leases.holds(&LeaseName::Pool(other)).await);
        }
        let limit = match self.settings.shards_max {
            0 => usize::MAX,
            most => most,
        };
        let is_beyond = others >= limit && !state.taker.leases.holds(&name).await;
        if is_beyond && !self.is_orphaned_and_low(state, shard).await {
            return ShardLease::None;
        }
        match (state.taker.leases.keep(&name).await, is_beyond) {
            (false, _) => ShardLease::None,
            (true, false) => ShardLease::Ours,
            (true, true) => ShardLease::Borrowed,
        }
    }

    async fn is_orphaned_and_low(&self, state: &mut SyncState, shard: usize) -> bool {
        let name = LeaseName::Pool(shard).to_string();
        let is_free = matches!(self.ports.leases.holder(&name).await, Ok(None));
        let free_since = &mut state.shards[shard].free_since;
        *free_since = is_free.then(|| free_since.unwrap_or_else(Instant::now));
        let ttl = state.taker.leases.ttl();
        free_since.is_some_and(|since| since.elapsed() >= ttl)
            && matches!(self.ports.pools[shard].depth().await, Ok(depth) if depth < self.settings.low)
    }

    /// Fills one shard from below its low watermark to its high one, or nearer to it.
    async fn fill(&self, state: &mut SyncState, shard: usize, lease: ShardLease) -> PortResult<()> {
        // What the last pass could not push comes first, or the depth would not tell how much is missing.
        let pushed = state.shards[shard].push().await;
        self.note_keys_in_transit(state);
        if !pushed? {
            return Ok(());
        }
        let depth = self.ports.pools[shard].depth().await?;
        let room = match lease {
            // We will not come back to it.
            ShardLease::Borrowed => self.settings.high.saturating_sub(depth),
            _ => state.shards[shard].pace.room(depth),
        };
        let mut moved = 0;
        while moved < room && self.still_owns(state, shard).await {
            let missing = usize::try_from(room - moved).unwrap_or(usize::MAX);
            let limit = missing.min(self.settings.batch);
            let Some(taken) = state.taker.take(Destination::Pool(shard), limit).await else {
                break;
            };
            let keys = taken.keys.len() as u64;
            state.shards[shard].unsent = Some(taken);
            self.note_keys_in_transit(state);
            let pushed = state.shards[shard].push().await;
            self.note_keys_in_transit(state);
            let is_all = pushed?;
            self.nudges.buffer.notify_one();
            if !is_all {
                break;
            }
            moved += keys;
        }
        if room > 0 {
            // Keys left a ledger, or none were left to take: either way keygen may have work.
            self.nudges.keygen.notify_one();
        }
        if moved > 0 {
            tracing::debug!(event = event::KEYS_MOVED, shard, keys = moved, "keys moved");
        }
        Ok(())
    }

    /// Whether a pass that takes long is still ours to finish.
    async fn still_owns(&self, state: &mut SyncState, shard: usize) -> bool {
        state.taker.keep_owner_lease().await
            && state.taker.leases.keep(&LeaseName::Pool(shard)).await
    }

    /// Keys that we hold between a ledger and a pool.
    pub(crate) fn keys_in_transit(&self) -> u64 {
        self.in_transit.load(Ordering::Relaxed)
    }

    fn note_keys_in_transit(&self, state: &SyncState) {
        let in_transit = state.shards.iter().map(PoolShard::keys_in_transit).sum();
        self.in_transit.store(in_transit, Ordering::Relaxed);
    }

    /// Moves no more, and returns the keys of the buffer to the first pool that can be reached. Returns the owner whose
    /// open batches are to be settled, if it may have some.
    pub(crate) async fn close(&self, mut unused: Vec<Key>) -> Option<BatchOwner> {
        let mut state = self.state.lock().await;
        if std::mem::replace(&mut state.is_closed, true) {
            return None;
        }
        // Asked before a return is named: a process that takes nothing from the ledgers does not need them to end.
        let has_batches = state.taker.has_named();
        unused = self.return_to_pools(&mut state, unused).await;
        if !unused.is_empty() {
            let keys = unused.len();
            tracing::warn!(event = event::KEYS_RETURNED, keys, "unused keys lost");
        }
        for shard in &mut state.shards {
            shard.forget_batches();
        }
        self.note_keys_in_transit(&state);
        has_batches.then(|| state.taker.owner())
    }

    /// Returns keys of the buffer to the first pool that can be reached, and those that none took.
    pub(crate) async fn take_back(&self, unused: Vec<Key>) -> Vec<Key> {
        let mut state = self.state.lock().await;
        match state.is_closed {
            true => unused,
            false => self.return_to_pools(&mut state, unused).await,
        }
    }

    async fn return_to_pools(&self, state: &mut SyncState, mut unused: Vec<Key>) -> Vec<Key> {
        for shard in 0..self.ports.pools.len() {
            if !unused.is_empty() {
                unused = self.return_to_pool(state, shard, unused).await;
            }
        }
        unused
    }

    /// Pushes keys that came from pools back into one. Returns those that it does not have: that did not fit, or all if
    /// it cannot be reached. After any other error it is unknown where they are, and a lost key is better than one in
    /// two places.
    async fn return_to_pool(
        &self,
        state: &mut SyncState,
        shard: usize,
        mut keys: Vec<Key>,
    ) -> Vec<Key> {
        // No ledger ever sees this batch: its name only makes a repeated push harmless.
        let batch = state.taker.name(Destination::Pool(shard));
        match self.ports.pools[shard].push(&batch, &keys).await {
            Ok(pushed) => keys.split_off(pushed.min(keys.len())),
            Err(error) => {
                report(&error);
                match error.kind {
                    ErrorKind::Unavailable => keys,
                    _ => Vec::new(),
                }
            }
        }
    }

    pub(crate) async fn release_leases(&self) {
        self.state.lock().await.taker.leases.release_all().await;
    }
}
