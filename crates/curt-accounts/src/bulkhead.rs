//! Bounded work: so many at a time, so many waiting, and of both no more than a share for one caller. What comes beyond
//! that is refused at once: whoever waits behind a long queue has given up before their turn.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use curt_core::OwnerId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::audit::Origin;
use crate::limits::rate_limit_prefix;
use crate::principal::Principal;

/// How much of one kind of work there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkheadSettings {
    /// At the same time. One caller has at most half of it, rounded up.
    pub running: usize,
    /// Beside those that run.
    pub waiting: usize,
    /// Running and waiting, of one caller.
    pub per_caller: usize,
}

/// Who shares with nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallerId {
    User(OwnerId),
    /// Without the part that its holder may choose anew for each request.
    Address(IpAddr),
    /// A command on this machine.
    Operator,
}

impl CallerId {
    #[must_use]
    pub fn address(address: IpAddr) -> Self {
        Self::Address(rate_limit_prefix(address))
    }

    /// The user whose credentials were shown, or else the address.
    #[must_use]
    pub fn of(principal: Option<&Principal>, address: IpAddr) -> Self {
        principal.map_or_else(|| Self::address(address), |known| Self::User(known.user))
    }
}

impl From<Origin> for CallerId {
    fn from(origin: Origin) -> Self {
        match (origin.actor, origin.address) {
            (Some(user), _) => Self::User(user),
            (None, Some(address)) => Self::address(address),
            (None, None) => Self::Operator,
        }
    }
}

/// One kind of work, kept from taking what others need.
#[derive(Debug)]
pub struct Bulkhead {
    settings: BulkheadSettings,
    running: Arc<Semaphore>,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    taken: usize,
    callers: HashMap<CallerId, CallerPlaces>,
}

#[derive(Debug)]
struct CallerPlaces {
    taken: usize,
    running: Arc<Semaphore>,
}

impl Bulkhead {
    #[must_use]
    pub fn new(settings: BulkheadSettings) -> Arc<Self> {
        Arc::new(Self {
            settings,
            running: Arc::new(Semaphore::new(settings.running.max(1))),
            places: Mutex::default(),
        })
    }

    /// Gives the caller a place, or `None` when they or all callers together have as many as they may.
    pub fn admit(self: &Arc<Self>, caller: CallerId) -> Option<Place> {
        let BulkheadSettings {
            running,
            waiting,
            per_caller,
        } = self.settings;
        let mut places = self.places();
        if places.taken >= running.max(1) + waiting {
            return None;
        }
        let own = places
            .callers
            .entry(caller)
            .or_insert_with(|| CallerPlaces {
                taken: 0,
                running: Arc::new(Semaphore::new(running.div_ceil(2).max(1))),
            });
        if own.taken >= per_caller.max(1) {
            return None;
        }
        own.taken += 1;
        let own_running = Arc::clone(&own.running);
        places.taken += 1;
        Some(Place(Arc::new(PlaceGuard {
            bulkhead: Arc::clone(self),
            caller,
            own_running,
        })))
    }

    /// Gives the caller a place and waits for its turn.
    pub async fn enter(self: &Arc<Self>, caller: CallerId) -> Option<Turn> {
        Some(self.admit(caller)?.turn().await)
    }

