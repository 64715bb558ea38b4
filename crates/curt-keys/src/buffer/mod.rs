//! The keys that one process holds, refilled in the background before they run dry.
//!
//! Taking a key is a lock and a pop. Below the low mark it also wakes the refiller, a task of the supply's own, which
//! draws from the strategy's [`Feed`]: a pool, a key file or an id generator. A create that finds the ring empty waits
//! a few milliseconds at most, and not at all when the last draw brought nothing.

mod ring;

use ring::Ring;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::names::event;
use curt_core::{Key, PortResult};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::pace::{jittered, report};

/// Shortest pause after a draw that brought nothing; it doubles up to the reconcilers' tick.
const RETRY_FIRST: Duration = Duration::from_millis(20);

/// Where the ring is refilled from.
#[async_trait]
pub(crate) trait Feed: Send + Sync {
    /// Up to `room` keys that nobody else is given. Empty: none to be had now.
    async fn draw(&self, room: usize) -> PortResult<Vec<Key>>;
}

pub(crate) struct Buffer {
    ring: Mutex<Ring>,
    low: usize,
    dry_wait: Duration,
    feed: Box<dyn Feed>,
    /// Held while keys are on their way from the feed to the ring, so that somebody who counts sees them once.
    refilling: tokio::sync::Mutex<()>,
    wanted: Notify,
    supplied: Notify,
    filled: Notify,
    /// The last draw brought nothing, so that waiting for the next one is idle.
    starved: AtomicBool,
    /// The ring has been at its low mark once.
    was_filled: AtomicBool,
    /// The drought has been reported, and its end has not.
    dry: AtomicBool,
    closed: AtomicBool,
}

/// A count of the ring, together with what was asked at the same instant.
pub(crate) struct Settled<T> {
    pub(crate) answer: T,
    pub(crate) received: u64,
}

impl Buffer {
    pub(crate) fn new(
        feed: Box<dyn Feed>,
        capacity: usize,
        low: usize,
        dry_wait: Duration,
    ) -> Self {
        Self {
            ring: Mutex::new(Ring::new(capacity)),
            low,
            dry_wait,
            feed,
            refilling: tokio::sync::Mutex::new(()),
            wanted: Notify::new(),
            supplied: Notify::new(),
            filled: Notify::new(),
            starved: AtomicBool::new(false),
            was_filled: AtomicBool::new(false),
            dry: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// The next key, or `None` when the ring stays dry.
    pub(crate) async fn take(&self) -> Option<Key> {
        if let Some(key) = self.pop() {
            return Some(key);
        }
        let deadline = Instant::now() + self.dry_wait;
        while !self.starved.load(Ordering::Relaxed) && !self.is_closed() {
            let mut filled = std::pin::pin!(self.filled.notified());
            filled.as_mut().enable();
            // A refill between the first look and the line above would go unnoticed otherwise.
            if let Some(key) = self.pop() {
                return Some(key);
            }
            tokio::time::timeout_at(deadline, filled).await.ok()?;
        }
        self.pop()
    }

    fn pop(&self) -> Option<Key> {
        let (key, left) = {
            let mut ring = self.ring();
            (ring.pop(), ring.len())
        };
        if left < self.low {
            self.wanted.notify_one();
        }
        key
    }

    pub(crate) fn put_back(&self, key: Key) {
        self.ring().put_back(key);
    }

    pub(crate) fn len(&self) -> usize {
        self.ring().len()
    }

    /// A copy of the keys, in their order.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.ring().keys()
    }

    pub(crate) fn handed_out(&self) -> u64 {
        self.ring().handed_out()
    }

    /// Waits until the ring is filled to its low mark.
    pub(crate) async fn filled(&self) {
        loop {
            let mut filled = std::pin::pin!(self.filled.notified());
            filled.as_mut().enable();
            if self.len() >= self.low || self.is_closed() {
                return;
            }
            filled.await;
        }
    }

    /// Asks `question` while no key is between feed and ring.
    pub(crate) async fn settled<T>(&self, question: impl Future<Output = T>) -> Settled<T> {
        let _still = self.refilling.lock().await;
        Settled {
            answer: question.await,
            received: self.ring().received(),
        }
    }

    /// There may be keys again where a draw found none.
    pub(crate) fn supplied(&self) {
        self.supplied.notify_one();
    }

    /// Keeps the ring filled until [`close`](Self::close).
    pub(crate) async fn run(&self, tick: Duration) {
        let mut pause = RETRY_FIRST;
        while !self.is_closed() {
            match self.refill().await {
                Refill::Enough => {
                    pause = RETRY_FIRST;
                    self.wanted.notified().await;
                }
                Refill::Some => pause = RETRY_FIRST,
                Refill::Nothing => {
                    tokio::select! {
                        () = self.supplied.notified() => {}
                        () = tokio::time::sleep(jittered(pause)) => pause = (pause * 2).min(tick),
                    }
                }
            }
        }
    }

    async fn refill(&self) -> Refill {
        let _moving = self.refilling.lock().await;
        let (left, room) = {
            let ring = self.ring();
            (ring.len(), ring.room())
        };
        if left >= self.low || self.is_closed() {
            self.was_filled.store(true, Ordering::Relaxed);
            return Refill::Enough;
        }
        let drawn = self.feed.draw(room).await.unwrap_or_else(|error| {
            report(&error);
            Vec::new()
        });
        let starved = drawn.is_empty();
        self.starved.store(starved, Ordering::Relaxed);
        // The line fills for the first time right after the start; only after that is an empty ring worth a warning.
        let dry = starved && left == 0 && self.was_filled.load(Ordering::Relaxed);
        if self.dry.swap(dry, Ordering::Relaxed) != dry {
            log_drought(dry);
        }
        self.ring().append(drawn);
        self.filled.notify_waiters();
        if starved {
            Refill::Nothing
        } else {
            Refill::Some
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Ends the refiller; the keys stay until [`drain`](Self::drain).
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.wanted.notify_one();
        self.supplied.notify_one();
        self.filled.notify_waiters();
    }

    pub(crate) fn drain(&self) -> Vec<Key> {
        self.ring().drain()
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Refill {
    Enough,
    Some,
    Nothing,
}

fn log_drought(dry: bool) {
    if dry {
        tracing::warn!(
            event = event::KEY_SUPPLY_DRIED,
            "key supply is dry: new links get random keys"
        );
    } else {
        tracing::info!(
            event = event::KEY_SUPPLY_REFILLED,
            "key supply brings keys again"
        );
    }
}
