//! Ledger shards and pool shards: homes, watermarks, caps, dead and drained shards.

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::placement::Modulo;
use curt_core::ports::{BatchId, KeyLedger, KeyPool, LedgerCounts, OpenBatch};
use curt_core::{Alphabet, ErrorKind, Key, PortError, PortResult, UnixMillis};
use curt_keys::{KeyMetrics, KeySupply, Strategy};
use curt_memory::{MemoryKeyLedger, MemoryKeyPool};
use tokio_util::sync::CancellationToken;

use crate::world::{Running, World, key_counts_at_rest, small, take};

fn pool(cap: usize) -> Arc<dyn KeyPool> {
    Arc::new(MemoryKeyPool::new(cap))
}

#[tokio::test]
async fn every_key_lies_in_its_home_ledger_and_all_ledgers_reach_the_high_mark() {
    let mut world = World::new();
    world.ledgers = (0..3)
        .map(|_| Arc::new(MemoryKeyLedger::new()) as Arc<dyn KeyLedger>)
        .collect();
    let settings = small(Strategy::Pool);
    let supply = KeySupply::open_behind(&settings, world.life(), KeyMetrics::default()).unwrap();
    supply.keygen_pass(&CancellationToken::new()).await;
    let homes = Modulo::new(3).unwrap();
    for (shard, ledger) in world.ledgers.iter().enumerate() {
        let batch = BatchId("look".into());
        let keys = ledger.take(&batch, 1_000, UnixMillis(0)).await.unwrap();
        assert_eq!(keys.len(), 90);
        for key in keys {
            assert_eq!(homes.node(key.as_bytes()).0 as usize, shard);
        }
    }
}

#[tokio::test]
async fn minted_duplicates_are_counted_and_replaced() {
    let world = World::new();
    let mut settings = small(Strategy::Pool);
    settings.alphabet = Alphabet::Base36;
    settings.length = 4;
    settings.ledger.low = 99_999;
    settings.ledger.high = 100_000;
    settings.ledger.mint_batch = 5_000;
    let metrics = KeyMetrics::default();
    let supply = KeySupply::open_behind(&settings, world.life(), metrics.clone()).unwrap();
    supply.keygen_pass(&CancellationToken::new()).await;
    // 100,000 of 36^4 keys: about 3,000 were drawn twice.
    let duplicates = metrics.duplicates.get();
    assert!((2_000..4_500).contains(&duplicates), "{duplicates}");
    assert_eq!(world.ledgers[0].counts().await.unwrap().free, 100_000);
}

#[tokio::test]
async fn a_used_up_key_space_ends_the_pass_instead_of_spinning() {
    struct Full;
    #[async_trait]
    impl KeyLedger for Full {
        async fn insert(&self, _: &[Key]) -> PortResult<u64> {
            Ok(0)
        }
        async fn take(&self, _: &BatchId, _: usize, _: UnixMillis) -> PortResult<Vec<Key>> {
            Ok(Vec::new())
        }
        async fn close(&self, _: &[BatchId]) -> PortResult<()> {
            Ok(())
        }
        async fn give_back(&self, _: &BatchId, _: &[Key]) -> PortResult<u64> {
            Ok(0)
        }
        async fn open_batches(&self, _: UnixMillis, _: usize) -> PortResult<Vec<OpenBatch>> {
            Ok(Vec::new())
        }
        async fn recycle(&self, _: &[Key]) -> PortResult<u64> {
            Ok(0)
        }
        async fn counts(&self) -> PortResult<LedgerCounts> {
            Ok(Default::default())
        }
    }
    let mut world = World::new();
    world.ledgers = vec![Arc::new(Full)];
    let metrics = KeyMetrics::default();
    let supply = KeySupply::open(small(Strategy::Pool), world.life(), metrics.clone())
        .await
        .unwrap();
    supply.keygen_pass(&CancellationToken::new()).await;
    assert_eq!(metrics.duplicates.get(), 16 * 20);
}

#[tokio::test]
async fn pools_are_kept_between_their_watermarks() {
    let mut world = World::new();
    world.pools = vec![pool(1_000), pool(1_000)];
    let running = Running::start(small(Strategy::Pool), world.life()).await;
    for number in 0..500 {
        running.supply.filled().await;
        let supplied = take(&running.supply, number).await;
        assert_eq!(supplied.origin, KeyOrigin::Ledger);
        for pool in &world.pools {
            let depth = pool.depth().await.unwrap();
            assert!(
                depth <= 30,
                "{depth} keys in a pool with a high watermark of 30"
            );
        }
    }
}

#[tokio::test]
async fn a_pool_that_takes_less_than_offered_loses_nothing() {
    let mut world = World::new();
    world.pools = vec![pool(10), pool(100)];
    let running = Running::start(small(Strategy::Pool), world.life()).await;
    for number in 0..200 {
        running.supply.filled().await;
        let supplied = take(&running.supply, number).await;
        world.store(&supplied).await;
    }
    let supply = running.shut().await;
    let accounts = supply.count_keys().await.unwrap();
    assert_eq!((accounts.used, accounts.leaked), (200, 0), "{accounts:?}");
}

/// Stores 200 links, and sets as many keys aside meanwhile.
async fn set_every_second_aside(world: &World) -> Running {
    let running = Running::start(small(Strategy::Pool), world.life()).await;
    for number in 0..400 {
        running.supply.filled().await;
        let supplied = take(&running.supply, number).await;
        match number % 2 {
            0 => running.supply.set_aside(supplied),
            _ => assert!(world.store(&supplied).await, "K-1"),
        }
    }
    running
}

