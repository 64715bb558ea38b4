//! Single-flight loads: one load per key for all requests that wait for it, and the rule that a slow load never puts back
//! what has changed since (D4).
//!
//! The caches are filled only by a load that is still the registered one of its key, and both that check and the filling
//! happen under the lock that [`SingleFlight::invalidate`] takes. So a change comes either before the load completes,
//! which then fills nothing, or after it, and then removes what was filled.
//!
//! A request that began so long after a load that the load's answer would be too old for it does not follow: it
//! leads a newer load. The older one still answers its own followers, unless a change invalidates both, but fills nothing.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use curt_core::{LinkId, UnixMillis};
use tokio::sync::watch;

const SHARDS: usize = 64;

type Shard<T> = HashMap<LinkId, KeyLoads<T>>;

pub(super) struct SingleFlight<T> {
    shards: Box<[Mutex<Shard<T>>]>,
    hasher: RandomState,
    next_number: AtomicU64,
}

/// The loads of one key that are under way; never without any.
struct KeyLoads<T> {
    /// The one that new requests may follow and that fills the caches.
    newest: Option<Load<T>>,
    /// Numbers of those that were too old for a later request.
    superseded: Vec<u64>,
}

struct Load<T> {
    number: u64,
    began: UnixMillis,
    outcome: watch::Receiver<Option<LoadOutcome<T>>>,
}

/// How a load ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LoadOutcome<T> {
    Loaded(T),
    /// The link changed meanwhile: what was loaded may be old.
    Invalidated,
}

/// A request's part in the load of a key.
pub(super) enum Join<'a, T: Clone> {
    /// No load is under way that it may follow: it loads.
    Leader(Leader<'a, T>),
    Follower(Follower<T>),
}

impl<T: Clone> SingleFlight<T> {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            next_number: AtomicU64::new(0),
        }
    }

    /// Follows the load of the key if there is one and `may_follow` accepts the time at which it began. Otherwise the
    /// caller leads one that began at `began`, which must have been read before this call.
    pub(super) fn join(
        &self,
        id: &LinkId,
        began: UnixMillis,
        may_follow: impl FnOnce(UnixMillis) -> bool,
    ) -> Join<'_, T> {
        let mut shard = self.lock(id);
        let loads = shard.entry(id.clone()).or_insert_with(KeyLoads::new);
        if let Some(load) = &loads.newest {
            if may_follow(load.began) {
                return Join::Follower(Follower(load.outcome.clone()));
            }
            loads.superseded.push(load.number);
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let (sender, outcome) = watch::channel(None);
        loads.newest = Some(Load {
            number,
            began,
            outcome,
        });
        Join::Leader(Leader {
            loads: self,
            id: id.clone(),
            number,
            sender,
        })
    }

    /// Runs `drop_copies` with the key's loads taken out of the register, so that they can fill nothing any more.
    pub(super) fn invalidate(&self, id: &LinkId, drop_copies: impl FnOnce()) {
        let mut shard = self.lock(id);
        shard.remove(id);
        drop_copies();
    }

    /// Takes every load out of the register: those that began before this call can fill nothing after it.
    pub(super) fn invalidate_all(&self) {
        for shard in &self.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Runs `change` while no load of the key can complete and none can be invalidated.
    pub(super) fn with_lock(&self, id: &LinkId, change: impl FnOnce()) {
        let _shard = self.lock(id);
        change();
    }

    fn lock(&self, id: &LinkId) -> MutexGuard<'_, Shard<T>> {
        let shard = usize::try_from(self.hasher.hash_one(id) % SHARDS as u64).unwrap_or(0);
        self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> KeyLoads<T> {
    fn new() -> Self {
        Self {
            newest: None,
            superseded: Vec::new(),
        }
    }

    /// Takes the load out, and says what it was.
    fn remove(&mut self, number: u64) -> Option<Registered> {
        if self.newest.as_ref().is_some_and(|l| l.number == number) {
            self.newest = None;
            return Some(Registered::Newest);
        }
        let at = self.superseded.iter().position(|other| *other == number)?;
        self.superseded.swap_remove(at);
        Some(Registered::Superseded)
    }

    fn is_empty(&self) -> bool {
        self.newest.is_none() && self.superseded.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registered {
    Newest,
    Superseded,
}

/// The right and the duty to load one key. Dropped before it completes (the caller was cancelled), it frees the key and
/// its followers try for themselves.
pub(super) struct Leader<'a, T: Clone> {
    loads: &'a SingleFlight<T>,
    id: LinkId,
    number: u64,
    sender: watch::Sender<Option<LoadOutcome<T>>>,
}

impl<T: Clone> Leader<'_, T> {
    /// Ends the load: `fill` runs only if nothing was invalidated meanwhile and no newer load has begun.
    pub(super) fn complete(self, result: T, fill: impl FnOnce()) -> LoadOutcome<T> {
        let mut shard = self.loads.lock(&self.id);
        let outcome = match remove(&mut shard, &self.id, self.number) {
            Some(Registered::Newest) => {
                fill();
                LoadOutcome::Loaded(result)
            }
            Some(Registered::Superseded) => LoadOutcome::Loaded(result),
            None => LoadOutcome::Invalidated,
        };
        drop(shard);
        self.sender.send_replace(Some(outcome.clone()));
        outcome
    }
}

impl<T: Clone> Drop for Leader<'_, T> {
    fn drop(&mut self) {
        let mut shard = self.loads.lock(&self.id);
        remove(&mut shard, &self.id, self.number);
    }
}

fn remove<T>(shard: &mut Shard<T>, id: &LinkId, number: u64) -> Option<Registered> {
    let loads = shard.get_mut(id)?;
    let removed = loads.remove(number);
    if loads.is_empty() {
        shard.remove(id);
    }
    removed
}

pub(super) struct Follower<T>(watch::Receiver<Option<LoadOutcome<T>>>);

impl<T: Clone> Follower<T> {
    /// Waits for the outcome. A leader that vanished counts as invalidated.
    pub(super) async fn wait(mut self) -> LoadOutcome<T> {
        match self.0.wait_for(Option::is_some).await {
            Ok(outcome) => (*outcome).clone().unwrap_or(LoadOutcome::Invalidated),
            Err(_) => LoadOutcome::Invalidated,
        }
    }
}
