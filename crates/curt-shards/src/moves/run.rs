//! The steps of a move.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{LinkShards, ShardItem};
use curt_core::{Epoch, ErrorKind, NodeIndex, PortError, ShardMap, UnixMillis};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::mover::{MoveError, MoveProgress, MoveReport, MoveResult, ShardMover};
use super::record::{MovePhase, MoveRecord, StoredMove};
use crate::BACKEND;
use crate::node::at_node;

/// How long a step is repeated that an engine fails.
const RETRY_MAX: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How long writes may wait for a switch before it is taken back.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Switches that are taken back before the move fails.
const SWITCHES_MAX: u32 = 10;
/// Changes that a switch may have to copy.
const CHANGES_LEFT_MAX: usize = 200;

/// One mover at one move.
pub(super) struct Run<'a> {
    pub(super) mover: &'a ShardMover,
    pub(super) from: &'a Arc<dyn LinkShards>,
    pub(super) to: &'a Arc<dyn LinkShards>,
    pub(super) stored: StoredMove,
    pub(super) record: MoveRecord,
    pub(super) stop: &'a CancellationToken,
    pub(super) progress: &'a (dyn Fn(MoveProgress) + Sync),
    pub(super) scanned: u64,
    pub(super) report: MoveReport,
}

/// Repeats a call to a node while its engine is away.
macro_rules! retried {
    ($run:expr, $node:expr, $call:expr) => {{
        let begun = Instant::now();
        loop {
            match $call.await {
                Ok(answer) => break answer,
                Err(error) if error.kind == ErrorKind::StaleEpoch => {
                    return Err(MoveError::TakenOver);
                }
                Err(error) if error.is_transient() && begun.elapsed() < RETRY_MAX => {
                    $run.pause(RETRY_PAUSE).await?;
                }
                Err(error) => return Err(at_node(&$run.mover.nodes, $node, error).into()),
            }
        }
    }};
}

