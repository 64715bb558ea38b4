//! keysync: moves keys from the ledgers to the pool shards, a batch at a time.
//!
//! A batch is open in its ledger from the take on. A pool that outlives its processes takes the keys over: the batch is
//! closed as soon as the push is confirmed. A volatile pool does not: the batch stays open until its keys are used up,
//! so that after a crash the rest is found again ([`recover`]). Every step may be repeated after a failure under the
//! same batch name, and a lost lock costs an overfull pool at worst.

mod batch;
mod fullest;
mod recover;
mod recycle;
mod shard;

pub(crate) use fullest::FullestPool;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use curt_core::limits::KEY_BATCH_MAX;
use curt_core::names::event;
use curt_core::place::Modulo;
use curt_core::ports::KeyPool;
use curt_core::{ErrorKind, Key, PortResult};
use rand::Rng;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::batch::{BatchNames, Delivery, owner_lock};
use self::recover::Whose;
use self::recycle::Recycling;
use self::shard::Shard;
use crate::buffer::Buffer;
use crate::lease::Leases;
use crate::metrics::KeyMetrics;
use crate::pace::{NextPass, RefillPace, report};
use crate::settings::PoolSettings;
use crate::supply::KeyPorts;

/// How often batches of dead processes are looked for where the pool is volatile: a crash of this process alone leaves
/// some, and most are found at the next start. With a lasting pool it is once in the life of a lock.
const SWEEP_EVERY: Duration = Duration::from_secs(300);
/// How often a sweep that failed is tried again.
const SWEEP_RETRY: Duration = Duration::from_secs(5);

pub(crate) struct Keysync {
    ports: KeyPorts,
    homes: Modulo,
    settings: PoolSettings,
    metrics: KeyMetrics,
    buffer: Arc<Buffer>,
    /// Keys in the pools outlive this process.
    lasting: bool,
    state: Mutex<State>,
    /// Keys in our hands, readable while a pass is under way.
    moving: AtomicU64,
}

/// What a pass did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// Keys left a ledger, or none were left to take: keygen may have work.
    pub(crate) touched_ledgers: bool,
    pub(crate) next: NextPass,
}

struct State {
    leases: Leases,
    names: BatchNames,
    shards: Vec<Shard>,
    next_ledger: usize,
    sweep_at: Instant,
    recycling: Recycling,
    closed: bool,
}

/// What a pool shard is to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Care {
    None,
    Ours,
    /// Filled once, beyond the limit, because nobody else does.
    Borrowed,
}

impl State {
    /// Whether others know that we live. Without the lock that says so they would settle our batches behind our back;
    /// and when it was lost for a while they may have done so. Then we go on under a new name: a take that is repeated
    /// under the old one would bring new keys, and the pool would believe to have them already.
    async fn is_known_to_live(&mut self) -> bool {
        let lock = owner_lock(self.names.instance());
        let before = self.leases.fence(&lock);
        if !self.leases.hold(&lock).await {
            return false;
        }
        let is_still_ours = before.is_none_or(|fence| self.leases.fence(&lock) == Some(fence));
        if is_still_ours {
            return true;
        }
        self.leases.release(&lock).await;
        self.names = BatchNames::new(new_name());
        for shard in &mut self.shards {
            shard.unanswered.clear();
        }
        self.leases.hold(&owner_lock(self.names.instance())).await
    }
}

fn new_name() -> Box<str> {
    format!("{:016x}", rand::rng().next_u64()).into()
}

impl Keysync {
    pub(crate) fn new(
        ports: &KeyPorts,
        homes: Modulo,
        settings: PoolSettings,
        metrics: KeyMetrics,
        buffer: Arc<Buffer>,
        leases: Leases,
    ) -> Self {
        let shard = |pool| {
            let pace = RefillPace::new(settings.low, settings.high, ports.pools_last());
            Shard::new(pool, pace)
        };
        let state = State {
            leases,
            names: BatchNames::new(new_name()),
            shards: ports.pools.iter().cloned().map(shard).collect(),
            next_ledger: 0,
            sweep_at: Instant::now(),
            recycling: Recycling::default(),
            closed: false,
        };
        Self {
            lasting: ports.pools_last(),
            ports: ports.clone(),
            homes,
            settings,
            metrics,
            buffer,
            state: Mutex::new(state),
            moving: AtomicU64::new(0),
        }
    }

