//! Calls that were routed by an old map.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{ChangeReply, LinkShards, LinkStore, ShardMaps};
use curt_core::{Epoch, ErrorKind, Link, NodeIndex, Revision, ShardId};
use curt_memory::{MemoryLinkStore, MemoryShardMaps};
use curt_shards::ShardRouter;
use curt_testkit::sample::{NOW, SampleWrites, id, link};
use tokio_util::sync::CancellationToken;

use crate::nodes::{MODULO, over};

struct World {
    nodes: Vec<Arc<dyn LinkShards>>,
    maps: Arc<MemoryShardMaps>,
    router: Arc<ShardRouter>,
    shard: ShardId,
}

impl World {
    /// Two nodes, of which the first has the shard of "a".
    async fn new() -> Self {
        let shard = ShardId::of(&id("a"));
        let node = |_| Arc::new(MemoryLinkStore::new()) as Arc<dyn LinkShards>;
        let nodes: Vec<_> = (0..2).map(node).collect();
        let maps = Arc::new(MemoryShardMaps::new());
        let router = over(nodes.clone(), maps.clone(), MODULO);
        router.open_map().await.unwrap();
        if router_node(&maps, shard).await == NodeIndex(1) {
            let map = maps.load().await.unwrap().moved(shard, NodeIndex(0));
            assert!(maps.advance(&map).await.unwrap());
        }
        let router = over(nodes.clone(), maps.clone(), MODULO);
        router.open_map().await.unwrap();
        Self {
            nodes,
            maps,
            router,
            shard,
        }
    }

    /// Takes writes to the shard from the first node.
    async fn seal(&self) {
        let epoch = self.maps.load().await.unwrap().epoch(self.shard);
        let next = Epoch(epoch.0 + 1);
        self.nodes[0].seal(self.shard, next).await.unwrap();
    }

    /// Makes the second node the owner.
    async fn advance(&self) {
        let map = self.maps.load().await.unwrap();
        let next = map.moved(self.shard, NodeIndex(1));
        assert!(self.maps.advance(&next).await.unwrap());
    }
}

async fn router_node(maps: &MemoryShardMaps, shard: ShardId) -> NodeIndex {
    maps.load().await.unwrap().node(shard)
}

#[tokio::test]
async fn a_write_by_an_old_map_goes_to_the_new_owner_l4() {
    let world = World::new().await;
    let other = (0..).map(|n| format!("x{n}"));
    let other = other.filter(|key| ShardId::of(&id(key)) != world.shard);
    let bulk: Vec<Link> = other.take(20).map(|key| link(&key)).collect();
    let bulk = [bulk, vec![link("a")]].concat();
    world.seal().await;
    world.advance().await;
    let inserted = world.router.insert(bulk).await.unwrap();
    assert_eq!(inserted, vec![true; 21]);
    let owner = world.nodes[1].routed_by(Arc::default());
    assert_eq!(owner.get(&id("a")).await.unwrap(), Some(link("a")));
    let former = world.nodes[0].routed_by(Arc::default());
    assert_eq!(former.get(&id("a")).await.unwrap(), None);
}

#[tokio::test]
async fn a_write_waits_while_its_shard_has_no_owner() {
    let world = World::new().await;
    world.seal().await;
    let router = world.router.clone();
    let write = tokio::spawn(async move { router.insert(vec![link("a")]).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!write.is_finished());
    world.advance().await;
    assert_eq!(write.await.unwrap().unwrap(), [true]);
    let deleted = world.router.delete_at(&id("a"), Revision::FIRST, NOW).await;
    assert!(matches!(deleted.unwrap(), ChangeReply::Changed(_)));
}

#[tokio::test]
async fn a_write_gives_up_when_no_owner_comes() {
    let world = World::new().await;
    world.seal().await;
    let begun = tokio::time::Instant::now();
    let refused = world.router.insert(vec![link("a")]).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_router_follows_the_map() {
    let world = World::new().await;
    let (stop, router) = (CancellationToken::new(), world.router.clone());
    let follow = tokio::spawn({
        let stop = stop.clone();
        async move { router.follow_map(stop).await }
    });
    let seen = world.router.map_version();
    world.advance().await;
    while world.router.map_version() == seen {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.cancel();
    follow.await.unwrap();
}
