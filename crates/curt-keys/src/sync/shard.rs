use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{BatchId, KeyLedger, KeyPool};
use curt_core::{Key, PortResult};
use tokio::time::Instant;

use super::batch::Delivery;
use crate::buffer::Buffer;
use crate::pace::{NextPass, RefillPace, report};

/// Batches that wait to be closed while a refill goes on in small pieces.
const CLOSED_AT_ONCE: usize = 16;

/// What keysync knows about one pool shard between its passes.
pub(super) struct Shard {
    pool: Arc<dyn KeyPool>,
    pub(super) pace: RefillPace,
    /// Since when we know that nobody looks after the shard.
    pub(super) free_since: Option<Instant>,
    /// A batch that the pool has not, or not wholly, confirmed.
    pub(super) unsent: Option<Delivery>,
    /// Takes that failed, by ledger: asked again under the same name, they give the same keys.
    pub(super) unanswered: HashMap<usize, BatchId>,
    /// Batches that are done with, by ledger, and not yet known to be closed.
    done: HashMap<usize, Vec<BatchId>>,
    /// Batches whose last keys go back to their ledger, which has not confirmed it.
    returning: Vec<Returning>,
    /// Volatile pools: batches whose keys are not all known to be used, oldest first.
    open: VecDeque<Delivered>,
    /// Keys that this process pushed, ever.
    pushed: u64,
}

struct Returning {
    ledger: usize,
    batch: BatchId,
    unused: Vec<Key>,
}

struct Delivered {
    ledger: usize,
    batch: BatchId,
    /// `pushed` after the last key of the batch.
    end: u64,
    /// What the ring had received when the last key had left the pool.
    ring_mark: Option<u64>,
    handed_out_at: Option<Instant>,
}

impl Shard {
    pub(super) fn new(pool: Arc<dyn KeyPool>, pace: RefillPace) -> Self {
        Self {
            pool,
            pace,
            free_since: None,
            unsent: None,
            unanswered: HashMap::new(),
            done: HashMap::new(),
            returning: Vec::new(),
            open: VecDeque::new(),
            pushed: 0,
        }
    }

    pub(super) fn moving(&self) -> u64 {
        let unsent = self.unsent.as_ref().map_or(0, |unsent| unsent.keys.len());
        let returning: usize = self.returning.iter().map(|back| back.unused.len()).sum();
        (unsent + returning) as u64
    }

    /// Pushes the delivery that is waiting. Returns whether the pool took all of it.
    pub(super) async fn push(&mut self) -> PortResult<bool> {
        let Some(unsent) = &mut self.unsent else {
            return Ok(true);
        };
        // After an error it is unknown whether the keys arrived. The same name again settles it.
        let pushed = self.pool.push(&unsent.push_name(), &unsent.keys).await?;
        let rest = unsent.keys.split_off(pushed.min(unsent.keys.len()));
        let all = rest.is_empty();
        self.pushed += unsent.keys.len() as u64;
        if self.pool.survives_restart() {
            match self.unsent.take() {
                Some(sent) if all => self.done.entry(sent.ledger).or_default().push(sent.batch),
                Some(sent) => self.returning.push(Returning {
                    ledger: sent.ledger,
                    batch: sent.batch,
                    unused: rest,
                }),
                None => {}
            }
        } else if all {
            if let Some(sent) = self.unsent.take() {
                self.open.push_back(Delivered {
                    ledger: sent.ledger,
                    batch: sent.batch,
                    end: self.pushed,
                    ring_mark: None,
                    handed_out_at: None,
                });
            }
        } else {
            // Giving the rest back would close the batch while its first keys still need its protection.
            unsent.keys = rest;
            unsent.part += 1;
        }
        Ok(all)
    }

    /// Whether more batches will soon be done with, and few are yet.
    pub(super) fn can_close_later(&self) -> bool {
        let done: usize = self.done.values().map(Vec::len).sum();
        self.pace.next() == NextPass::Soon && done < CLOSED_AT_ONCE
    }

    /// Closes what is done with, many batches at once, because each call costs its ledger a commit. What a ledger does
    /// not confirm waits for the next pass.
    pub(super) async fn finish_closing(&mut self, ledgers: &[Arc<dyn KeyLedger>]) {
        for (ledger, batches) in std::mem::take(&mut self.done) {
            if let Err(error) = ledgers[ledger].close(&batches).await {
                report(&error);
                self.done.insert(ledger, batches);
            }
        }
        for back in std::mem::take(&mut self.returning) {
            let ledger = &ledgers[back.ledger];
            if let Err(error) = ledger.give_back(&back.batch, &back.unused).await {
                report(&error);
                self.returning.push(back);
            }
        }
    }

    /// Volatile pools: is done with the batches whose keys have all been handed out long enough ago that no create can still
    /// be busy with one. Queues are first-in-first-out: when no more keys wait than were pushed after a batch, the batch
    /// has left the pool, whoever else pushes and pops; and when the ring has handed out as many keys as it had received
    /// by then, the batch has left the ring.
    pub(super) async fn retire(&mut self, buffer: &Buffer, in_flight: Duration) -> PortResult<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let settled = buffer.settled(self.pool.depth()).await;
        let depth = settled.answer?;
        let handed_out = buffer.handed_out();
        for batch in &mut self.open {
            if batch.ring_mark.is_none() && depth <= self.pushed - batch.end {
                batch.ring_mark = Some(settled.received);
            }
            match batch.ring_mark {
                Some(mark) if handed_out >= mark => {
                    batch.handed_out_at.get_or_insert_with(Instant::now);
                }
                _ => batch.handed_out_at = None,
            }
        }
        let is_over = |batch: &Delivered| {
            batch
                .handed_out_at
                .is_some_and(|at| at.elapsed() >= in_flight)
        };
        while let Some(used_up) = self.open.pop_front_if(|batch| is_over(batch)) {
            let done = self.done.entry(used_up.ledger).or_default();
            done.push(used_up.batch);
        }
        Ok(())
    }

    /// Forgets all batches: they are given back as a whole instead.
    pub(super) fn abandon(&mut self) {
        self.unsent = None;
        self.unanswered.clear();
        self.done.clear();
        self.returning.clear();
        self.open.clear();
    }
}