    /// One pass over all pool shards.
    pub(crate) async fn pass(&self, stop: &CancellationToken) -> Passed {
        let mut state = self.state.lock().await;
        let mut passed = Passed {
            touched_ledgers: false,
            next: NextPass::AtTick,
        };
        if state.closed || !state.is_known_to_live().await {
            return passed;
        }
        for shard in 0..self.ports.pools.len() {
            if stop.is_cancelled() {
                break;
            }
            let care = self.care(&mut state, shard).await;
            if care == Care::None {
                state.shards[shard]
                    .finish_closing(&self.ports.ledgers)
                    .await;
                continue;
            }
            match self.fill(&mut state, shard, care).await {
                Ok(touched) => passed.touched_ledgers |= touched,
                Err(error) => report(&error),
            }
            passed.next = passed.next.or(state.shards[shard].pace.next());
            let in_flight = self.settings.in_flight;
            if let Err(error) = state.shards[shard].retire(&self.buffer, in_flight).await {
                report(&error);
            }
            if !state.shards[shard].can_close_later() {
                state.shards[shard]
                    .finish_closing(&self.ports.ledgers)
                    .await;
                self.note_moving(&state);
            }
            if care == Care::Borrowed {
                state.leases.release(&pool_lock(shard)).await;
            }
        }
        // Last, because looking up the keys of a big crash takes a while and creates are waiting.
        self.sweep(&mut state).await;
        passed
    }

    async fn sweep(&self, state: &mut State) {
        if Instant::now() < state.sweep_at {
            return;
        }
        let instance: Box<str> = state.names.instance().into();
        let pause = match self.recover(&Whose::Dead, &instance).await {
            Ok(keys) => {
                self.metrics.recovered.inc_by(keys);
                if self.lasting {
                    state.leases.ttl()
                } else {
                    SWEEP_EVERY
                }
            }
            Err(error) => {
                report(&error);
                SWEEP_RETRY
            }
        };
        state.sweep_at = Instant::now() + pause;
        if let Err(error) = self.recycle_waiting(&mut state.recycling).await {
            report(&error);
        }
    }

    /// Whether this process looks after the pool shard. A volatile pool is its own, and with no limit set nobody needs
    /// to ask: two keysyncs on one shard overfill it at worst, and the pool's cap bounds that. The limit gives way for a
    /// shard that runs low and that nobody has wanted for the life of a lock, until it is filled: so one keysync that is
    /// left alone serves them all, and does not keep them from those that come after it.
    async fn care(&self, state: &mut State, shard: usize) -> Care {
        if !self.asks_for_shards() {
            return Care::Ours;
        }
        let lock = pool_lock(shard);
        let others = (0..self.ports.pools.len())
            .filter(|&other| other != shard && state.leases.holds(&pool_lock(other)))
            .count();
        let limit = match self.settings.shards_max {
            0 => usize::MAX,
            most => most,
        };
        let is_beyond = others >= limit && !state.leases.holds(&lock);
        if is_beyond && !self.is_orphaned_and_low(state, shard).await {
            return Care::None;
        }
        match (state.leases.hold(&lock).await, is_beyond) {
            (false, _) => Care::None,
            (true, false) => Care::Ours,
            (true, true) => Care::Borrowed,
        }
    }

    fn asks_for_shards(&self) -> bool {
        self.lasting || self.settings.shards_max > 0
    }

    async fn is_orphaned_and_low(&self, state: &mut State, shard: usize) -> bool {
        let is_free = matches!(self.ports.locks.holder(&pool_lock(shard)).await, Ok(None));
        let free_since = &mut state.shards[shard].free_since;
        *free_since = is_free.then(|| free_since.unwrap_or_else(Instant::now));
        let ttl = state.leases.ttl();
        free_since.is_some_and(|since| since.elapsed() >= ttl)
            && matches!(self.ports.pools[shard].depth().await, Ok(depth) if depth < self.settings.low)
    }

    /// Whether a pass that takes long is still ours to finish.
    async fn still_owns(&self, state: &mut State, shard: usize) -> bool {
        state.is_known_to_live().await
            && (!self.asks_for_shards() || state.leases.hold(&pool_lock(shard)).await)
    }

