//! Two nodes with a shard that moves between them, and movers that may die.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{LinkShards, ShardMaps};
use curt_core::{NodeIndex, ShardId, SystemClock};
use curt_memory::{MemoryLinkStore, MemoryShardMaps};
use curt_shards::{MoveProgress, MoveReport, MoverSettings, ShardMover, ShardRouter};
use curt_testkit::sample::id;
use tokio_util::sync::CancellationToken;

use crate::mortal::{Life, Mortal};
use crate::nodes::{MODULO, named, over};

pub(crate) type Nodes = Vec<Arc<dyn LinkShards>>;

/// Two nodes, the keys of one shard, and routers as two servers have them.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) nodes: Nodes,
    pub(crate) maps: Arc<dyn ShardMaps>,
    pub(crate) shard: ShardId,
    pub(crate) servers: [Arc<ShardRouter>; 2],
}

impl World {
    pub(crate) async fn new(nodes: Nodes, maps: Arc<dyn ShardMaps>) -> Self {
        let servers = [(); 2].map(|()| over(nodes.clone(), maps.clone(), MODULO));
        for server in &servers {
            server.open_map().await.unwrap();
        }
        Self {
            shard: ShardId::of(&id("a")),
            nodes,
            maps,
            servers,
        }
    }

    pub(crate) async fn in_memory() -> Self {
        let node = |_| Arc::new(MemoryLinkStore::new()) as Arc<dyn LinkShards>;
        let nodes = (0..2).map(node).collect();
        Self::new(nodes, Arc::new(MemoryShardMaps::new())).await
    }

    /// Keys of the shard that moves, beginning so.
    pub(crate) fn keys(&self, prefix: &str, count: usize) -> Vec<String> {
        let names = (0..).map(|n| format!("{prefix}{n}"));
        let own = names.filter(|name| ShardId::of(&id(name)) == self.shard);
        own.take(count).collect()
    }

    pub(crate) async fn owner(&self) -> NodeIndex {
        self.maps.load().await.unwrap().node(self.shard)
    }

    pub(crate) async fn other(&self) -> NodeIndex {
        NodeIndex(1 - self.owner().await.0)
    }

    pub(crate) fn mover(&self) -> ShardMover {
        self.mover_over(self.nodes.clone(), self.maps.clone(), Duration::ZERO)
    }

    pub(crate) fn mover_over(
        &self,
        nodes: Nodes,
        maps: Arc<dyn ShardMaps>,
        takeover_after: Duration,
    ) -> ShardMover {
        let settings = MoverSettings {
            items_per_second: None,
            holder: "a test".into(),
            takeover_after,
        };
        ShardMover::new(named(nodes), maps, Arc::new(SystemClock), settings)
    }

    /// A mover that lives for so many calls.
    pub(crate) fn mortal_mover(&self, life: &Arc<Life>) -> ShardMover {
        let mortal = |inner: &Arc<dyn LinkShards>| {
            let (inner, life) = (inner.clone(), life.clone());
            Arc::new(Mortal { inner, life }) as Arc<dyn LinkShards>
        };
        let maps = Mortal {
            inner: self.maps.clone(),
            life: life.clone(),
        };
        let nodes = self.nodes.iter().map(mortal).collect();
        self.mover_over(nodes, Arc::new(maps), Duration::ZERO)
    }

    /// Moves the shard to the other node, by a mover that may die. `None`: it died.
    pub(crate) async fn move_until_death(
        &self,
        life: &Arc<Life>,
        wait: Duration,
    ) -> Option<MoveReport> {
        let to = self.other().await;
        let (mover, stop) = (self.mortal_mover(life), CancellationToken::new());
        let moved = mover.move_shard(self.shard, to, &stop, &quiet);
        let moved = tokio::time::timeout(wait, moved).await.ok()?;
        Some(moved.unwrap())
    }

    pub(crate) async fn resume(&self) -> Option<MoveReport> {
        let stop = CancellationToken::new();
        self.mover().resume(&stop, &quiet).await.unwrap()
    }

    pub(crate) async fn cancel(&self) {
        let stop = CancellationToken::new();
        self.mover().cancel(&stop, &quiet).await.unwrap();
    }
}

pub(crate) fn quiet(_: MoveProgress) {}
