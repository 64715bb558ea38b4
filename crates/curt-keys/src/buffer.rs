//! The keys that one process holds, refilled in the background before they run out.
//!
//! Taking a key is a lock and a pop. Below the low watermark it also wakes the refiller, a task of the supply, which
//! draws from the [`KeySource`]. A create that finds the buffer empty waits a few milliseconds at most, and not at all
//! when the last draw brought nothing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use curt_core::Key;
use curt_core::names::event;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::pace::{Nudges, jittered, report};
use crate::settings::BufferSettings;
use crate::source::KeySource;

/// Keys that others have more use for, from which on they are given back.
const SET_ASIDE_MAX: usize = 64;
/// Shortest backoff after a draw that brought nothing; it doubles up to the reconcilers' tick.
const BACKOFF_FIRST: Duration = Duration::from_millis(20);

pub(crate) struct Buffer {
    queue: Mutex<Queue>,
    low: usize,
    dry_wait: Duration,
    /// Wakes the refiller: the level is below the low watermark.
    wanted: Notify,
    nudges: Arc<Nudges>,
    /// Wakes creates that wait for a key.
    filled: Notify,
    /// The last draw brought nothing, so that waiting for the next one is idle.
    is_starved: AtomicBool,
    /// The buffer has been at its low watermark once.
    was_filled: AtomicBool,
    /// The drought has been reported, and its end has not.
    is_dry: AtomicBool,
    is_closed: AtomicBool,
}

