//! Single-flight loads: one loader per key, and the rule that a slow loader never puts back what has changed since (D4).
//!
//! Every load is a flight with a ticket. The caches are filled only by a flight that is still the registered one of
//! its key, and both that check and the filling happen under the lock that [`Flights::void`] takes. So a change
//! comes either before the landing, which then fills nothing, or after it, and then removes what was filled.
//!
//! A request that began so long after a load that the load's answer would be too old for it does not follow: it
//! leads a newer flight. The older one still answers its own followers, unless a change voids both, but fills nothing.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use curt_core::{LinkId, UnixMillis};
use tokio::sync::watch;

const SHARDS: usize = 64;

type Shard<T> = HashMap<LinkId, Loads<T>>;

pub(super) struct Flights<T> {
    shards: Box<[Mutex<Shard<T>>]>,
    hasher: RandomState,
    next_ticket: AtomicU64,
}

/// The loads of one key that are under way; never without any.
struct Loads<T> {
    /// The one that new requests may follow and that fills the caches.
    newest: Option<Flight<T>>,
    /// Tickets of those that were too old for a later request.
    superseded: Vec<u64>,
}

struct Flight<T> {
    ticket: u64,
    began: UnixMillis,
    landed: watch::Receiver<Option<Landed<T>>>,
}

/// How a flight ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Landed<T> {
    With(T),
    /// The link changed on the way: what was loaded may be old.
    Voided,
}

pub(super) enum Boarding<'a, T: Clone> {
    /// Nobody loads this key: the caller does.
    Lead(Lead<'a, T>),
    /// Somebody does: wait for the landing.
    Follow(Follow<T>),
}

impl<T: Clone> Flights<T> {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            next_ticket: AtomicU64::new(0),
        }
    }

    /// Follows the flight of the key if there is one and `may_follow` accepts the time at which it began. Otherwise
    /// the caller leads one that began at `began`, which must have been read before this call.
    pub(super) fn board(
        &self,
        id: &LinkId,
        began: UnixMillis,
        may_follow: impl FnOnce(UnixMillis) -> bool,
    ) -> Boarding<'_, T> {
        let mut shard = self.lock(id);
        let loads = shard.entry(id.clone()).or_insert_with(Loads::new);
        if let Some(flight) = &loads.newest {
            if may_follow(flight.began) {
                return Boarding::Follow(Follow(flight.landed.clone()));
            }
            loads.superseded.push(flight.ticket);
        }
        let ticket = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let (announce, landed) = watch::channel(None);
        loads.newest = Some(Flight {
            ticket,
            began,
            landed,
        });
        Boarding::Lead(Lead {
            flights: self,
            id: id.clone(),
            ticket,
            announce,
        })
    }

    /// Runs `drop_copies` with the key's flights taken out of the register, so that they can fill nothing any more.
    pub(super) fn void(&self, id: &LinkId, drop_copies: impl FnOnce()) {
        let mut shard = self.lock(id);
        shard.remove(id);
        drop_copies();
    }

    /// Takes every flight out of the register: those that boarded before this call can fill nothing after it.
    pub(super) fn void_all(&self) {
        for shard in &self.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Runs `change` while no flight of the key can land and no change can be announced.
    pub(super) fn hold(&self, id: &LinkId, change: impl FnOnce()) {
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

impl<T> Loads<T> {
    fn new() -> Self {
        Self {
            newest: None,
            superseded: Vec::new(),
        }
    }

    /// Takes the load with that ticket out, and says what it was.
    fn remove(&mut self, ticket: u64) -> Option<Registered> {
        if self.newest.as_ref().is_some_and(|f| f.ticket == ticket) {
            self.newest = None;
            return Some(Registered::Newest);
        }
        let at = self.superseded.iter().position(|other| *other == ticket)?;
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

/// The right and the duty to load one key. Dropped without a landing (the caller was cancelled), it frees the key and
/// its followers try for themselves.
pub(super) struct Lead<'a, T: Clone> {
    flights: &'a Flights<T>,
    id: LinkId,
    ticket: u64,
    announce: watch::Sender<Option<Landed<T>>>,
}

impl<T: Clone> Lead<'_, T> {
    /// Ends the flight: `fill` runs only if nothing changed on the way and no newer flight has begun.
    pub(super) fn land(self, result: T, fill: impl FnOnce()) -> Landed<T> {
        let mut shard = self.flights.lock(&self.id);
        let landed = match remove(&mut shard, &self.id, self.ticket) {
            Some(Registered::Newest) => {
                fill();
                Landed::With(result)
            }
            Some(Registered::Superseded) => Landed::With(result),
            None => Landed::Voided,
        };
        drop(shard);
        self.announce.send_replace(Some(landed.clone()));
        landed
    }
}

impl<T: Clone> Drop for Lead<'_, T> {
    fn drop(&mut self) {
        let mut shard = self.flights.lock(&self.id);
        remove(&mut shard, &self.id, self.ticket);
    }
}

fn remove<T>(shard: &mut Shard<T>, id: &LinkId, ticket: u64) -> Option<Registered> {
    let loads = shard.get_mut(id)?;
    let removed = loads.remove(ticket);
    if loads.is_empty() {
        shard.remove(id);
    }
    removed
}

pub(super) struct Follow<T>(watch::Receiver<Option<Landed<T>>>);

impl<T: Clone> Follow<T> {
    /// A leader that vanished counts as voided.
    pub(super) async fn landed(mut self) -> Landed<T> {
        match self.0.wait_for(Option::is_some).await {
            Ok(landed) => (*landed).clone().unwrap_or(Landed::Voided),
            Err(_) => Landed::Voided,
        }
    }
}
