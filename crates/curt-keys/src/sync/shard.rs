use std::sync::Arc;

use curt_core::ports::{BatchId, KeyLedger, KeyPool};
use curt_core::{Key, PortResult};
use tokio::time::Instant;

use super::batch::{ClosingBatches, TakenBatch};
use crate::pace::{NextPass, RefillPace, report};

/// Batches that wait to be closed while a refill goes on in small pieces.
const CLOSED_AT_ONCE: usize = 16;

/// What keysync knows about one pool shard between its passes.
pub(super) struct PoolShard {
    pool: Arc<dyn KeyPool>,
    pub(super) pace: RefillPace,
    /// Since when we know that no process has the lease of the shard.
    pub(super) free_since: Option<Instant>,
    /// A batch that the pool has not confirmed.
    pub(super) unsent: Option<TakenBatch>,
    closing: ClosingBatches,
    /// Batches whose last keys go back to their ledger, which has not confirmed it.
    returning: Vec<ReturningBatch>,
}

struct ReturningBatch {
    ledger: usize,
    batch: BatchId,
    unused: Vec<Key>,
}

impl PoolShard {
    pub(super) fn new(pool: Arc<dyn KeyPool>, pace: RefillPace) -> Self {
        Self {
            pool,
            pace,
            free_since: None,
            unsent: None,
            closing: ClosingBatches::default(),
            returning: Vec::new(),
        }
    }

    pub(super) fn keys_in_transit(&self) -> u64 {
        let unsent = self.unsent.as_ref().map_or(0, |unsent| unsent.keys.len());
        let returning: usize = self.returning.iter().map(|back| back.unused.len()).sum();
        (unsent + returning) as u64
    }

    /// Pushes the batch that is waiting. Returns whether the pool took all of it.
    pub(super) async fn push(&mut self) -> PortResult<bool> {
        let Some(unsent) = &self.unsent else {
            return Ok(true);
        };
        // After an error it is unknown whether the keys arrived. The same name again settles it, and so the batch stays
        // in `unsent` until the pool has answered.
        let pushed = self.pool.push(&unsent.batch, &unsent.keys).await?;
        let Some(mut sent) = self.unsent.take() else {
            return Ok(true);
        };
        let unused = sent.keys.split_off(pushed.min(sent.keys.len()));
        let is_all = unused.is_empty();
        match is_all {
            true => self.closing.add(sent.ledger, sent.batch),
            false => self.returning.push(ReturningBatch {
                ledger: sent.ledger,
                batch: sent.batch,
                unused,
            }),
        }
        Ok(is_all)
    }

    /// Whether more batches will soon be pushed, and few wait to be closed.
    pub(super) fn can_close_later(&self) -> bool {
        self.pace.next() == NextPass::Soon && self.closing.len() < CLOSED_AT_ONCE
    }

    /// Closes the batches that the pool has confirmed.
    pub(super) async fn finish_closing(&mut self, ledgers: &[Arc<dyn KeyLedger>]) {
        self.closing.finish(ledgers).await;
        for back in std::mem::take(&mut self.returning) {
            let ledger = &ledgers[back.ledger];
            if let Err(error) = ledger.give_back(&back.batch, &back.unused).await {
                report(&error);
                self.returning.push(back);
            }
        }
    }

    /// Forgets all batches: they are settled as a whole instead.
    pub(super) fn forget_batches(&mut self) {
        self.unsent = None;
        self.closing = ClosingBatches::default();
        self.returning.clear();
    }
}