#[tokio::test]
async fn without_a_pool_they_are_taken_again_behind_the_rest_k2() {
    let world = World::new();
    let supply = set_every_second_aside(&world).await.shut().await;
    let accounts = supply.count_keys().await.unwrap();
    assert_eq!((accounts.used, accounts.leaked), (200, 0), "{accounts:?}");
}

#[tokio::test]
async fn keys_that_this_process_has_no_use_for_go_back_to_their_pool_k2() {
    let mut world = World::new();
    world.pools = vec![pool(1_000)];
    let running = set_every_second_aside(&world).await;
    let mut aside = Vec::new();
    for number in 0..128 {
        running.supply.filled().await;
        aside.push(take(&running.supply, number).await);
    }
    for key in aside {
        running.supply.set_aside(key);
    }
    let accounts = key_counts_at_rest(&running.supply).await;
    // What is in the buffer, and fewer than are given back at once.
    assert!(accounts.buffered < 12 + 64, "{accounts:?}");
    let supply = running.shut().await;
    let accounts = supply.count_keys().await.unwrap();
    assert_eq!((accounts.used, accounts.leaked), (200, 0), "{accounts:?}");
}

#[tokio::test]
async fn the_fullest_pool_is_drawn_first_and_a_drained_one_is_passed_over() {
    let mut world = World::new();
    world.pools = vec![pool(100), pool(100), pool(100)];
    let fill = async |shard: usize, symbol: &str, count: usize| {
        let keys: Vec<Key> = (0..count)
            .map(|n| Key::parse(&format!("{symbol}{n:06}")).unwrap())
            .collect();
        let batch = BatchId(symbol.into());
        world.pools[shard].push(&batch, &keys).await.unwrap();
    };
    fill(0, "few", 8).await;
    fill(2, "many", 20).await;
    let supply = KeySupply::open(small(Strategy::Pool), world.life(), KeyMetrics::default())
        .await
        .unwrap();
    supply.filled().await;
    for number in 0..12 {
        let supplied = take(&supply, number).await;
        assert!(supplied.key.as_str().starts_with("many"), "{supplied:?}");
    }
}

#[tokio::test]
async fn a_dead_pool_shard_stops_nobody_and_costs_no_key() {
    let mut world = World::new();
    world.pools = vec![Arc::new(DeadPool), pool(1_000)];
    let running = Running::start(small(Strategy::Pool), world.life()).await;
    for number in 0..200 {
        running.supply.filled().await;
        let supplied = take(&running.supply, number).await;
        assert_eq!(supplied.origin, KeyOrigin::Ledger);
        world.store(&supplied).await;
    }
    let supply = running.shut().await;
    let pooled = world.pools[1].depth().await.unwrap();
    let counts = world.ledgers[0].counts().await.unwrap();
    let found = counts.free + counts.open + pooled + 200;
    assert_eq!(counts.minted, found, "K-2: {counts:?}, {pooled} pooled");
    assert!(
        supply.count_keys().await.is_err(),
        "a dead pool has no depth"
    );
}

struct DeadPool;

#[async_trait]
impl KeyPool for DeadPool {
    async fn push(&self, _: &BatchId, _: &[Key]) -> PortResult<usize> {
        Err(dead())
    }
    async fn pop(&self, _: usize) -> PortResult<Vec<Key>> {
        Err(dead())
    }
    async fn peek(&self, _: u64, _: usize) -> PortResult<Vec<Key>> {
        Err(dead())
    }
    async fn depth(&self) -> PortResult<u64> {
        Err(dead())
    }
}

fn dead() -> PortError {
    PortError::new(ErrorKind::Unavailable, "test", "answer", "dead")
}

async fn settled(supplies: [&KeySupply; 2]) {
    for _ in 0..3 {
        for supply in supplies {
            supply.keygen_pass(&CancellationToken::new()).await;
            supply.keysync_pass(&CancellationToken::new()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_keysync_takes_its_share_of_shards_and_the_orphans_after_a_while() {
    let mut world = World::new();
    world.pools = (0..4).map(|_| pool(1_000)).collect();
    let ports = world.life();
    let mut settings = small(Strategy::Pool);
    settings.pool.shards_max = 2;
    // The buffer takes nothing, so that depths tell who was filled.
    settings.buffer.low = 1;
    settings.buffer.capacity = 2;
    let open = || KeySupply::open(settings.clone(), ports.clone(), KeyMetrics::default());
    let depths = async || {
        let mut depths = Vec::new();
        for pool in &world.pools {
            depths.push(pool.depth().await.unwrap() >= 20);
        }
        depths
    };
    let one = open().await.unwrap();
    settled([&one, &one]).await;
    assert_eq!(depths().await, [true, true, false, false], "its share only");
    let two = open().await.unwrap();
    settled([&one, &two]).await;
    assert_eq!(depths().await, [true; 4], "the second has the others");
    two.close().await.unwrap();
    for pool in &world.pools[2..] {
        pool.pop(1_000).await.unwrap();
    }
    settled([&one, &one]).await;
    tokio::time::advance(settings.lease_ttl).await;
    world.clock.advance(settings.lease_ttl / 2);
    settled([&one, &one]).await;
    assert_eq!(depths().await, [true; 4], "orphans are adopted");
}
