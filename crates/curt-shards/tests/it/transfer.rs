//! Copies of links over several nodes.

use std::sync::Arc;

use curt_core::ports::{LinkShards, LinkTransfer, ShardMaps, Transfer as _};
use curt_core::{ErrorKind, Link, NodeIndex, Placement, ShardId};
use curt_memory::{MemoryLinkStore, MemoryShardMaps};
use curt_postgres::Postgres;
use curt_shards::{ShardRouter, ShardedTransfer, TransferNode};
use curt_testkit::conformance::transfer::LinkTransferPorts;
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;
use curt_testkit::sample::{SampleWrites as _, later, link};

use crate::nodes::{MODULO, RING, databases, over, settings};

/// A store over several nodes, and its map.
struct World {
    router: Arc<ShardRouter>,
    transfer: Arc<ShardedTransfer>,
    maps: Arc<dyn ShardMaps>,
}

impl World {
    async fn open(
        nodes: Vec<(Arc<dyn LinkShards>, Arc<dyn LinkTransfer>)>,
        maps: Arc<dyn ShardMaps>,
        placement: Placement,
    ) -> Self {
        let (shards, transfers): (Vec<_>, Vec<_>) = nodes.into_iter().unzip();
        let router = over(shards, Arc::clone(&maps), placement);
        router.open_map().await.unwrap();
        let map = Arc::new(maps.load().await.unwrap());
        let node = |(index, transfer)| TransferNode {
            index: NodeIndex(index),
            name: format!("node {index}").into(),
            transfer,
        };
        let nodes = (0..).zip(transfers).map(node).collect();
        let transfer = Arc::new(ShardedTransfer::new(nodes, map, Arc::clone(&maps)));
        Self {
            router,
            transfer,
            maps,
        }
    }

    async fn in_memory(stores: &[Arc<MemoryLinkStore>]) -> Self {
        let ports = |store: &Arc<MemoryLinkStore>| (store.clone() as _, store.clone() as _);
        let nodes = stores.iter().map(ports).collect();
        Self::open(nodes, Arc::new(MemoryShardMaps::new()), MODULO).await
    }

    fn ports(self) -> LinkTransferPorts {
        LinkTransferPorts {
            links: self.router.clone(),
            transfer: self.transfer,
            seeded: Some(self.router),
        }
    }
}

fn stores() -> [Arc<MemoryLinkStore>; 4] {
    [0; 4].map(|_| Arc::new(MemoryLinkStore::new()))
}

mod in_memory {
    use super::*;

    curt_testkit::link_transfer_tests!(((), World::in_memory(&stores()).await.ports()));
    curt_testkit::followed_link_tests!(((), World::in_memory(&stores()).await.ports()));
}

mod in_databases {
    use super::*;

    macro_rules! fresh {
        () => {{
            let server = need!(shared());
            let databases = databases(&server);
            let open = |url: String| Postgres::open(&url, &settings()).unwrap();
            let nodes = databases.each_ref().map(|database| open(database.url()));
            let maps = nodes[0].shard_maps();
            let ports = nodes.map(|node| (node.shards(), node.link_transfer(Arc::default())));
            (
                databases,
                World::open(ports.into(), maps, RING).await.ports(),
            )
        }};
    }

    curt_testkit::link_transfer_tests!(fresh!());
    curt_testkit::followed_link_tests!(fresh!());
}

fn made(n: u64) -> Link {
    Link {
        created_at: later(n),
        updated_at: later(n),
        ..link(&format!("k{n}"))
    }
}

#[tokio::test]
async fn a_shard_that_moves_while_everything_is_read_is_told() {
    let world = World::in_memory(&stores()).await;
    let links = (0..3_000).map(made).collect();
    world.router.insert(links).await.unwrap();
    let first = world.transfer.export_all(None).await.unwrap();
    let map = world.maps.load().await.unwrap();
    let shard = ShardId::of(&made(1).id);
    let moved = map.moved(shard, NodeIndex(map.node(shard).0 ^ 1));
    assert!(world.maps.advance(&moved).await.unwrap());
    for after in [None, first.next.as_deref()] {
        let read = world.transfer.export_all(after).await;
        assert_eq!(read.unwrap_err().kind, ErrorKind::StaleEpoch);
    }
    let followed = world.transfer.follow_changes(u64::MAX >> 1).await;
    assert_eq!(followed.unwrap_err().kind, ErrorKind::StaleEpoch);
}

/// What a move left behind, or has copied so far, is not the node's.
#[tokio::test]
async fn what_a_node_does_not_own_is_not_exported() {
    let stores = stores();
    let world = World::in_memory(&stores).await;
    let links = (0..500).map(made).collect();
    world.router.insert(links).await.unwrap();
    let map = world.maps.load().await.unwrap();
    let owner = map.node(ShardId::of(&made(7).id)).0;
    let other = &stores[usize::try_from(owner ^ 1).unwrap()];
    other.insert(vec![made(7)]).await.unwrap();
    let part = world.transfer.export_all(None).await.unwrap();
    assert_eq!(part.items.len(), 500);
}

/// An export whose answer was lost is repeated, with the same answer.
#[tokio::test]
async fn a_part_that_is_asked_for_again_is_the_same() {
    let world = World::in_memory(&stores()).await;
    let links = (0..3_500).map(made).collect();
    world.router.insert(links).await.unwrap();
    let (mut position, mut count) = (None::<Box<str>>, 0);
    loop {
        let part = world
            .transfer
            .export_all(position.as_deref())
            .await
            .unwrap();
        let again = world
            .transfer
            .export_all(position.as_deref())
            .await
            .unwrap();
        assert_eq!(part, again);
        count += part.items.len();
        match part.next {
            Some(next) => position = Some(next),
            None => break,
        }
    }
    assert_eq!(count, 3_500);
}
