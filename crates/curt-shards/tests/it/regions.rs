//! Nodes in regions, and the keys that belong to one.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{LinkHomes as _, LinkShards, MapNote, ShardMaps};
use curt_core::{ErrorKind, NodeIndex, ShardId};
use curt_memory::{MemoryLinkStore, MemoryShardMaps};
use curt_shards::{ShardRouter, assign_region, node_regions};
use curt_testkit::sample::id;
use tokio_util::sync::CancellationToken;

use crate::nodes::{MODULO, named};

const WAIT_MAX: Duration = Duration::from_secs(60);

fn shares(router: &ShardRouter) -> [usize; 2] {
    let keys = (0..400).map(|n| id(&format!("key-{n}")));
    let home = keys.filter(|id| router.is_home(id));
    let mut shares = [0; 2];
    home.for_each(|id| shares[usize::from(ShardId::of(&id).number() % 2)] += 1);
    shares
}

#[tokio::test]
async fn keys_are_at_home_on_the_nodes_of_the_own_region_and_servers_follow_it() {
    let node = |_| Arc::new(MemoryLinkStore::new()) as Arc<dyn LinkShards>;
    let nodes: Vec<_> = (0..2).map(node).collect();
    let maps: Arc<dyn ShardMaps> = Arc::new(MemoryShardMaps::new());
    let server = |region: &str| {
        let region = Some(region.into());
        ShardRouter::in_region(named(nodes.clone()), Arc::clone(&maps), MODULO, region)
    };
    let (eu, us) = (server("eu"), server("us"));
    assert_refused_before_the_first_map(&nodes, &*maps).await;
    for router in [&eu, &us] {
        router.open_map().await.unwrap();
        assert!(
            shares(router).iter().all(|share| *share > 100),
            "no regions"
        );
    }
    let before = maps.load().await.unwrap();
    assign_region(&*maps, NodeIndex(1), Some("us"))
        .await
        .unwrap();
    assign_region(&*maps, NodeIndex(0), Some("eu"))
        .await
        .unwrap();
    let regions = node_regions(&*maps).await.unwrap();
    assert_eq!(regions, [Some("eu".into()), Some("us".into())]);
    let after = maps.load().await.unwrap();
    assert!(ShardId::all().all(|shard| {
        (before.node(shard), before.epoch(shard)) == (after.node(shard), after.epoch(shard))
    }));

    let stop = CancellationToken::new();
    let followers = [&eu, &us].map(|router| {
        let (router, stop) = (Arc::clone(router), stop.clone());
        tokio::spawn(async move { router.follow_map(stop).await })
    });
    let followed = async {
        while [&eu, &us]
            .iter()
            .any(|router| router.map_version() < after.version())
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, followed).await.unwrap();
    let ([eu_home, eu_away], [us_away, us_home]) = (shares(&eu), shares(&us));
    assert!(eu_home > 100 && us_home > 100);
    assert_eq!((eu_away, us_away), (0, 0));
    // Where the own region has no node, no key is better than another.
    let lone = server("asia");
    lone.open_map().await.unwrap();
    assert!(shares(&lone).iter().all(|share| *share > 100));

    assign_region(&*maps, NodeIndex(1), None).await.unwrap();
    assert_eq!(node_regions(&*maps).await.unwrap()[1], None);
    for (node, region) in [(2, "eu"), (0, "two words"), (0, "")] {
        let refused = assign_region(&*maps, NodeIndex(node), Some(region)).await;
        assert_eq!(
            refused.unwrap_err().kind,
            ErrorKind::Invalid,
            "{node} {region}"
        );
    }
    stop.cancel();
    for follower in followers {
        follower.await.unwrap();
    }
}

/// The nodes are noted before the first map: no other map may come in its place.
async fn assert_refused_before_the_first_map(nodes: &[Arc<dyn LinkShards>], maps: &dyn ShardMaps) {
    let mut identities = Vec::new();
    for node in nodes {
        identities.push(node.identity().await.unwrap());
    }
    for is_noted in [false, true] {
        if is_noted {
            let note = MapNote::default().followed_by(identities.join("\n"));
            assert!(maps.put_note("nodes", &note).await.unwrap());
        }
        let early = assign_region(maps, NodeIndex(0), Some("eu")).await;
        assert_eq!(early.unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(maps.load().await.unwrap().version(), 0);
    }
}