    /// Waits for the turn of work that has a place elsewhere, which bounds how much of it there is.
    pub async fn turn_of_admitted(&self) -> Option<OwnedSemaphorePermit> {
        acquire(&self.running).await
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one request, until it and its [turn](Turn) are dropped.
#[derive(Debug)]
pub struct Place(Arc<PlaceGuard>);

#[derive(Debug)]
struct PlaceGuard {
    bulkhead: Arc<Bulkhead>,
    caller: CallerId,
    own_running: Arc<Semaphore>,
}

impl Place {
    /// Waits until the work may run. Whoever stops waiting leaves the queue.
    pub async fn turn(&self) -> Turn {
        // The caller's own first: who waits for their own share must not hold back others.
        let own = acquire(&self.0.own_running).await;
        let common = acquire(&self.0.bulkhead.running).await;
        Turn {
            _permits: [own, common],
            _place: Arc::clone(&self.0),
        }
    }
}

/// `None` only from a closed semaphore, and these are never closed.
async fn acquire(semaphore: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).acquire_owned().await.ok()
}

/// The right to run, until it is dropped. It goes with the work, so that a client who leaves does not make room for
/// more while the work that they left goes on.
#[derive(Debug)]
pub struct Turn {
    _permits: [Option<OwnedSemaphorePermit>; 2],
    _place: Arc<PlaceGuard>,
}

impl Drop for PlaceGuard {
    fn drop(&mut self) {
        let mut places = self.bulkhead.places();
        places.taken = places.taken.saturating_sub(1);
        if let Some(own) = places.callers.get_mut(&self.caller) {
            own.taken -= 1;
            if own.taken == 0 {
                places.callers.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const ANN: CallerId = CallerId::User(OwnerId(1));
    const SETTINGS: BulkheadSettings = BulkheadSettings {
        running: 4,
        waiting: 12,
        per_caller: 6,
    };

    fn user(id: u64) -> CallerId {
        CallerId::User(OwnerId(id))
    }

    async fn is_waiting(place: &Place) -> bool {
        timeout(Duration::from_millis(1), place.turn())
            .await
            .is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_has_a_share_and_all_together_have_a_bound() {
        let bulkhead = Bulkhead::new(SETTINGS);
        let own: Vec<_> = std::iter::from_fn(|| bulkhead.admit(ANN)).collect();
        assert_eq!(own.len(), SETTINGS.per_caller);
        let others: Vec<_> = (2..100).filter_map(|id| bulkhead.admit(user(id))).collect();
        assert_eq!(
            own.len() + others.len(),
            SETTINGS.running + SETTINGS.waiting
        );
        drop(own);
        assert!(bulkhead.admit(user(100)).is_some(), "room again");
        drop(others);
        assert!(bulkhead.places().callers.is_empty());
        assert_eq!(bulkhead.places().taken, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_runs_no_more_than_half_and_others_do_not_wait_for_them() {
        let bulkhead = Bulkhead::new(SETTINGS);
        let own: Vec<_> = std::iter::from_fn(|| bulkhead.admit(ANN)).collect();
        let running = [own[0].turn().await, own[1].turn().await];
        assert!(is_waiting(&own[2]).await);
        let other = timeout(Duration::from_millis(1), bulkhead.enter(user(2))).await;
        let another = timeout(Duration::from_millis(1), bulkhead.enter(user(3))).await;
        assert!(other.unwrap().is_some() && another.unwrap().is_some());
        drop(running);
        assert!(!is_waiting(&own[2]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waiting_leaves_the_queue_and_work_that_goes_on_keeps_its_place() {
        let single = BulkheadSettings {
            running: 1,
            waiting: 1,
            per_caller: 2,
        };
        let bulkhead = Bulkhead::new(single);
        let first = bulkhead.enter(user(1)).await.unwrap();
        let waiting = timeout(Duration::from_millis(1), bulkhead.enter(user(2))).await;
        assert!(waiting.is_err(), "it waits");
        assert!(bulkhead.admit(user(3)).is_some(), "and has left");
        let second = bulkhead.admit(user(1)).unwrap();
        assert!(bulkhead.admit(user(3)).is_none(), "the turn is a place");
        drop(first);
        let turn = second.turn().await;
        drop(second);
        assert_eq!(bulkhead.places().taken, 1, "while the turn lasts");
        drop(turn);
        assert_eq!(bulkhead.places().taken, 0);
    }

    #[test]
    fn a_caller_is_a_user_or_what_an_address_cannot_change() {
        let address = "2001:db8:1:2:3:4:5:6".parse().unwrap();
        let network = CallerId::Address("2001:db8:1:2::".parse().unwrap());
        assert_eq!(CallerId::of(None, address), network);
        let origin = Origin {
            actor: None,
            address: Some(address),
        };
        assert_eq!(CallerId::from(origin), network);
        assert_eq!(CallerId::from(origin.by(OwnerId(1))), ANN);
        assert_eq!(CallerId::from(Origin::OPERATOR), CallerId::Operator);
    }
}
