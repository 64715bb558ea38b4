//! Supplies of several processes over the same engines: who looks after what, and K-2 over all of them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::ports::{BatchId, KeyPool};
use curt_core::{Key, OwnerId, PortResult, Target};
use curt_keys::{KeyMetrics, KeyRequest, KeySupply, Strategy};
use curt_memory::MemoryKeyPool;
use tokio_util::sync::CancellationToken;

use crate::world::{World, small, take};

fn pool(cap: usize) -> Arc<dyn KeyPool> {
    Arc::new(MemoryKeyPool::new(cap))
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

async fn settled(supply: &KeySupply) {
    for _ in 0..3 {
        supply.keygen_pass(&CancellationToken::new()).await;
        supply.keysync_pass(&CancellationToken::new()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_adopted_shard_is_given_up_when_it_is_filled() {
    let mut world = World::new();
    world.pools = (0..3).map(|_| pool(1_000)).collect();
    let ports = world.life();
    let mut settings = small(Strategy::Pool);
    settings.pool.shards_max = 2;
    let one = KeySupply::open_behind(&settings, ports.clone(), KeyMetrics::default()).unwrap();
    settled(&one).await;
    tokio::time::advance(settings.lease_ttl).await;
    settled(&one).await;
    assert!(world.pools[2].depth().await.unwrap() >= 20, "adopted");
    let holder = ports
        .leases
        .holder("shard-locks/keys-pool-2")
        .await
        .unwrap();
    assert_eq!(holder, None, "left to whoever comes");
    // What does not run low is nobody's concern.
    let two = KeySupply::open_behind(&settings, ports.clone(), KeyMetrics::default()).unwrap();
    settled(&two).await;
    let holder = ports
        .leases
        .holder("shard-locks/keys-pool-2")
        .await
        .unwrap();
    assert!(holder.is_some(), "a keysync with room takes it for good");
}

#[tokio::test]
async fn a_supply_behind_takes_no_keys_for_itself_and_needs_no_links() {
    let mut world = World::new();
    world.pools = vec![pool(1_000)];
    let mut ports = world.life();
    ports.links = None;
    let settings = small(Strategy::Pool);
    let behind = KeySupply::open_behind(&settings, ports, KeyMetrics::default()).unwrap();
    settled(&behind).await;
    let depth = world.pools[0].depth().await.unwrap();
    assert!(depth >= 20, "{depth}");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(world.pools[0].depth().await.unwrap(), depth);
    behind.close().await.unwrap();
    assert_eq!(world.pools[0].depth().await.unwrap(), depth);
    assert_eq!(world.ledgers[0].counts().await.unwrap().open, 0);
}

#[tokio::test]
async fn k2_holds_over_processes_and_a_killed_buffer_counts_as_leaked() {
    let mut world = World::new();
    world.pools = vec![pool(1_000)];
    let ports = world.life();
    let settings = small(Strategy::Pool);
    let open = || KeySupply::open(settings.clone(), ports.clone(), KeyMetrics::default());
    let behind = KeySupply::open_behind(&settings, ports.clone(), KeyMetrics::default()).unwrap();
    settled(&behind).await;
    let (one, two) = (open().await.unwrap(), open().await.unwrap());
    one.filled().await;
    two.filled().await;
    for (number, supply) in [&one, &two, &one].into_iter().enumerate() {
        let supplied = take(supply, number as u64).await;
        world.store(&supplied).await;
    }
    let stop = CancellationToken::new();
    let present =
        [&one, &two].map(|supply| tokio::spawn(Arc::clone(supply).run_heartbeat(stop.clone())));
    tokio::time::sleep(Duration::from_millis(50)).await;
    stop.cancel();
    for task in present {
        task.await.unwrap();
    }
    let seen = behind.count_keys().await.unwrap();
    assert!(seen.balances() && seen.leaked == 0, "{seen:?}");
    assert!(seen.buffered > 0 && seen.used == 3, "{seen:?}");
    one.close().await.unwrap();
    let buffer = behind.count_keys().await.unwrap().buffered;
    assert!(
        buffer > 0 && buffer < seen.buffered,
        "one gave its keys back"
    );
    drop(two);
    world.clock.advance(Duration::from_secs(60));
    let after = behind.count_keys().await.unwrap();
    assert_eq!((after.leaked, after.buffered), (buffer, 0), "{after:?}");
}

/// A refill of engines that creates use too: in pieces, up to the high watermark, with the batches closed in the end.
#[tokio::test(start_paused = true)]
async fn a_shared_pool_is_refilled_without_haste() {
    let mut world = World::new();
    let shared = pool(10_000);
    world.pools = vec![Arc::clone(&shared)];
    let mut settings = small(Strategy::Pool);
    (settings.ledger.low, settings.ledger.high) = (3_000, 4_000);
    (settings.pool.low, settings.pool.high) = (1_000, 2_000);
    let behind = KeySupply::open_behind(&settings, world.life(), KeyMetrics::default()).unwrap();
    settled(&behind).await;
    assert_eq!(shared.depth().await.unwrap(), 2_000, "empty ones at once");
    let stop = CancellationToken::new();
    let work = [
        tokio::spawn(Arc::clone(&behind).run_keygen(stop.clone())),
        tokio::spawn(Arc::clone(&behind).run_keysync(stop.clone())),
    ];
    assert_eq!(shared.pop(1_100).await.unwrap().len(), 1_100);
    let mut depth = shared.depth().await.unwrap();
    let begun = tokio::time::Instant::now();
    while depth < 2_000 && begun.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = shared.depth().await.unwrap();
        assert!(now - depth <= 100, "{} keys at once", now - depth);
        depth = now;
    }
    assert_eq!(depth, 2_000);
    assert!(
        begun.elapsed() >= Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    tokio::time::sleep(settings.tick * 2).await;
    assert_eq!(world.ledgers[0].counts().await.unwrap().open, 0, "closed");
    assert_eq!(shared.pop(1_500).await.unwrap().len(), 1_500);
    tokio::time::sleep(settings.tick * 2).await;
    assert_eq!(shared.depth().await.unwrap(), 2_000, "short of keys");
    stop.cancel();
    for task in work {
        task.await.unwrap();
    }
    behind.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_shard_does_not_hold_up_the_others() {
    let mut world = World::new();
    let full = pool(1_000);
    let keys: Vec<Key> = (0..100).map(|n| key(&format!("k{n:03}"))).collect();
    full.push(&BatchId("b".into()), &keys).await.unwrap();
    world.pools = vec![Arc::new(SilentPool), full];
    let begun = tokio::time::Instant::now();
    let supply = KeySupply::open(small(Strategy::Pool), world.life(), KeyMetrics::default())
        .await
        .unwrap();
    supply.filled().await;
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert!(take(&supply, 0).await.key.as_str().starts_with('k'));
}

struct SilentPool;

#[async_trait]
impl KeyPool for SilentPool {
    async fn push(&self, _: &BatchId, _: &[Key]) -> PortResult<usize> {
        std::future::pending().await
    }
    async fn pop(&self, _: usize) -> PortResult<Vec<Key>> {
        std::future::pending().await
    }
    async fn peek(&self, _: u64, _: usize) -> PortResult<Vec<Key>> {
        std::future::pending().await
    }
    async fn depth(&self) -> PortResult<u64> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_replaced_owner_stops_and_fences_that_went_back_stop_nobody() {
    let world = World::new();
    let ledger = &world.ledgers[0];
    ledger.insert_fenced(u64::MAX, &[]).await.unwrap();
    let settings = small(Strategy::Pool);
    let mut ports = world.life();
    ports.ledgers.clone_from(&world.ledgers);
    let keygen = KeySupply::open_behind(&settings, ports, KeyMetrics::default()).unwrap();
    keygen.keygen_pass(&CancellationToken::new()).await;
    assert_eq!(ledger.counts().await.unwrap().minted, 0, "it stopped");
    keygen.keygen_pass(&CancellationToken::new()).await;
    assert!(
        ledger.counts().await.unwrap().minted > 0,
        "with a new lease it goes on"
    );
}

#[tokio::test]
async fn used_keys_in_a_row_cost_a_few_tries_and_then_a_random_key() {
    let mut world = World::new();
    world.pools = vec![pool(1_000)];
    let old: Vec<Key> = (0..100).map(|n| key(&format!("k{n:03}"))).collect();
    world.pools[0]
        .push(&BatchId("old".into()), &old)
        .await
        .unwrap();
    let metrics = KeyMetrics::default();
    let supply = KeySupply::open(small(Strategy::Pool), world.life(), metrics.clone())
        .await
        .unwrap();
    supply.filled().await;
    let target = Target::from_serialised("https://example.com/").unwrap();
    let mut origins = Vec::new();
    for attempt in 0..6 {
        let hint = KeyRequest {
            target: &target,
            owner: OwnerId(1),
            attempt,
        };
        origins.push(supply.take(&hint).await.origin);
    }
    assert_eq!(origins[..4], [KeyOrigin::Ledger; 4]);
    assert_eq!(origins[4..], [KeyOrigin::Random; 2]);
    assert_eq!(metrics.fallbacks.get(), 2);
}