    /// Brings one shard from below its low mark to its high one, or nearer to it. Returns whether it asked the ledgers
    /// for keys.
    async fn fill(&self, state: &mut State, shard: usize, care: Care) -> PortResult<bool> {
        let pushed = state.shards[shard].push().await;
        self.note_moving(state);
        if !pushed? {
            return Ok(false);
        }
        let depth = self.ports.pools[shard].depth().await?;
        let room = match care {
            // We will not come back to it.
            Care::Borrowed => self.settings.high.saturating_sub(depth),
            _ => state.shards[shard].pace.room(depth),
        };
        let mut moved = 0;
        while moved < room && self.still_owns(state, shard).await {
            let missing = usize::try_from(room - moved).unwrap_or(usize::MAX);
            let limit = missing.min(self.settings.batch);
            let Some(delivery) = self.take(state, shard, limit).await else {
                break;
            };
            let keys = delivery.keys.len() as u64;
            state.shards[shard].unsent = Some(delivery);
            self.note_moving(state);
            let pushed = state.shards[shard].push().await;
            self.note_moving(state);
            let all = pushed?;
            self.buffer.supplied();
            if !all {
                break;
            }
            moved += keys;
        }
        if moved > 0 {
            tracing::debug!(event = event::KEYS_MOVED, shard, keys = moved, "keys moved");
        }
        Ok(room > 0)
    }

    /// Takes a batch from the next ledger that has one. A ledger that fails is asked again in the next pass, under
    /// the same batch name: it may have taken the keys without being able to say so.
    async fn take(&self, state: &mut State, shard: usize, limit: usize) -> Option<Delivery> {
        let now = self.ports.clock.now();
        for step in 0..self.ports.ledgers.len() {
            let ledger = (state.next_ledger + step) % self.ports.ledgers.len();
            let batch = match state.shards[shard].unanswered.remove(&ledger) {
                Some(batch) => batch,
                None => state.names.name(shard),
            };
            match self.ports.ledgers[ledger].take(&batch, limit, now).await {
                Ok(keys) if keys.is_empty() => {}
                Ok(keys) => {
                    state.next_ledger = ledger + 1;
                    return Some(Delivery {
                        ledger,
                        batch,
                        keys,
                        part: 0,
                    });
                }
                Err(error) => {
                    report(&error);
                    state.shards[shard].unanswered.insert(ledger, batch);
                }
            }
        }
        None
    }

    /// Keys that are neither in a ledger nor in a pool, but in our hands between the two.
    pub(crate) fn moving(&self) -> u64 {
        self.moving.load(Ordering::Relaxed)
    }

    fn note_moving(&self, state: &State) {
        let moving = state.shards.iter().map(Shard::moving).sum();
        self.moving.store(moving, Ordering::Relaxed);
    }

    /// Gives back what this process holds: volatile pools and the ring to the ledgers, and with pools that outlive us
    /// the ring to the pools. The buffer must be closed already.
    pub(crate) async fn close(&self) -> PortResult<()> {
        let mut state = self.state.lock().await;
        if std::mem::replace(&mut state.closed, true) {
            return Ok(());
        }
        let mut held = self.buffer.drain();
        for pool in &self.ports.pools {
            if pool.survives_restart() {
                held = self.return_to_pool(&mut state, pool, held).await;
            } else {
                held.extend(drain(pool).await);
            }
        }
        if self.ports.pools.iter().all(|pool| pool.survives_restart()) && !held.is_empty() {
            let keys = held.len();
            tracing::warn!(
                event = event::KEYS_RETURNED,
                keys,
                "no pool had room for unused keys"
            );
        }
        for shard in &mut state.shards {
            shard.abandon();
        }
        self.note_moving(&state);
        let unused: HashSet<Key> = held.into_iter().collect();
        let returned = match state.names.are_used() {
            true => {
                let instance: Box<str> = state.names.instance().into();
                self.recover(&Whose::Ours { unused: &unused }, &instance)
                    .await
            }
            // A process that takes nothing from the ledgers does not need them to end.
            false => Ok(0),
        };
        state.leases.release_all().await;
        returned.map(|_| ())
    }

    /// Pushes keys that came from pools back into one. Returns those that it does not have: that did not fit, or all if
    /// it cannot be reached. After any other error it is unknown where they are, and a lost key is better than one in
    /// two places.
    async fn return_to_pool(
        &self,
        state: &mut State,
        pool: &Arc<dyn KeyPool>,
        mut keys: Vec<Key>,
    ) -> Vec<Key> {
        if keys.is_empty() {
            return keys;
        }
        match pool.push(&state.names.name_return(), &keys).await {
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
}

/// The lock of whoever looks after a pool shard.
pub(crate) fn pool_lock(shard: usize) -> String {
    format!("shard-locks/keys-pool-{shard}")
}

/// Empties a volatile pool. Keys that it does not give are found by their batches.
async fn drain(pool: &Arc<dyn KeyPool>) -> Vec<Key> {
    let mut drained = Vec::new();
    loop {
        match pool.pop(KEY_BATCH_MAX).await {
            Ok(keys) if keys.is_empty() => return drained,
            Ok(keys) => drained.extend(keys),
            Err(error) => {
                report(&error);
                return drained;
            }
        }
    }
}