impl Buffer {
    pub(crate) fn new(settings: BufferSettings, dry_wait: Duration, nudges: Arc<Nudges>) -> Self {
        Self {
            queue: Mutex::new(Queue::new(settings.capacity)),
            low: settings.low,
            dry_wait,
            wanted: Notify::new(),
            nudges,
            filled: Notify::new(),
            is_starved: AtomicBool::new(false),
            was_filled: AtomicBool::new(false),
            is_dry: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Takes the next key; `None` when the buffer stays empty.
    pub(crate) async fn take(&self) -> Option<Key> {
        if let Some(key) = self.pop() {
            return Some(key);
        }
        let deadline = Instant::now() + self.dry_wait;
        while !self.is_starved.load(Ordering::Relaxed) && !self.is_closed() {
            let mut filled = std::pin::pin!(self.filled.notified());
            filled.as_mut().enable();
            // After `enable`, because a refill between the first pop and that line would go unnoticed otherwise.
            if let Some(key) = self.pop() {
                return Some(key);
            }
            tokio::time::timeout_at(deadline, filled).await.ok()?;
        }
        self.pop()
    }

    fn pop(&self) -> Option<Key> {
        let (key, left) = {
            let mut queue = self.queue();
            (queue.pop(), queue.keys.len())
        };
        if left < self.low {
            self.wanted.notify_one();
        }
        key
    }

    pub(crate) fn put_back(&self, key: Key) {
        self.queue().put_back(key);
    }

    /// As [`put_back`](Self::put_back), for a key that other processes have more use for: it is given back to the source,
    /// with others, or taken again after all the rest.
    pub(crate) fn set_aside(&self, key: Key) {
        let is_full = {
            let mut queue = self.queue();
            queue.set_aside(key);
            queue.aside.len() >= SET_ASIDE_MAX
        };
        if is_full {
            self.wanted.notify_one();
        }
    }

    pub(crate) fn len(&self) -> usize {
        let queue = self.queue();
        queue.keys.len() + queue.aside.len()
    }

    /// Copies the keys, in their order.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let queue = self.queue();
        queue.keys.iter().chain(&queue.aside).cloned().collect()
    }

    /// Keys that have left the buffer, over its life, less those that came back unused.
    pub(crate) fn handed_out(&self) -> u64 {
        self.queue().handed_out
    }

    /// Waits until the buffer is filled to its low watermark.
    pub(crate) async fn wait_until_filled(&self) {
        loop {
            let mut filled = std::pin::pin!(self.filled.notified());
            filled.as_mut().enable();
            if self.queue().keys.len() >= self.low || self.is_closed() {
                return;
            }
            filled.await;
        }
    }

    /// Keeps the buffer filled from `source` until [`close`](Self::close).
    pub(crate) async fn run(&self, source: &dyn KeySource, tick: Duration) {
        let mut backoff = BACKOFF_FIRST;
        let mut is_filling = true;
        while !self.is_closed() {
            self.give_back(source).await;
            let (level, room) = {
                let queue = self.queue();
                (queue.keys.len(), queue.room())
            };
            if room == 0 || level >= self.low && !is_filling {
                self.was_filled.store(true, Ordering::Relaxed);
                is_filling = false;
                self.wanted.notified().await;
                continue;
            }
            let drawn = self.refill(source, level, room).await;
            // A source that gave less than it was asked for may have the rest elsewhere, or in its next batch: go on
            // to the capacity, so that a refill is one stretch of work and not a trickle around the low watermark.
            is_filling = drawn > 0;
            if drawn > 0 || level >= self.low {
                backoff = BACKOFF_FIRST;
                continue;
            }
            tokio::select! {
                () = self.nudges.buffer.notified() => {}
                () = tokio::time::sleep(jittered(backoff)) => backoff = (backoff * 2).min(tick),
            }
        }
    }

    /// Gives the source what was set aside, if that is much. Keys that it does not take are taken again after all others.
    async fn give_back(&self, source: &dyn KeySource) {
        let aside = {
            let mut queue = self.queue();
            if queue.aside.len() < SET_ASIDE_MAX {
                return;
            }
            queue.take_aside()
        };
        let left = source.take_back(aside).await;
        if !left.is_empty() {
            self.queue().put_behind(left);
            // The buffer may be full by them, so that no refill follows.
            self.filled.notify_waiters();
        }
    }

    /// Draws once and returns how many keys came.
    async fn refill(&self, source: &dyn KeySource, level: usize, room: usize) -> usize {
        let drawn = source.draw(room).await.unwrap_or_else(|error| {
            report(&error);
            Vec::new()
        });
        let count = drawn.len();
        let is_starved = count == 0;
        self.is_starved.store(is_starved, Ordering::Relaxed);
        // The first fill comes right after the start; only after that is an empty buffer worth a warning.
        let is_dry = is_starved && level == 0 && self.was_filled.load(Ordering::Relaxed);
        if self.is_dry.swap(is_dry, Ordering::Relaxed) != is_dry {
            log_drought(is_dry);
        }
        self.queue().keys.extend(drawn);
        // Also after a draw that brought nothing: creates that wait learn from it that waiting is idle.
        self.filled.notify_waiters();
        count
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Ends the refiller; the keys stay until [`drain`](Self::drain).
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.wanted.notify_one();
        self.nudges.buffer.notify_one();
        self.filled.notify_waiters();
    }

    pub(crate) fn drain(&self) -> Vec<Key> {
        self.queue().drain()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_drought(is_dry: bool) {
    if is_dry {
        tracing::warn!(
            event = event::KEY_SUPPLY_DRIED,
            "key supply dry, using random keys"
        );
    } else {
        tracing::info!(event = event::KEY_SUPPLY_REFILLED, "key supply recovered");
    }
}

/// First in, first out, allocated once. Refills stop at the capacity; only keys that come back unused may exceed it.
#[derive(Debug)]
struct Queue {
    keys: VecDeque<Key>,
    /// Keys that are to be given back; fewer than are given back at once, but for a moment.
    aside: Vec<Key>,
    capacity: usize,
    handed_out: u64,
}

impl Queue {
    fn new(capacity: usize) -> Self {
        Self {
            keys: VecDeque::with_capacity(capacity),
            aside: Vec::new(),
            capacity,
            handed_out: 0,
        }
    }

    fn room(&self) -> usize {
        self.capacity.saturating_sub(self.keys.len())
    }

    fn pop(&mut self) -> Option<Key> {
        let key = self.keys.pop_front()?;
        self.handed_out += 1;
        Some(key)
    }

    /// Puts a key that was handed out and not used back to the front.
    fn put_back(&mut self, key: Key) {
        self.keys.push_front(key);
        self.handed_out = self.handed_out.saturating_sub(1);
    }

    fn set_aside(&mut self, key: Key) {
        self.aside.push(key);
        self.handed_out = self.handed_out.saturating_sub(1);
    }

    fn take_aside(&mut self) -> Vec<Key> {
        self.handed_out += self.aside.len() as u64;
        std::mem::take(&mut self.aside)
    }

    fn put_behind(&mut self, keys: Vec<Key>) {
        self.handed_out = self.handed_out.saturating_sub(keys.len() as u64);
        self.keys.extend(keys);
    }

    fn drain(&mut self) -> Vec<Key> {
        self.handed_out += self.keys.len() as u64;
        let mut keys: Vec<Key> = self.keys.drain(..).collect();
        keys.extend(self.take_aside());
        keys
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Append(usize),
        Pop,
        PutBack,
        Drain,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0_usize..12).prop_map(Step::Append),
            8 => Just(Step::Pop),
            2 => Just(Step::PutBack),
            1 => Just(Step::Drain),
        ];
        proptest::collection::vec(step, 0..200)
    }

    fn key(number: u64) -> Key {
        Key::parse(&format!("k{number}")).unwrap()
    }

    proptest! {
        /// Nothing is lost, doubled or reordered, and what left is counted to the key.
        #[test]
        fn a_buffer_is_a_bounded_queue(capacity in 1_usize..16, steps in steps()) {
            let mut queue = Queue::new(capacity);
            let mut model = VecDeque::new();
            let mut next = 0_u64;
            let mut last = None;
            for step in steps {
                match step {
                    Step::Append(count) => {
                        let count = count.min(queue.room()) as u64;
                        let keys: Vec<Key> = (next..next + count).map(key).collect();
                        next += count;
                        model.extend(keys.clone());
                        queue.keys.extend(keys);
                        prop_assert!(count == 0 || queue.keys.len() <= capacity);
                    }
                    Step::Pop => {
                        last = model.pop_front();
                        prop_assert_eq!(queue.pop(), last.clone());
                    }
                    Step::PutBack => if let Some(key) = last.take() {
                        queue.put_back(key.clone());
                        model.push_front(key);
                    },
                    Step::Drain => prop_assert_eq!(queue.drain(), Vec::from_iter(model.drain(..))),
                }
                prop_assert_eq!(queue.keys.len(), model.len());
                prop_assert_eq!(queue.room(), capacity.saturating_sub(model.len()));
                prop_assert_eq!(next, queue.handed_out + model.len() as u64);
            }
        }
    }
}
