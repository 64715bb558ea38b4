//! One loader per key, and the rule that a slow loader never puts back what has changed since (D4).
//!
//! Every load is a flight with a ticket. The caches are filled only by a flight that is still the registered one of
//! its key, and both that check and the filling happen under the lock that [`Flights::void`] takes. So a change
//! comes either before the landing, which then fills nothing, or after it, and then removes what was filled.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use curt_core::LinkId;
use tokio::sync::watch;

const SHARDS: usize = 64;

type Shard<T> = HashMap<LinkId, Flight<T>>;

pub(super) struct Flights<T> {
    shards: Box<[Mutex<Shard<T>>]>,
    hasher: RandomState,
    next_ticket: AtomicU64,
}

struct Flight<T> {
    ticket: u64,
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

    pub(super) fn board(&self, id: &LinkId) -> Boarding<'_, T> {
        let mut shard = self.lock(id);
        if let Some(flight) = shard.get(id) {
            return Boarding::Follow(Follow(flight.landed.clone()));
        }
        let ticket = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let (announce, landed) = watch::channel(None);
        shard.insert(id.clone(), Flight { ticket, landed });
        Boarding::Lead(Lead {
            flights: self,
            id: id.clone(),
            ticket,
            announce,
        })
    }

    /// Runs `drop_copies` with the key's flight taken out of the register, so that it can fill nothing any more.
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

/// The right and the duty to load one key. Dropped without a landing (the caller was cancelled), it frees the key and
/// its followers try for themselves.
pub(super) struct Lead<'a, T: Clone> {
    flights: &'a Flights<T>,
    id: LinkId,
    ticket: u64,
    announce: watch::Sender<Option<Landed<T>>>,
}

impl<T: Clone> Lead<'_, T> {
    /// Ends the flight: `fill` runs only if nothing changed on the way.
    pub(super) fn land(self, result: T, fill: impl FnOnce()) -> Landed<T> {
        let mut shard = self.flights.lock(&self.id);
        let landed = if shard.get(&self.id).is_some_and(|f| f.ticket == self.ticket) {
            fill();
            shard.remove(&self.id);
            Landed::With(result)
        } else {
            Landed::Voided
        };
        drop(shard);
        self.announce.send_replace(Some(landed.clone()));
        landed
    }
}

impl<T: Clone> Drop for Lead<'_, T> {
    fn drop(&mut self) {
        let mut shard = self.flights.lock(&self.id);
        if shard.get(&self.id).is_some_and(|f| f.ticket == self.ticket) {
            shard.remove(&self.id);
        }
    }
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
