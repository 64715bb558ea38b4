use std::sync::Arc;
use std::time::Duration;

use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{
    CreationPlan, Idempotency, IdempotentRequest, LinkIndex, LinkTotals, Permissions, RequestToken,
};
use curt_core::{LinkState, OwnerId, UnixMillis};
use curt_links::purge::Pass;
use curt_links::{EditLink, Expiry, LinkError, NewLink, PurgeSettings, Resolution};
use curt_testkit::keys::scripted_supply;
use tokio_util::sync::CancellationToken;

use crate::world::*;

const TARGET: &str = "https://example.com/";

async fn expiring_link(world: &World, alias: &str, after: Duration) {
    let new = NewLink {
        alias: Some(alias.into()),
        ..expiring(TARGET, after)
    };
    world.links.create(ANN, new, None).await.unwrap();
}

async fn state(world: &World, key: &str) -> Option<LinkState> {
    world.stored(key).await.map(|link| link.state)
}

/// Waits, without letting real time pass, until the link is a tombstone.
async fn purged(world: &World, key: &str) {
    for _ in 0..10_000 {
        if state(world, key).await == Some(LinkState::Tombstone) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{key} was not purged");
}

#[tokio::test]
async fn a_sweep_takes_the_expired_and_leaves_the_others() {
    let world = World::new();
    expiring_link(&world, "a", DAY).await;
    expiring_link(&world, "b", DAY * 2).await;
    world.alias("c", TARGET).await;
    world.resolve("a").await;
    let purger = world.purger(PurgeSettings::default());
    assert_eq!(purger.sweep(0).await.unwrap(), Pass::Short);
    assert_eq!(state(&world, "a").await, Some(LinkState::Active));
    world.clock.set(START.plus(DAY));
    assert_eq!(purger.sweep(0).await.unwrap(), Pass::Short);
    assert_eq!(state(&world, "a").await, Some(LinkState::Tombstone));
    assert_eq!(state(&world, "b").await, Some(LinkState::Active));
    assert_eq!(state(&world, "c").await, Some(LinkState::Active));
    assert_eq!(world.resolve("a").await, DELETED);
}

#[tokio::test]
async fn sweeps_go_batch_by_batch() {
    let world = World::new();
    for n in 0..25 {
        expiring_link(&world, &format!("a{n}"), DAY).await;
    }
    world.clock.set(START.plus(DAY));
    let purger = world.purger(PurgeSettings {
        batch: 10,
        ..PurgeSettings::default()
    });
    let passes = [
        purger.sweep(0).await.unwrap(),
        purger.sweep(0).await.unwrap(),
        purger.sweep(0).await.unwrap(),
    ];
    assert_eq!(passes, [Pass::Full, Pass::Full, Pass::Short]);
    assert_eq!(world.store.counts().await.unwrap().live, 0);
}

#[tokio::test]
async fn an_expiry_that_was_extended_in_between_holds() {
    let world = World::new();
    expiring_link(&world, "a", DAY).await;
    world.clock.set(START.plus(DAY));
    let found = world.store.ended(START.plus(DAY), 10).await.unwrap();
    assert_eq!(found.len(), 1);
    let extend = EditLink {
        expires_at: Some(Expiry::At(START.plus(DAY * 2))),
        ..EditLink::default()
    };
    world.links.edit(own(ANN), "a", None, extend).await.unwrap();
    let changed = world
        .store
        .purge(&found, START.plus(DAY), START.plus(DAY))
        .await
        .unwrap();
    assert!(changed.is_empty());
    assert_eq!(location(&world.resolve("a").await), Some(TARGET));
}

#[tokio::test(start_paused = true)]
async fn the_schedule_purges_at_its_rate_and_stops_when_told() {
    let world = World::new();
    for n in 0..30 {
        expiring_link(&world, &format!("a{n}"), DAY).await;
    }
    world.clock.set(START.plus(DAY));
    let purger = world.purger(PurgeSettings {
        on_access: false,
        batch: 10,
        rate_max: 10,
        every: Duration::from_secs(3_600),
        ..PurgeSettings::default()
    });
    let stop = CancellationToken::new();
    let started = tokio::time::Instant::now();
    let running = tokio::spawn(Arc::clone(&purger).run(stop.clone()));
    purged(&world, "a9").await;
    while world.store.counts().await.unwrap().live > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = started.elapsed();
    assert!(
        took >= Duration::from_secs(2),
        "three batches of a second each: {took:?}"
    );
    assert!(took < Duration::from_secs(4), "{took:?}");
    // The long nap does not hold up the end.
    stop.cancel();
    running.await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn the_schedule_survives_a_failing_store() {
    let world = World::new();
    expiring_link(&world, "a", DAY).await;
    world.clock.set(START.plus(DAY));
    world.store.fail(true);
    let purger = world.purger(PurgeSettings {
        on_access: false,
        ..PurgeSettings::default()
    });
    let stop = CancellationToken::new();
    let running = tokio::spawn(purger.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(20)).await;
    world.store.fail(false);
    let back = tokio::time::Instant::now();
    purged(&world, "a").await;
    assert!(
        back.elapsed() < Duration::from_secs(6),
        "tries again soon after an error"
    );
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_visitors_meet_is_purged_without_the_schedule_b11() {
    let world = World::new();
    expiring_link(&world, "cached", DAY).await;
    expiring_link(&world, "cold", DAY).await;
    expiring_link(&world, "unvisited", DAY).await;
    world.resolve("cached").await;
    let purger = world.purger(PurgeSettings {
        scheduled: false,
        ..PurgeSettings::default()
    });
    let stop = CancellationToken::new();
    let running = tokio::spawn(purger.run(stop.clone()));
    world.clock.set(START.plus(DAY));
    for key in ["cached", "cold"] {
        assert_eq!(world.resolve(key).await, EXPIRED);
        purged(&world, key).await;
        assert_eq!(world.resolve(key).await, DELETED);
    }
    assert_eq!(state(&world, "unvisited").await, Some(LinkState::Active));
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn expired_links_met_without_a_purger_cost_nothing_but_the_answer() {
    let world = World::new();
    for n in 0..2_000 {
        expiring_link(&world, &format!("a{n}"), DAY).await;
    }
    world.clock.set(START.plus(DAY));
    for n in 0..2_000 {
        assert_eq!(world.resolve(&format!("a{n}")).await, EXPIRED);
    }
}

#[tokio::test]
async fn keys_are_recycled_only_after_their_quarantine_l3() {
    let world = World::with(Plan {
        supply: scripted_supply(["gen0001"].map(generated)),
        ..Plan::default()
    });
    world.links.create(ANN, new(TARGET), None).await.unwrap();
    world.alias("mine", TARGET).await;
    world.links.delete(own(ANN), "gen0001", None).await.unwrap();
    world.links.delete(own(ANN), "mine", None).await.unwrap();
    let purger = world.purger(PurgeSettings {
        recycle: true,
        quarantine: DAY * 180,
        ..PurgeSettings::default()
    });
    world
        .clock
        .set(START.plus(DAY * 180 - Duration::from_millis(1)));
    purger.recycle(0).await.unwrap();
    assert_eq!(state(&world, "gen0001").await, Some(LinkState::Tombstone));
    world.clock.set(START.plus(DAY * 180));
    assert_eq!(world.resolve("gen0001").await, DELETED);
    purger.recycle(0).await.unwrap();
    assert_eq!(state(&world, "gen0001").await, None);
    assert_eq!(world.resolve("gen0001").await, Resolution::Absent);
    assert_eq!(
        state(&world, "mine").await,
        Some(LinkState::Tombstone),
        "an alias is never recycled"
    );
}

#[tokio::test]
async fn a_recycled_key_takes_nothing_of_its_link_along() {
    let world = World::with(Plan {
        supply: scripted_supply(["gen0001"].map(generated)),
        ..Plan::default()
    });
    let old = world.links.create(ANN, new(TARGET), None).await.unwrap();
    let old = old.link;
    let bob = BOB.owner;
    let granted = world.permissions.grant(bob, &old.id, 1, START);
    granted.await.unwrap();
    world.links.delete(own(ANN), "gen0001", None).await.unwrap();
    let purger = world.purger(PurgeSettings {
        recycle: true,
        quarantine: Duration::ZERO,
        ..PurgeSettings::default()
    });
    purger.recycle(0).await.unwrap();
    assert_eq!(state(&world, "gen0001").await, None);
    let new = NewLink {
        alias: Some("gen0001".into()),
        ..new(TARGET)
    };
    let new = world.links.create(BOB, new, None).await.unwrap().link;
    assert_eq!(new.revision, old.revision.reborn(), "also as answered");
    assert_eq!(world.stored("gen0001").await, Some(new.clone()));
    for generation in [1, 2] {
        let may = world.permissions.may_follow(bob, &new.id, generation).await;
        assert!(!may.unwrap(), "{generation}");
    }
    let delete = world.links.delete(own(BOB), "gen0001", Some(old.revision));
    assert!(matches!(delete.await, Err(LinkError::Stale(now)) if now == new.revision));
}

#[tokio::test(start_paused = true)]
async fn recycling_is_off_unless_asked_for() {
    let world = World::with(Plan {
        supply: scripted_supply(["gen0001"].map(generated)),
        ..Plan::default()
    });
    world.links.create(ANN, new(TARGET), None).await.unwrap();
    world.links.delete(own(ANN), "gen0001", None).await.unwrap();
    world.clock.set(START.plus(DAY * 10_000));
    let stop = CancellationToken::new();
    let running = tokio::spawn(world.purger(PurgeSettings::default()).run(stop.clone()));
    tokio::time::sleep(DAY).await;
    assert_eq!(state(&world, "gen0001").await, Some(LinkState::Tombstone));
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_too_old_to_be_replayed_are_forgotten() {
    let world = World::new();
    let now = START.plus(IDEMPOTENCY_KEPT * 2);
    let too_old = now.minus(IDEMPOTENCY_KEPT + Duration::from_secs(1));
    for (number, at) in [(1, too_old), (2, too_old), (3, now.minus(IDEMPOTENCY_KEPT))] {
        let request = IdempotentRequest {
            owner: OwnerId(1),
            key: format!("request {number}").into(),
            fingerprint: [0; 32],
        };
        let plan = CreationPlan {
            token: RequestToken([number; 16]),
            version: 0,
            at,
            keys: Vec::new(),
        };
        world.store.begin(&request, &plan).await.unwrap();
    }
    world.clock.set(now);
    let purger = world.purger(PurgeSettings {
        scheduled: false,
        on_access: false,
        ..PurgeSettings::default()
    });
    let stop = CancellationToken::new();
    let running = tokio::spawn(purger.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    running.await.unwrap();
    let left = world.store.forget_before(UnixMillis::MAX, 10).await;
    assert_eq!(left.unwrap(), 1, "the one that can still be replayed");
}
