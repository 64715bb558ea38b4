//! Deadlines of a worker's connections, without a timer for each.
//!
//! A connection writes its deadline, a number of ticks, into its own slot: a plain store, so that setting one for
//! every request costs nothing. One task per worker counts the ticks and wakes the connections whose time is up. A
//! deadline is therefore kept to within one tick, which is an eighth of the shortest timeout.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use tokio::sync::Notify;

use crate::metrics::CutReason;
use crate::settings::ServerSettings;

const NEVER: u64 = u64::MAX;
const TICK_MAX: Duration = Duration::from_millis(500);
const TICK_MIN: Duration = Duration::from_millis(5);

/// What a connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// For the first byte of a request.
    Idle,
    /// For the rest of a head.
    Head,
    /// For the client to take an answer.
    Writing,
    /// For something that has a deadline of its own, such as the store.
    Elsewhere,
}

/// Timeouts in ticks.
#[derive(Clone, Copy, Debug)]
struct PhaseTimeouts {
    tick: Duration,
    idle: u64,
    head: u64,
    write: u64,
}

impl PhaseTimeouts {
    fn new(settings: &ServerSettings) -> Self {
        let timeouts = [
            settings.idle_timeout,
            settings.header_timeout,
            settings.write_timeout,
        ];
        let shortest = timeouts.into_iter().min().unwrap_or(TICK_MAX);
        let tick = (shortest / 8).clamp(TICK_MIN, TICK_MAX);
        let ticks = |timeout: Duration| {
            u64::try_from(timeout.as_nanos().div_ceil(tick.as_nanos())).unwrap_or(NEVER - 1)
        };
        Self {
            tick,
            idle: ticks(settings.idle_timeout),
            head: ticks(settings.header_timeout),
            write: ticks(settings.write_timeout),
        }
    }
}

/// All connections of one worker.
#[derive(Debug)]
pub(crate) struct Slots {
    timeouts: PhaseTimeouts,
    now: Cell<u64>,
    open: RefCell<Vec<Rc<Slot>>>,
    emptied: Notify,
}

#[derive(Debug)]
struct Slot {
    place: Cell<usize>,
    phase: Cell<Phase>,
    deadline: Cell<u64>,
    expired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Slots {
    pub(crate) fn new(settings: &ServerSettings) -> Rc<Self> {
        Rc::new(Self {
            timeouts: PhaseTimeouts::new(settings),
            now: Cell::new(0),
            open: RefCell::default(),
            emptied: Notify::new(),
        })
    }

    pub(crate) fn tick(&self) -> Duration {
        self.timeouts.tick
    }

    pub(crate) fn len(&self) -> usize {
        self.open.borrow().len()
    }

    pub(crate) fn take(self: &Rc<Self>) -> SlotGuard {
        let mut open = self.open.borrow_mut();
        let slot = Rc::new(Slot {
            place: Cell::new(open.len()),
            phase: Cell::new(Phase::Idle),
            deadline: Cell::new(NEVER),
            expired: Cell::new(false),
            waker: RefCell::new(None),
        });
        open.push(Rc::clone(&slot));
        drop(open);
        let guard = SlotGuard {
            slots: Rc::clone(self),
            slot,
        };
        guard.enter(Phase::Idle);
        guard
    }

    /// Counts one tick and wakes whoever is out of time.
    pub(crate) fn advance(&self) {
        let now = self.now.get() + 1;
        self.now.set(now);
        for slot in self.open.borrow().iter() {
            if slot.deadline.get() <= now {
                slot.deadline.set(NEVER);
                slot.expired.set(true);
                slot.wake();
            }
        }
    }

    /// Wakes every connection, so that it looks at what has changed around it.
    pub(crate) fn wake_all(&self) {
        for slot in self.open.borrow().iter() {
            slot.wake();
        }
    }

    /// Returns when no connection is left.
    pub(crate) async fn emptied(&self) {
        while self.len() > 0 {
            self.emptied.notified().await;
        }
    }
}

impl Slot {
    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

/// One connection's place; given up when dropped.
#[derive(Debug)]
pub(crate) struct SlotGuard {
    slots: Rc<Slots>,
    slot: Rc<Slot>,
}

impl SlotGuard {
    /// Starts the time that the phase is given.
    pub(crate) fn enter(&self, phase: Phase) {
        let timeouts = &self.slots.timeouts;
        let ticks = match phase {
            Phase::Idle => timeouts.idle,
            Phase::Head => timeouts.head,
            Phase::Writing => timeouts.write,
            Phase::Elsewhere => NEVER,
        };
        self.slot.phase.set(phase);
        // One more than the timeout, because the current tick has partly passed.
        let deadline = self.slots.now.get().saturating_add(ticks).saturating_add(1);
        self.slot.deadline.set(deadline);
    }

    pub(crate) fn phase(&self) -> Phase {
        self.slot.phase.get()
    }

    pub(crate) fn wake(&self) {
        self.slot.wake();
    }

    /// Why the connection has to go, if its time is up.
    pub(crate) fn expired(&self) -> Option<CutReason> {
        if !self.slot.expired.get() {
            return None;
        }
        match self.phase() {
            Phase::Idle => Some(CutReason::Idle),
            Phase::Head => Some(CutReason::HeaderTimeout),
            Phase::Writing => Some(CutReason::WriteTimeout),
            Phase::Elsewhere => None,
        }
    }

    /// Remembers whom to wake. A task's waker stays the same, so this does its work once.
    pub(crate) fn remember(&self, waker: &Waker) {
        let mut kept = self.slot.waker.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut open = self.slots.open.borrow_mut();
        let place = self.slot.place.get();
        open.swap_remove(place);
        if let Some(moved) = open.get(place) {
            moved.place.set(place);
        }
        if open.is_empty() {
            self.slots.emptied.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> Rc<Slots> {
        Slots::new(&ServerSettings {
            header_timeout: Duration::from_millis(80),
            idle_timeout: Duration::from_millis(200),
            write_timeout: Duration::from_millis(100),
            ..ServerSettings::default()
        })
    }

    #[test]
    fn a_phase_ends_within_one_tick_after_its_timeout() {
        let slots = slots();
        assert_eq!(slots.tick(), Duration::from_millis(10));
        for (phase, ticks, reason) in [
            (Phase::Idle, 20, CutReason::Idle),
            (Phase::Head, 8, CutReason::HeaderTimeout),
            (Phase::Writing, 10, CutReason::WriteTimeout),
        ] {
            let guard = slots.take();
            guard.enter(phase);
            for _ in 0..ticks {
                slots.advance();
                assert_eq!(guard.expired(), None);
            }
            slots.advance();
            assert_eq!(guard.expired(), Some(reason));
        }
    }

    #[test]
    fn activity_moves_the_deadline_and_waiting_elsewhere_has_none() {
        let slots = slots();
        let guard = slots.take();
        for _ in 0..100 {
            guard.enter(Phase::Idle);
            slots.advance();
        }
        guard.enter(Phase::Elsewhere);
        for _ in 0..1_000 {
            slots.advance();
        }
        assert_eq!(guard.expired(), None);
    }

    #[test]
    fn places_stay_right_in_any_order_of_leaving() {
        let slots = slots();
        let mut guards: Vec<_> = (0..5).map(|_| slots.take()).collect();
        for leave in [0, 2, 1, 1, 0] {
            guards.remove(leave);
            let open = slots.open.borrow();
            assert_eq!(open.len(), guards.len());
            assert!(
                open.iter()
                    .enumerate()
                    .all(|(at, slot)| slot.place.get() == at)
            );
        }
    }
}
