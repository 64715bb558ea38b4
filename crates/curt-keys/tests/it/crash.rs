//! kill -9 at every call of the key pipeline: no key on two links (K-1), and no key lost (K-2).

use std::sync::Arc;

use curt_core::link::KeyOrigin;
use curt_keys::{KeyMetrics, KeySettings, KeySupply, Strategy};
use curt_memory::MemoryKeyPool;
use tokio_util::sync::CancellationToken;

use crate::world::{Fault, World, key_counts_at_rest, small, take};

/// Takes keys and stores links for some rounds, as a process does.
async fn work(world: &World, settings: KeySettings, rounds: u64) -> Arc<KeySupply> {
    let supply = KeySupply::open(settings, world.life(), KeyMetrics::default())
        .await
        .unwrap();
    let stop = CancellationToken::new();
    for round in 0..rounds {
        supply.keygen_pass(&stop).await;
        supply.keysync_pass(&stop).await;
        supply.filled().await;
        for number in 0..5 {
            let supplied = take(&supply, round * 5 + number).await;
            let stored = world.store(&supplied).await;
            assert!(stored, "K-1: {supplied:?}");
        }
    }
    supply
}

/// Runs a life that dies at `call`. Returns whether it got that far.
async fn die_at(world: &World, settings: KeySettings, call: u64, fault: Fault) -> bool {
    world
        .faults
        .plan(move |n, _| if n == call { fault } else { Fault::None });
    let died = tokio::select! {
        biased;
        () = world.faults.died.notified() => true,
        _ = work(world, settings, 12) => false,
    };
    world.faults.heal();
    died
}

/// Small in-flight time, so that batches are retired while the test runs.
fn settings() -> KeySettings {
    let mut settings = small(Strategy::Pool);
    settings.pool.in_flight = std::time::Duration::ZERO;
    settings
}

#[tokio::test]
async fn k2_is_exact_after_a_crash_at_any_call() {
    let mut deaths = 0;
    for fault in [Fault::DieBefore, Fault::DieAfter] {
        for call in 0.. {
            let world = World::new();
            if !die_at(&world, settings(), call, fault).await {
                break;
            }
            deaths += 1;
            let supply = work(&world, settings(), 3).await;
            let open = key_counts_at_rest(&supply).await;
            assert!(open.balances(), "K-2 at call {call}, {fault:?}: {open:?}");
            assert_eq!(open.leaked, 0, "K-2 at call {call}, {fault:?}: {open:?}");
            supply.close().await.unwrap();
            let closed = supply.count_keys().await.unwrap();
            assert_eq!(closed.leaked, 0, "K-2 closed, call {call}: {closed:?}");
            assert_eq!(closed.open + closed.pooled + closed.buffered, 0);
            assert_eq!(closed.minted, closed.free + closed.used);
        }
    }
    assert!(deaths > 100, "only {deaths} places to die at were found");
}

#[tokio::test]
async fn with_a_pool_a_crash_costs_at_most_the_buffer() {
    for fault in [Fault::DieBefore, Fault::DieAfter] {
        for call in 0.. {
            let mut world = World::new();
            world.pools = vec![Arc::new(MemoryKeyPool::new(45))];
            if !die_at(&world, settings(), call, fault).await {
                break;
            }
            let supply = work(&world, settings(), 12).await;
            supply.close().await.unwrap();
            let accounts = supply.count_keys().await.unwrap();
            assert!(accounts.balances(), "K-2 at call {call}: {accounts:?}");
            let buffer = settings().buffer.capacity as u64;
            assert!(
                accounts.leaked <= buffer,
                "K-2 at call {call}: {accounts:?}"
            );
            assert_eq!(accounts.open, 0, "a dead batch stayed open: {accounts:?}");
        }
    }
}

#[tokio::test]
async fn a_clean_end_with_a_pool_loses_nothing() {
    let mut world = World::new();
    world.pools = vec![
        Arc::new(MemoryKeyPool::new(25)),
        Arc::new(MemoryKeyPool::new(40)),
    ];
    for _ in 0..3 {
        let supply = work(&world, settings(), 10).await;
        supply.close().await.unwrap();
        let accounts = supply.count_keys().await.unwrap();
        assert_eq!((accounts.leaked, accounts.buffered), (0, 0), "{accounts:?}");
    }
}

#[tokio::test]
async fn recovered_keys_are_counted_and_served_again() {
    let world = World::new();
    let first = work(&world, settings(), 1).await;
    let before = key_counts_at_rest(&first).await;
    drop(first);
    let metrics = KeyMetrics::default();
    let supply = KeySupply::open(settings(), world.life(), metrics.clone())
        .await
        .unwrap();
    supply.keysync_pass(&CancellationToken::new()).await;
    assert_eq!(metrics.recovered.get(), before.open - before.used);
    supply.filled().await;
    assert_eq!(take(&supply, 0).await.origin, KeyOrigin::Ledger);
}

#[tokio::test]
async fn the_batches_of_a_living_process_are_left_alone() {
    let world = World::new();
    let ports = world.life();
    let metrics = KeyMetrics::default();
    let stop = CancellationToken::new();
    let open = || KeySupply::open(settings(), ports.clone(), metrics.clone());
    let (one, two) = (open().await.unwrap(), open().await.unwrap());
    one.keygen_pass(&stop).await;
    one.keysync_pass(&stop).await;
    two.keysync_pass(&stop).await;
    assert_eq!(metrics.recovered.get(), 0);
}

/// Keys on their way from ledger to buffer are in neither; their batch must not count as used up.
#[tokio::test(start_paused = true)]
async fn a_batch_is_not_closed_while_its_keys_are_on_their_way_into_the_buffer() {
    let world = World::new();
    world.faults.plan(|_, op| match op {
        "take" => Fault::DieAfter,
        _ => Fault::None,
    });
    let supply = KeySupply::open(settings(), world.life(), KeyMetrics::default())
        .await
        .unwrap();
    let stop = CancellationToken::new();
    supply.keygen_pass(&stop).await;
    let passes = async {
        supply.keysync_pass(&stop).await;
        world.faults.died.notified().await;
        supply.keysync_pass(&stop).await;
    };
    // The second pass may wait for the draw; it must not decide without it.
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), passes).await;
    drop((waited, supply));
    world.faults.heal();
    let next = work(&world, settings(), 1).await;
    let accounts = key_counts_at_rest(&next).await;
    assert_eq!(accounts.leaked, 0, "K-2: {accounts:?}");
}
