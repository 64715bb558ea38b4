//! One subscriber's messages between the connection that brings them and the reader: bounded, numbered, and without a
//! hole that the reader is not told of.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use curt_core::UnixMillis;
use curt_core::ports::{Invalidation, InvalidationFeed, LinkChange};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Messages that are kept for a slow reader.
const KEPT_MAX: usize = 1_024;

/// What the connection writes to.
#[derive(Default)]
pub struct FeedBuffer {
    state: Mutex<State>,
    filled: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Invalidation>,
    /// The connection that may write; those before it are dead.
    connection: u64,
    /// Number of the last message of this connection.
    last: Option<u64>,
}

impl FeedBuffer {
    /// Lets another connection write, whose messages may begin with any number, and no other any more. Returns its name.
    pub fn begin_connection(&self) -> u64 {
        let mut state = self.lock();
        state.connection += 1;
        state.last = None;
        state.connection
    }

    /// Adds a message. One that does not follow the one before it is lost with those between them.
    pub fn push(&self, connection: u64, sequence: u64, changes: Box<[LinkChange]>) {
        let mut state = self.lock();
        if state.connection != connection {
            return;
        }
        let last = state.last.replace(sequence);
        let follows = last.is_none_or(|last| last.checked_add(1) == Some(sequence));
        if follows && state.waiting.len() < KEPT_MAX {
            let message = Invalidation::Changed { sequence, changes };
            state.waiting.push_back(message);
        } else {
            state.put_gap();
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Says that messages were lost, or may have been.
    pub fn push_gap(&self) {
        self.lock().put_gap();
        self.filled.notify_one();
    }

    /// Says that the engine has answered a question that was asked at this time.
    pub fn push_alive(&self, asked_at: UnixMillis) {
        let mut state = self.lock();
        let alive = Invalidation::Alive { asked_at };
        // A reader that is behind needs the latest alone.
        match state.waiting.back_mut() {
            Some(back @ Invalidation::Alive { .. }) => *back = alive,
            _ => state.waiting.push_back(alive),
        }
        drop(state);
        self.filled.notify_one();
    }

    /// The number of the last message that this connection has brought; before the first one, it becomes `default`.
    pub fn last_or(&self, default: u64) -> u64 {
        *self.lock().last.get_or_insert(default)
    }

    fn take(&self) -> Option<Invalidation> {
        self.lock().waiting.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whatever waits was published before the reader drops its copies.
    fn put_gap(&mut self) {
        self.waiting.clear();
        self.waiting.push_back(Invalidation::Gap);
    }
}

/// The reader's side. Ends the task that keeps the connection when it is dropped.
pub struct BufferedFeed {
    buffer: Arc<FeedBuffer>,
    connection: AbortHandle,
}

impl BufferedFeed {
    #[must_use]
    pub fn new(buffer: Arc<FeedBuffer>, connection: AbortHandle) -> Self {
        Self { buffer, connection }
    }
}

impl Drop for BufferedFeed {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

#[async_trait]
impl InvalidationFeed for BufferedFeed {
    async fn next(&mut self) -> Option<Invalidation> {
        loop {
            // One that was filled between the look and the wait leaves a permit.
            if let Some(message) = self.buffer.take() {
                return Some(message);
            }
            self.buffer.filled.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(buffer: &FeedBuffer) -> Vec<Option<u64>> {
        let told = std::iter::from_fn(|| buffer.take());
        told.filter_map(|message| match message {
            Invalidation::Changed { sequence, .. } => Some(Some(sequence)),
            Invalidation::Gap => Some(None),
            Invalidation::Alive { .. } => None,
        })
        .collect()
    }

    #[test]
    fn a_number_that_does_not_follow_is_a_gap() {
        let buffer = FeedBuffer::default();
        let connection = buffer.begin_connection();
        for sequence in [7, 8, 10, 11, 3, 4] {
            buffer.push(connection, sequence, Box::default());
        }
        assert_eq!(drain(&buffer), [None, Some(4)]);
    }

    #[test]
    fn a_reader_that_falls_behind_has_a_gap_and_then_everything() {
        let buffer = FeedBuffer::default();
        let connection = buffer.begin_connection();
        for sequence in 0..=KEPT_MAX as u64 {
            buffer.push(connection, sequence, Box::default());
        }
        buffer.push(connection, KEPT_MAX as u64 + 1, Box::default());
        assert_eq!(drain(&buffer), [None, Some(KEPT_MAX as u64 + 1)]);
    }

    #[test]
    fn a_dead_connection_writes_nothing() {
        let buffer = FeedBuffer::default();
        let former = buffer.begin_connection();
        let connection = buffer.begin_connection();
        buffer.push(connection, 5, Box::default());
        buffer.push(former, 6, Box::default());
        assert_eq!(drain(&buffer), [Some(5)]);
        assert_eq!(buffer.last_or(9), 5);
    }

    #[test]
    fn signs_of_life_do_not_pile_up() {
        let buffer = FeedBuffer::default();
        for millis in 0..5 {
            buffer.push_alive(UnixMillis(millis));
        }
        let told: Vec<_> = std::iter::from_fn(|| buffer.take()).collect();
        let asked_at = UnixMillis(4);
        assert_eq!(told, [Invalidation::Alive { asked_at }]);
    }
}
