//! Creation never stops because the supply did.

use std::sync::atomic::Ordering;
use std::time::Duration;

use curt_core::link::KeyOrigin;
use curt_keys::{KeyMetrics, KeySupply, Strategy};
use tokio_util::sync::CancellationToken;

use crate::world::{Fault, Running, World, small, take};

#[tokio::test]
async fn a_dry_supply_gives_random_keys_and_counts_them() {
    for strategy in Strategy::ALL {
        if strategy == Strategy::Hash {
            continue;
        }
        let world = World::new();
        world.faults.plan(|_, _| Fault::FailBefore);
        let metrics = KeyMetrics::default();
        let supply = KeySupply::open(small(strategy), world.life(), metrics.clone())
            .await
            .unwrap();
        for number in 0..100 {
            let supplied = take(&supply, number).await;
            assert_eq!(supplied.origin, KeyOrigin::Random, "{strategy}");
            assert!(world.store(&supplied).await);
        }
        assert_eq!(metrics.fallbacks.get(), 100, "{strategy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_waits_a_moment_for_a_buffer_that_is_being_filled_and_no_longer() {
    let world = World::new();
    let mut settings = small(Strategy::Pool);
    settings.dry_wait = Duration::from_millis(5);
    world.faults.plan(|_, op| match op {
        "take" => Fault::DieBefore,
        _ => Fault::None,
    });
    let supply = KeySupply::open(settings, world.life(), KeyMetrics::default())
        .await
        .unwrap();
    let started = tokio::time::Instant::now();
    let supplied = take(&supply, 0).await;
    assert_eq!(supplied.origin, KeyOrigin::Random);
    let waited = started.elapsed();
    assert!(waited >= Duration::from_millis(5), "{waited:?}");
    assert!(waited < Duration::from_millis(10), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_supply_asks_its_engines_a_few_times_a_second_at_most() {
    let world = World::new();
    let running = Running::start(small(Strategy::Pool), world.life()).await;
    running.supply.filled().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = world.faults.calls.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(100)).await;
    let calls = world.faults.calls.load(Ordering::SeqCst) - before;
    assert!(calls < 500, "{calls} calls in 100 idle seconds");
    running.shut().await;
}

#[tokio::test]
async fn keys_that_come_back_unused_are_given_out_next() {
    let world = World::new();
    let running = Running::start(small(Strategy::Pool), world.life()).await;
    running.supply.filled().await;
    let supplied = take(&running.supply, 0).await;
    running.supply.put_back(supplied.clone());
    assert_eq!(take(&running.supply, 0).await, supplied);
    running.supply.put_back(supplied);
    let supply = running.shut().await;
    assert_eq!(supply.count_keys().await.unwrap().leaked, 0);
}

#[tokio::test]
async fn after_close_a_late_create_still_gets_a_key() {
    let world = World::new();
    let running = Running::start(small(Strategy::Pool), world.life()).await;
    running.supply.filled().await;
    let supply = running.shut().await;
    assert_eq!(take(&supply, 0).await.origin, KeyOrigin::Random);
    supply.close().await.unwrap();
    supply.keysync_pass(&CancellationToken::new()).await;
    assert_eq!(supply.count_keys().await.unwrap().open, 0);
}