impl Run<'_> {
    pub(super) async fn run(&mut self) -> MoveResult<()> {
        loop {
            match self.record.phase {
                MovePhase::Copy => self.copy().await?,
                MovePhase::Switch => self.switch().await?,
                MovePhase::Settle => self.settle().await?,
                MovePhase::Drop => {
                    self.drop_copy(self.record.from).await?;
                    return self.finish().await;
                }
                MovePhase::Cancel => {
                    self.cancel().await?;
                    if self.record.phase == MovePhase::Cancel {
                        return self.finish().await;
                    }
                }
            }
        }
    }

    async fn copy(&mut self) -> MoveResult<()> {
        let MoveRecord {
            shard,
            from,
            to,
            epoch,
            fence,
            ..
        } = self.record;
        retried!(self, from, self.from.track_changes(shard, fence));
        retried!(self, to, self.to.begin_import(shard, fence, epoch));
        while !self.record.is_copied {
            let position = self.record.position.clone();
            let part = retried!(self, from, self.from.export(shard, position.as_deref()));
            self.scanned += part.scanned;
            self.import(&part.items).await?;
            self.record.is_copied = part.next.is_none();
            self.record.position = part.next;
            self.store().await?;
        }
        // Writes go on, so that there is always something left; a switch copies the rest.
        while self.copy_changes().await? > CHANGES_LEFT_MAX {
            self.store().await?;
        }
        self.enter(MovePhase::Switch).await
    }

    async fn import(&mut self, items: &[ShardItem]) -> MoveResult<()> {
        let MoveRecord {
            shard, to, fence, ..
        } = self.record;
        if !items.is_empty() {
            retried!(self, to, self.to.import(shard, fence, items));
        }
        let count = items.len() as u64;
        self.record.copied += count;
        self.report.copied += count;
        self.show();
        let most = self.mover.settings.items_per_second;
        match most.filter(|most| *most > 0 && self.record.phase == MovePhase::Copy) {
            Some(most) => {
                let millis = count.saturating_mul(1_000) / most;
                self.pause(Duration::from_millis(millis)).await
            }
            None => self.pause(Duration::ZERO).await,
        }
    }

    /// Copies what has changed and returns how much that was.
    async fn copy_changes(&mut self) -> MoveResult<usize> {
        let MoveRecord { shard, from, .. } = self.record;
        let mut copied = 0;
        loop {
            let changes = retried!(self, from, self.from.changes(shard));
            self.import(&changes.items).await?;
            copied += changes.numbers.len();
            if !changes.numbers.is_empty() {
                retried!(self, from, self.from.forget_changes(&changes));
            }
            if changes.is_end {
                return Ok(copied);
            }
        }
    }

    /// Takes writes from the owner, copies the rest and names the next owner.
    async fn switch(&mut self) -> MoveResult<()> {
        for _ in 0..SWITCHES_MAX {
            let map = self.load_map().await?;
            if map.node(self.record.shard) == self.record.to {
                return self.enter(MovePhase::Settle).await;
            }
            let MoveRecord {
                shard,
                from,
                to,
                epoch,
                fence,
                ..
            } = self.record;
            // For a mover that took over: both have the fence of another one.
            retried!(self, from, self.from.track_changes(shard, fence));
            retried!(self, to, self.to.begin_import(shard, fence, epoch));
            let begun = Instant::now();
            match tokio::time::timeout(PAUSE_MAX, self.try_switch(&map)).await {
                Ok(Ok(true)) => {
                    self.report.write_pause = self.report.write_pause.max(begun.elapsed());
                    return self.enter(MovePhase::Settle).await;
                }
                Ok(Ok(false)) => {}
                Ok(Err(MoveError::Port(error))) if error.is_transient() => self.take_back().await?,
                Ok(Err(error)) => return Err(error),
                Err(_) => self.take_back().await?,
            }
            self.report.write_pause = self.report.write_pause.max(begun.elapsed());
            self.copy_changes().await?;
        }
        let why = "the switch took too long, again and again: the engines are too slow for it now";
        Err(PortError::new(ErrorKind::Unavailable, BACKEND, "move a shard", why).into())
    }

    /// `false`: the map has changed meanwhile.
    async fn try_switch(&mut self, map: &ShardMap) -> MoveResult<bool> {
        let MoveRecord {
            shard, to, epoch, ..
        } = self.record;
        // The next owner is at `epoch`, so that nothing but a later one than that is this node's again.
        let sealed_until = Epoch(epoch.0 + 1);
        self.from.seal(shard, sealed_until).await?;
        self.copy_changes().await?;
        let next = map.moved(shard, to);
        if next.epoch(shard) != epoch {
            let why = "the shard map was changed by something else than moves".to_owned();
            return Err(MoveError::Refused(why));
        }
        Ok(self.mover.maps.advance(&next).await?)
    }

    /// Gives the writes back to the owner, unless the switch was done after all.
    async fn take_back(&mut self) -> MoveResult<()> {
        let MoveRecord {
            shard, to, epoch, ..
        } = self.record;
        loop {
            let map = self.load_map().await?;
            if map.node(shard) == to {
                return Ok(());
            }
            let renewed = map.renewed(shard, Epoch(epoch.0 + 1));
            let advanced = self.mover.maps.advance(&renewed).await;
            if matches!(advanced, Ok(true)) {
                break;
            }
            self.pause(RETRY_PAUSE).await?;
        }
        self.record.epoch = Epoch(epoch.0 + 2);
        self.store().await
    }

    async fn settle(&mut self) -> MoveResult<()> {
        let MoveRecord {
            shard,
            from,
            to,
            epoch,
            fence,
            ..
        } = self.record;
        // First of all: until then processes that have not heard of the new map read what may be changed elsewhere.
        retried!(self, from, self.from.retire(shard, fence, epoch));
        let counts = retried!(self, from, self.from.shard_counts(shard));
        retried!(self, to, self.to.adopt(shard, fence, &counts));
        retried!(self, from, self.from.discount(shard, fence, &counts));
        retried!(self, from, self.from.stop_tracking(shard, fence));
        self.enter(MovePhase::Drop).await
    }

    async fn cancel(&mut self) -> MoveResult<()> {
        let MoveRecord {
            shard,
            to,
            from,
            fence,
            ..
        } = self.record;
        if self.record.is_sealed {
            self.take_back().await?;
        }
        if self.load_map().await?.node(shard) == to {
            return self.enter(MovePhase::Settle).await;
        }
        retried!(self, from, self.from.stop_tracking(shard, fence));
        self.drop_copy(to).await
    }

    async fn drop_copy(&mut self, node: NodeIndex) -> MoveResult<()> {
        let MoveRecord { shard, fence, .. } = self.record;
        let shards = match node == self.record.from {
            true => self.from,
            false => self.to,
        };
        loop {
            let position = self.record.position.clone();
            let begun = Instant::now();
            self.record.position = loop {
                match shards.drop_copy(shard, fence, position.as_deref()).await {
                    Ok(next) => break next,
                    // A copy that was not begun: a mover that was replaced is told so by the note.
                    Err(error) if error.kind == ErrorKind::StaleEpoch => break None,
                    Err(error) if error.is_transient() && begun.elapsed() < RETRY_MAX => {
                        self.pause(RETRY_PAUSE).await?;
                    }
                    Err(error) => return Err(at_node(&self.mover.nodes, node, error).into()),
                }
            };
            self.store().await?;
            self.pause(Duration::ZERO).await?;
            if self.record.position.is_none() {
                return Ok(());
            }
        }
    }

    async fn load_map(&self) -> MoveResult<ShardMap> {
        Ok(retried!(self, self.record.from, self.mover.maps.load()))
    }

    async fn enter(&mut self, phase: MovePhase) -> MoveResult<()> {
        self.record.phase = phase;
        self.record.position = None;
        self.record.is_sealed |= phase == MovePhase::Switch;
        self.scanned = 0;
        self.show();
        self.store().await
    }

    fn show(&self) {
        (self.progress)(MoveProgress {
            phase: self.record.phase,
            copied: self.record.copied,
            scanned: self.scanned,
        });
    }

    /// Stores how far the move has come, which is also a sign of life.
    pub(super) async fn store(&mut self) -> MoveResult<()> {
        self.record.seen = self.mover.clock.now();
        let record = Some(self.record.clone());
        self.store_as(record).await
    }

    async fn store_as(&mut self, record: Option<MoveRecord>) -> MoveResult<()> {
        let begun = Instant::now();
        loop {
            match self.stored.store(&*self.mover.maps, record.clone()).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(MoveError::TakenOver),
                Err(error) if error.is_transient() && begun.elapsed() < RETRY_MAX => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn finish(&mut self) -> MoveResult<()> {
        self.store_as(None).await
    }

    /// Lets another mover go on at once.
    pub(super) async fn let_go(&mut self) {
        self.record.seen = UnixMillis(0);
        let record = Some(self.record.clone());
        if let Err(error) = self.store_as(record).await {
            tracing::debug!(%error, "move not let go");
        }
    }

    /// A move is not stopped while its shard has no owner, or before the former one has given it up.
    async fn pause(&self, time: Duration) -> MoveResult<()> {
        let is_whole = matches!(self.record.phase, MovePhase::Copy | MovePhase::Drop);
        if is_whole && self.stop.is_cancelled() {
            return Err(MoveError::Stopped);
        }
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        Ok(())
    }
}
