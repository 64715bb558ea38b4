//! Moves a shard to another node while links are read and written.
//!
//! Every step (`run.rs`) can be repeated, and how far the move has come is stored beside the map (`record.rs`): after a
//! crash of the mover, of a server or of a database, any mover goes on. Two movers exclude each other by
//! compare-and-set on that note; one that was replaced and does not know it is refused by the nodes, which compare
//! fences.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{LinkShards, ShardMaps};
use curt_core::{Clock, Epoch, NodeIndex, PortError, PortResult, ShardId};
use tokio_util::sync::CancellationToken;

use super::record::{MovePhase, MoveRecord, StoredMove};
use super::run::Run;
use crate::node::{self, NodeList, ShardNode};

/// Why a move did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("{0}")]
    Port(#[from] PortError),
    #[error("{0} moves a shard at this moment: wait for it, or stop it first")]
    Busy(Box<str>),
    #[error("the move of shard {shard} to node {to} did not come to its end: run `curt shards resume` or `curt shards cancel`", shard = .0.shard.number(), to = .0.to.0)]
    Unfinished(Box<MoveRecord>),
    #[error("another mover has taken over")]
    TakenOver,
    #[error(
        "stopped: `curt shards resume` goes on, `curt shards cancel` takes back what was copied"
    )]
    Stopped,
    #[error("{0}")]
    Refused(String),
}

pub(super) type MoveResult<T> = Result<T, MoveError>;

#[derive(Clone, Debug)]
pub struct MoverSettings {
    /// Items copied in a second at most. `None`: as many as the engines take.
    pub items_per_second: Option<u64>,
    /// How the mover describes itself to others.
    pub holder: Box<str>,
    /// Another mover that gave no sign of life for this long is dead.
    pub takeover_after: Duration,
}

/// How far a move has come.
#[derive(Clone, Debug)]
pub struct MoveProgress {
    pub phase: MovePhase,
    pub copied: u64,
    /// Rows that were looked at in this phase.
    pub scanned: u64,
}

/// What a move did.
#[derive(Clone, Debug, Default)]
pub struct MoveReport {
    pub copied: u64,
    /// How long writes to the shard had to wait.
    pub write_pause: Duration,
}

pub struct ShardMover {
    pub(super) nodes: Vec<ShardNode>,
    pub(super) maps: Arc<dyn ShardMaps>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: MoverSettings,
}

impl ShardMover {
    #[must_use]
    pub fn new(
        nodes: Vec<ShardNode>,
        maps: Arc<dyn ShardMaps>,
        clock: Arc<dyn Clock>,
        settings: MoverSettings,
    ) -> Self {
        Self {
            nodes,
            maps,
            clock,
            settings,
        }
    }

    /// The move under way, if there is one.
    pub async fn unfinished(&self) -> PortResult<Option<MoveRecord>> {
        Ok(StoredMove::load(&*self.maps).await?.record)
    }

    /// Moves a shard. Refused while another move is under way or unfinished.
    pub async fn move_shard(
        &self,
        shard: ShardId,
        to: NodeIndex,
        stop: &CancellationToken,
        progress: &(dyn Fn(MoveProgress) + Sync),
    ) -> MoveResult<MoveReport> {
        let map = self.maps.load().await?;
        let from = map.node(shard);
        if from == to {
            return Ok(MoveReport::default());
        }
        let stored = StoredMove::load(&*self.maps).await?;
        if let Some(record) = &stored.record {
            self.require_dead(record)?;
            return Err(MoveError::Unfinished(Box::new(record.clone())));
        }
        let record = MoveRecord {
            shard,
            from,
            to,
            epoch: Epoch(map.epoch(shard).0 + 1),
            phase: MovePhase::Copy,
            is_copied: false,
            is_sealed: false,
            copied: 0,
            fence: stored.next_fence(),
            seen: self.clock.now(),
            holder: self.settings.holder.clone(),
            position: None,
        };
        self.start(stored, record, stop, progress).await
    }

    /// Goes on with the move of a mover that is dead or stopped. `None`: there is none.
    pub async fn resume(
        &self,
        stop: &CancellationToken,
        progress: &(dyn Fn(MoveProgress) + Sync),
    ) -> MoveResult<Option<MoveReport>> {
        self.take_over(|_| {}, stop, progress).await
    }

    /// Takes back the move of a mover that is dead or stopped, or ends it where the new owner has the shard already.
    /// `None`: there is none.
    pub async fn cancel(
        &self,
        stop: &CancellationToken,
        progress: &(dyn Fn(MoveProgress) + Sync),
    ) -> MoveResult<Option<MoveReport>> {
        let cancel = |record: &mut MoveRecord| {
            if matches!(record.phase, MovePhase::Copy | MovePhase::Switch) {
                record.phase = MovePhase::Cancel;
                record.position = None;
            }
        };
        self.take_over(cancel, stop, progress).await
    }

    async fn take_over(
        &self,
        change: impl FnOnce(&mut MoveRecord),
        stop: &CancellationToken,
        progress: &(dyn Fn(MoveProgress) + Sync),
    ) -> MoveResult<Option<MoveReport>> {
        let stored = StoredMove::load(&*self.maps).await?;
        let Some(mut record) = stored.record.clone() else {
            return Ok(None);
        };
        self.require_dead(&record)?;
        record.fence = stored.next_fence();
        record.holder = self.settings.holder.clone();
        change(&mut record);
        self.start(stored, record, stop, progress).await.map(Some)
    }

    fn require_dead(&self, record: &MoveRecord) -> MoveResult<()> {
        match self.clock.now().since(record.seen) < self.settings.takeover_after {
            true => Err(MoveError::Busy(record.holder.clone())),
            false => Ok(()),
        }
    }

    async fn start(
        &self,
        stored: StoredMove,
        record: MoveRecord,
        stop: &CancellationToken,
        progress: &(dyn Fn(MoveProgress) + Sync),
    ) -> MoveResult<MoveReport> {
        let list = NodeList::load(&*self.maps).await?;
        let from = self.known_node(&list, record.from).await?;
        let to = self.known_node(&list, record.to).await?;
        let mut run = Run {
            mover: self,
            from,
            to,
            stored,
            record,
            stop,
            progress,
            scanned: 0,
            report: MoveReport::default(),
        };
        run.store().await?;
        let ended = run.run().await;
        if let Err(MoveError::Stopped) = &ended {
            run.let_go().await;
        }
        ended.map(|()| run.report)
    }
}

impl ShardMover {
    /// A node, which must be the database that the map means.
    async fn known_node(
        &self,
        list: &NodeList,
        index: NodeIndex,
    ) -> MoveResult<&Arc<dyn LinkShards>> {
        let identity = usize::try_from(index.0).ok();
        let identity = identity.and_then(|index| list.identities.get(index));
        let (Some(node), Some(identity)) = (node::find(&self.nodes, index), identity) else {
            return Err(MoveError::Refused(format!(
                "there is no node {}: name its address in store.links, and run `curt shards add`",
                index.0
            )));
        };
        node.require_identity(index, identity).await?;
        Ok(&node.shards)
    }
}
