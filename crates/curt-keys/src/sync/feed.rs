use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use curt_core::Key;
use curt_core::ports::{BatchId, KeyLedger};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::batch::{BatchOwner, BatchTaker, ClosingBatches, Destination, TakenBatch};
use crate::lease::HeldLeases;
use crate::ports::KeyPorts;
use crate::settings::PoolSettings;

/// Feeds the buffer straight from the ledgers, where no pool stands between them.
///
/// A batch stays open in its ledger until its keys are on links, because the buffer ends with the process: after a
/// crash the open batches are what the keys are found by ([`Recovery`](super::Recovery)).
pub(crate) struct LedgerFeed {
    ledgers: Vec<Arc<dyn KeyLedger>>,
    batch: usize,
    in_flight: Duration,
    state: Mutex<FeedState>,
}

struct FeedState {
    taker: BatchTaker,
    /// Batches whose keys are not all known to be used, oldest first.
    open: VecDeque<BufferedBatch>,
    /// Keys that were ever drawn.
    drawn: u64,
    closing: ClosingBatches,
    is_closed: bool,
}

struct BufferedBatch {
    ledger: usize,
    batch: BatchId,
    /// `drawn` after the last key of the batch.
    end: u64,
    handed_out_at: Option<Instant>,
}

impl LedgerFeed {
    pub(crate) fn new(ports: &KeyPorts, settings: &PoolSettings, leases: HeldLeases) -> Self {
        Self {
            ledgers: ports.ledgers.clone(),
            batch: settings.batch,
            in_flight: settings.in_flight,
            state: Mutex::new(FeedState {
                taker: BatchTaker::new(ports, leases),
                open: VecDeque::new(),
                drawn: 0,
                closing: ClosingBatches::default(),
                is_closed: false,
            }),
        }
    }

    /// Draws a batch of up to `room` keys.
    pub(crate) async fn draw(&self, room: usize) -> Vec<Key> {
        let mut state = self.state.lock().await;
        // The lease first: a batch of an owner that is not seen alive would be given back while we hand its keys out.
        if state.is_closed || !state.taker.keep_owner_lease().await {
            return Vec::new();
        }
        let limit = room.min(self.batch);
        let Some(taken) = state.taker.take(Destination::Buffer, limit).await else {
            return Vec::new();
        };
        let TakenBatch {
            ledger,
            batch,
            keys,
        } = taken;
        state.drawn += keys.len() as u64;
        let end = state.drawn;
        state.open.push_back(BufferedBatch {
            ledger,
            batch,
            end,
            handed_out_at: None,
        });
        keys
    }

    /// Closes the batches whose keys were all handed out so long ago that no create can still be busy with one.
    ///
    /// The buffer is first-in-first-out and gets nothing but draws, in their order: once it has handed out as many keys
    /// as had been drawn up to the end of a batch, the batch has left it. Keys of a draw that has not arrived yet are
    /// in `end` and not in `handed_out`, so that they count as being on their way. A key that comes back unused stands
    /// in front, is the next to leave, and comes back within the time that is waited for here.
    ///
    /// Returns who we are, if others know that we live.
    pub(crate) async fn close_used(&self, handed_out: u64) -> Option<BatchOwner> {
        let mut state = self.state.lock().await;
        let state = &mut *state;
        // Also when nothing is drawn for long: the lease is what keeps the open batches ours.
        if state.is_closed || !state.taker.keep_owner_lease().await {
            return None;
        }
        for batch in state.open.iter_mut() {
            match batch.end <= handed_out {
                true => _ = batch.handed_out_at.get_or_insert_with(Instant::now),
                false => batch.handed_out_at = None,
            }
        }
        let is_over = |at: Instant| at.elapsed() >= self.in_flight;
        while let Some(used) = state
            .open
            .pop_front_if(|batch| batch.handed_out_at.is_some_and(is_over))
        {
            state.closing.add(used.ledger, used.batch);
        }
        state.closing.finish(&self.ledgers).await;
        Some(state.taker.owner())
    }

    /// Draws no more. Returns the owner whose open batches are to be settled, if it may have some.
    pub(crate) async fn close(&self) -> Option<BatchOwner> {
        let mut state = self.state.lock().await;
        let was_closed = std::mem::replace(&mut state.is_closed, true);
        state.open.clear();
        state.closing = ClosingBatches::default();
        (!was_closed && state.taker.has_named()).then(|| state.taker.owner())
    }

    pub(crate) async fn release_leases(&self) {
        self.state.lock().await.taker.leases.release_all().await;
    }
}
