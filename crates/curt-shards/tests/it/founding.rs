//! The first map, and lists of nodes that do not fit it.

use std::sync::Arc;

use curt_core::ports::{LinkShards, LinkStore, LinkTotals, ShardMaps};
use curt_core::{ErrorKind, NodeIndex, ShardId, ShardMap};
use curt_memory::{MemoryLinkStore, MemoryShardMaps};
use curt_testkit::sample::{SampleWrites, id, link};

use crate::nodes::{MODULO, RANGE, over};

type Nodes = Vec<Arc<dyn LinkShards>>;

fn nodes(count: usize) -> Nodes {
    let node = |_| Arc::new(MemoryLinkStore::new()) as Arc<dyn LinkShards>;
    (0..count).map(node).collect()
}

async fn insert_into(node: &Arc<dyn LinkShards>, key: &str) {
    let links = node.routed_by(Arc::default());
    assert_eq!(links.insert(vec![link(key)]).await.unwrap(), [true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_make_one_first_map() {
    let (nodes, maps) = (nodes(4), Arc::new(MemoryShardMaps::new()));
    let routers: Vec<_> = [MODULO, RANGE]
        .into_iter()
        .cycle()
        .take(16)
        .map(|placement| over(nodes.clone(), maps.clone(), placement))
        .collect();
    let opened = routers.iter().map(|router| {
        let router = router.clone();
        tokio::spawn(async move { router.open_map().await })
    });
    for opened in opened.collect::<Vec<_>>() {
        opened.await.unwrap().unwrap();
    }
    let map = maps.load().await.unwrap();
    assert!([ShardMap::by_modulo(4), ShardMap::by_range(4)].contains(&Some(map)));
    assert!(routers.iter().all(|router| router.map_version() == 1));
}

#[tokio::test]
async fn links_that_are_there_stay_on_the_first_node() {
    let (nodes, maps) = (nodes(3), Arc::new(MemoryShardMaps::new()));
    insert_into(&nodes[0], "old").await;
    let router = over(nodes, maps.clone(), MODULO);
    assert_eq!(router.get(&id("old")).await.unwrap(), Some(link("old")));
    assert_eq!(maps.load().await.unwrap().nodes(), [NodeIndex(0)]);
}

#[tokio::test]
async fn a_node_that_joins_with_links_is_refused() {
    let nodes = nodes(3);
    insert_into(&nodes[2], "stray").await;
    let router = over(nodes, Arc::new(MemoryShardMaps::new()), MODULO);
    let refused = router.open_map().await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert!(refused.detail.contains("node 2"), "{refused}");
}

#[tokio::test]
async fn a_list_in_another_order_is_refused() {
    let (nodes, maps) = (nodes(4), Arc::new(MemoryShardMaps::new()));
    over(nodes.clone(), maps.clone(), MODULO)
        .open_map()
        .await
        .unwrap();
    let mut swapped = nodes.clone();
    swapped.swap(1, 2);
    let router = over(swapped, maps.clone(), MODULO);
    let refused = router.open_map().await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert!(refused.detail.contains("curt shards show"), "{refused}");
    // Without a check at the start, too: no link is read from, or written to, a node that is not its own.
    for key in (0..64).map(|n| format!("k{n}")) {
        let is_swapped = [1, 2].contains(&(ShardId::of(&id(&key)).number() % 4));
        let read = router.get(&id(&key)).await;
        assert_eq!(read.is_err(), is_swapped, "{key}: {read:?}");
        assert_eq!(
            router.insert(vec![link(&key)]).await.is_err(),
            is_swapped,
            "{key}"
        );
    }
}

#[tokio::test]
async fn another_database_at_a_nodes_place_is_refused() {
    let (mut nodes, maps) = (nodes(4), Arc::new(MemoryShardMaps::new()));
    let first = over(nodes.clone(), maps.clone(), MODULO);
    first.open_map().await.unwrap();
    nodes[3] = Arc::new(MemoryLinkStore::new());
    let refused = over(nodes, maps, MODULO).open_map().await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert!(refused.detail.contains("node 3"), "{refused}");
}

#[tokio::test]
async fn a_list_that_lacks_a_node_is_refused() {
    let (mut nodes, maps) = (nodes(4), Arc::new(MemoryShardMaps::new()));
    let first = over(nodes.clone(), maps.clone(), MODULO);
    first.open_map().await.unwrap();
    nodes.pop();
    let refused = over(nodes, maps, MODULO).open_map().await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert!(refused.detail.contains("names 3 nodes"), "{refused}");
}

#[tokio::test]
async fn one_database_under_two_addresses_is_refused() {
    let mut nodes = nodes(2);
    nodes.push(nodes[0].clone());
    let router = over(nodes, Arc::new(MemoryShardMaps::new()), MODULO);
    let refused = router.open_map().await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert!(refused.detail.contains("same database"), "{refused}");
}

#[tokio::test]
async fn an_address_that_is_not_a_node_yet_gets_nothing() {
    let (mut nodes, maps) = (nodes(2), Arc::new(MemoryShardMaps::new()));
    let first = over(nodes.clone(), maps.clone(), MODULO);
    first.open_map().await.unwrap();
    let spare = Arc::new(MemoryLinkStore::new());
    nodes.push(spare.clone());
    let router = over(nodes, maps, MODULO);
    router.open_map().await.unwrap();
    for n in 0..64 {
        router.insert(vec![link(&format!("k{n}"))]).await.unwrap();
    }
    assert_eq!(spare.counts().await.unwrap().live, 0);
    assert_eq!(router.counts().await.unwrap().live, 64);
}
