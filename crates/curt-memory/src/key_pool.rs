use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::ports::{BatchId, KeyPool};
use curt_core::{Key, PortResult};

use super::locked;

/// Batch names whose answer is remembered. A push is repeated at once or never, so that a few would do.
const BATCHES_REMEMBERED: usize = 4_096;

/// A pool shard in this process, bounded by its cap: the reference for the conformance suite, and for tests.
#[derive(Debug)]
pub struct MemoryKeyPool {
    cap: usize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    keys: VecDeque<Key>,
    answers: HashMap<BatchId, usize>,
    answered: VecDeque<BatchId>,
}

impl MemoryKeyPool {
    /// A pool that holds at most `cap` keys.
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            queue: Mutex::default(),
        }
    }
}

impl Queue {
    fn remember(&mut self, batch: &BatchId, answer: usize) {
        if self.answered.len() == BATCHES_REMEMBERED
            && let Some(oldest) = self.answered.pop_front()
        {
            self.answers.remove(&oldest);
        }
        self.answers.insert(batch.clone(), answer);
        self.answered.push_back(batch.clone());
    }
}

#[async_trait]
impl KeyPool for MemoryKeyPool {
    async fn push(&self, batch: &BatchId, keys: &[Key]) -> PortResult<usize> {
        let mut queue = locked(&self.queue);
        if let Some(answer) = queue.answers.get(batch) {
            return Ok(*answer);
        }
        let room = self.cap - queue.keys.len();
        let fitting = keys.len().min(room);
        queue.keys.extend(keys[..fitting].iter().cloned());
        queue.remember(batch, fitting);
        debug_assert!(queue.keys.len() <= self.cap);
        Ok(fitting)
    }

    async fn pop(&self, limit: usize) -> PortResult<Vec<Key>> {
        let keys = &mut locked(&self.queue).keys;
        let count = limit.min(keys.len());
        Ok(keys.drain(..count).collect())
    }

    async fn peek(&self, first: u64, limit: usize) -> PortResult<Vec<Key>> {
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let keys = &locked(&self.queue).keys;
        Ok(keys.iter().skip(first).take(limit).cloned().collect())
    }

    async fn depth(&self) -> PortResult<u64> {
        Ok(locked(&self.queue).keys.len() as u64)
    }
}
