use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::LinkStore;
use curt_core::{Clock, ErrorKind, LinkState, RedirectStatus, Revision, Visibility};
use curt_links::{EditLink, NewLink, Resolution, ResolverSettings};
use curt_testkit::sample::SampleWrites;

use crate::world::*;

const TARGET: &str = "https://example.com/a?b=c#d";

#[tokio::test]
async fn a_link_is_loaded_once_and_then_served_from_memory() {
    let world = World::new();
    let new = NewLink {
        alias: Some("a".into()),
        status: Some(RedirectStatus::PermanentRedirect),
        forward_query: Some(true),
        ..new(TARGET)
    };
    let created = world.links.create(ANN, new, None).await.unwrap().link;
    assert_eq!(world.cached("a"), None);

    let Resolution::Live(hit) = world.resolve("a").await else {
        panic!("not live")
    };
    assert_eq!(hit.location(), TARGET);
    assert_eq!(hit.location_bytes(), TARGET.as_bytes());
    assert_eq!(hit.status(), RedirectStatus::PermanentRedirect);
    assert!(hit.forward_query());
    assert_eq!(hit.revision(), created.revision);
    assert_eq!(hit.expires_at(), created.expires_at);

    let gets = world.store.gets();
    assert_eq!(world.cached("a").as_deref(), Some(TARGET));
    assert_eq!(location(&world.resolve("a").await), Some(TARGET));
    assert_eq!(world.store.gets(), gets, "served from memory");
    assert_eq!(world.resolver.cache_size().0, 1);
}

#[tokio::test]
async fn every_status_survives_the_copy() {
    let world = World::new();
    for status in RedirectStatus::ALL {
        let alias = format!("s{}", status.code());
        let new = NewLink {
            alias: Some(alias.clone()),
            status: Some(status),
            ..new(TARGET)
        };
        world.links.create(ANN, new, None).await.unwrap();
        let Resolution::Live(hit) = world.resolve(&alias).await else {
            panic!("not live")
        };
        assert_eq!(hit.status(), status);
        assert!(!hit.forward_query());
    }
}

#[tokio::test]
async fn keys_are_case_sensitive_and_long_ones_fit() {
    let world = World::new();
    let long = "x".repeat(64);
    world.alias("Abc", "https://example.com/upper").await;
    world.alias("abc", "https://example.com/lower").await;
    world.alias(&long, "https://example.com/long").await;
    for (key, path) in [("Abc", "upper"), ("abc", "lower"), (&*long, "long")] {
        let target = format!("https://example.com/{path}");
        assert_eq!(location(&world.resolve(key).await), Some(&*target));
        assert_eq!(world.cached(key), Some(target));
    }
    assert_eq!(world.resolve("ABC").await, Resolution::Absent);
}

#[tokio::test]
async fn expiry_is_decided_at_read_even_for_a_cached_copy() {
    let world = World::new();
    let new = NewLink {
        alias: Some("a".into()),
        ..expiring(TARGET, DAY)
    };
    world.links.create(ANN, new, None).await.unwrap();
    world.resolve("a").await;
    world.clock.set(START.plus(DAY - Duration::from_millis(1)));
    assert!(world.cached("a").is_some());
    world.clock.set(START.plus(DAY));
    assert_eq!(world.cached("a"), None);
    assert_eq!(world.resolve("a").await, EXPIRED);
    // From a cold cache too.
    world.invalidate("a");
    assert_eq!(world.resolve("a").await, EXPIRED);
}

#[tokio::test]
async fn a_link_begins_to_redirect_at_its_hour_without_another_load() {
    let world = World::new();
    let new = NewLink {
        alias: Some("a".into()),
        valid_since: Some(START.plus(DAY)),
        ..new(TARGET)
    };
    world.links.create(ANN, new, None).await.unwrap();
    assert_eq!(world.resolve("a").await, Resolution::Scheduled);
    assert_eq!(world.cached("a"), None);
    let gets = world.store.gets();
    world.clock.set(START.plus(DAY));
    assert_eq!(world.cached("a").as_deref(), Some(TARGET));
    assert_eq!(world.store.gets(), gets);
}

#[tokio::test]
async fn a_copy_ages_from_its_load_and_hits_do_not_refresh_it() {
    let world = World::with(Plan {
        resolver: ResolverSettings {
            entry_ttl: Some(Duration::from_secs(5)),
            ..ResolverSettings::default()
        },
        ..Plan::default()
    });
    world.alias("a", TARGET).await;
    world.resolve("a").await;
    for second in 1..5 {
        world.clock.set(START.plus(Duration::from_secs(second)));
        assert!(world.cached("a").is_some(), "{second} s");
    }
    world.clock.set(START.plus(Duration::from_secs(5)));
    assert_eq!(world.cached("a"), None);
    let gets = world.store.gets();
    world.resolve("a").await;
    assert_eq!(world.store.gets(), gets + 1);
    assert!(world.cached("a").is_some());
    // A clock that steps back must not prolong the copy's life by the width of the step.
    world.clock.set(START);
    assert_eq!(world.cached("a"), None);
}

#[tokio::test]
async fn misses_are_remembered_briefly_and_ended_by_a_create() {
    let world = World::new();
    assert_eq!(world.resolve("a").await, Resolution::Absent);
    assert_eq!(world.resolve("a").await, Resolution::Absent);
    assert_eq!(world.store.gets(), 1, "the second answer came from memory");
    world.alias("a", TARGET).await;
    assert_eq!(location(&world.resolve("a").await), Some(TARGET));

    world.resolve("b").await;
    let gets = world.store.gets();
    world.clock.advance(Duration::from_secs(5));
    world.resolve("b").await;
    assert_eq!(world.store.gets(), gets + 1, "forgotten after at most 5 s");
}

#[tokio::test]
async fn a_longer_negative_ttl_than_allowed_is_cut() {
    let world = World::with(Plan {
        resolver: ResolverSettings {
            negative_ttl: Duration::from_secs(3_600),
            ..ResolverSettings::default()
        },
        ..Plan::default()
    });
    world.resolve("a").await;
    world.clock.advance(Duration::from_secs(5));
    world.resolve("a").await;
    assert_eq!(world.store.gets(), 2);
}

#[tokio::test]
async fn trying_keys_does_not_push_out_live_links() {
    let world = World::with(Plan {
        resolver: ResolverSettings {
            cache_bytes: 64 * 1_024,
            negative_entries: 100,
            ..ResolverSettings::default()
        },
        ..Plan::default()
    });
    world.alias("a", TARGET).await;
    world.resolve("a").await;
    for n in 0..20_000 {
        assert_eq!(world.resolve(&format!("no{n}")).await, Resolution::Absent);
    }
    assert!(world.cached("a").is_some());
}

#[tokio::test]
async fn memory_is_bounded_and_a_scan_leaves_the_hot_links() {
    const BYTES: u64 = 256 * 1_024;
    let world = World::with(Plan {
        resolver: ResolverSettings {
            cache_bytes: BYTES,
            ..ResolverSettings::default()
        },
        ..Plan::default()
    });
    let hot: Vec<String> = (0..200).map(|n| format!("hot{n}")).collect();
    for key in &hot {
        world.alias(key, TARGET).await;
    }
    let mut hits = 0;
    for round in 0..100 {
        for key in &hot {
            hits += u32::from(round > 0 && world.cached(key).is_some());
            world.resolve(key).await;
        }
        for n in 0..100 {
            let key = format!("cold{round}-{n}");
            world.alias(&key, TARGET).await;
            world.resolve(&key).await;
        }
        assert!(world.resolver.cache_size().1 <= BYTES);
    }
    assert!(hits >= 99 * 200 * 95 / 100, "{hits} hits of the hot set");
}

#[tokio::test]
async fn edits_and_deletions_are_seen_at_once() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.resolve("a").await;
    let edit = EditLink {
        target: Some("https://example.com/new".into()),
        ..EditLink::default()
    };
    world.links.edit(own(ANN), "a", None, edit).await.unwrap();
    assert_eq!(world.cached("a"), None);
    assert_eq!(
        location(&world.resolve("a").await),
        Some("https://example.com/new")
    );
    world.links.delete(own(ANN), "a", None).await.unwrap();
    assert_eq!(world.cached("a"), None);
    assert_eq!(world.resolve("a").await, DELETED);
}

#[tokio::test]
async fn only_active_links_are_served_whoever_may_see_them() {
    let world = World::new();
    let active = world.alias("model", TARGET).await.link;
    for visibility in [
        Visibility::Public,
        Visibility::Private,
        Visibility::Password,
    ] {
        for (state, wanted) in [
            (LinkState::Disabled, DISABLED),
            (LinkState::Seeded, Resolution::Absent),
            (LinkState::Tombstone, DELETED),
            (LinkState::Deleted, DELETED),
            (LinkState::DeletedDisabled, DELETED),
        ] {
            let key = format!("{visibility:?}-{state:?}");
            let link = curt_core::Link {
                id: id(&key),
                visibility,
                state,
                ..active.clone()
            };
            let request = vec![link];
            world.store.insert(request).await.unwrap();
            assert_eq!(world.resolve(&key).await, wanted, "{key}");
            assert_eq!(world.resolve(&key).await, wanted, "{key}, again");
            assert_eq!(world.cached(&key), None, "{key}");
        }
    }
}

#[tokio::test]
async fn texts_that_are_no_keys_are_absent_without_a_load() {
    let world = World::new();
    let long = "x".repeat(65);
    for key in ["", "..", "a/b", "a b", "ä", &long, "a%00"] {
        assert_eq!(world.resolve(key).await, Resolution::Absent, "{key:?}");
        assert_eq!(world.cached(key), None);
    }
    assert_eq!(world.store.gets(), 0);
}

#[tokio::test]
async fn one_load_serves_everybody_who_waits() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.store.shut_gate();
    let visitors: Vec<_> = (0..50)
        .map(|_| {
            let resolver = Arc::clone(&world.resolver);
            tokio::spawn(async move { resolver.resolve(named("a")).await })
        })
        .collect();
    world.store.paused(1).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    world.store.let_through(1);
    for visitor in visitors {
        let resolution = visitor.await.unwrap().unwrap();
        assert_eq!(location(&resolution), Some(TARGET));
    }
    assert_eq!(world.store.gets(), 1);
}

#[tokio::test]
async fn a_failure_is_shared_by_the_waiting_and_remembered_by_nobody() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.store.shut_gate();
    let visitors: Vec<_> = (0..10)
        .map(|_| {
            let resolver = Arc::clone(&world.resolver);
            tokio::spawn(async move { resolver.resolve(named("a")).await })
        })
        .collect();
    world.store.paused(1).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    world.store.fail(true);
    world.store.let_through(1);
    for visitor in visitors {
        let failure = visitor.await.unwrap().unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Unavailable);
        assert_eq!(failure.detail, "switched off");
    }
    // An unknown key is an error too while the store is away, never a 404.
    let unknown = world.resolver.resolve(named("unknown")).await;
    assert_eq!(unknown.unwrap_err().kind, ErrorKind::Unavailable);
    world.store.fail(false);
    world.store.open_gate();
    assert_eq!(location(&world.resolve("a").await), Some(TARGET));
    assert_eq!(world.resolve("unknown").await, Resolution::Absent);
}

#[tokio::test]
async fn cached_links_are_served_while_the_store_is_away_r1() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.resolve("a").await;
    world.store.fail(true);
    assert_eq!(world.cached("a").as_deref(), Some(TARGET));
    assert_eq!(location(&world.resolve("a").await), Some(TARGET));
}

#[tokio::test]
async fn a_cancelled_loader_hands_over_to_those_who_wait() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.store.shut_gate();
    let spawn = || {
        let resolver = Arc::clone(&world.resolver);
        tokio::spawn(async move { resolver.resolve(named("a")).await })
    };
    let leader = spawn();
    world.store.paused(1).await;
    let follower = spawn();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    world.store.open_gate();
    leader.abort();
    assert!(leader.await.unwrap_err().is_cancelled());
    let resolution = follower.await.unwrap().unwrap();
    assert_eq!(location(&resolution), Some(TARGET));
    assert_eq!(world.store.gets(), 2);
}

#[tokio::test(start_paused = true)]
async fn loads_are_bounded_and_the_queue_has_a_deadline() {
    let world = World::with(Plan {
        resolver: ResolverSettings {
            loads_max: 2,
            load_wait_max: Duration::from_millis(100),
            ..ResolverSettings::default()
        },
        ..Plan::default()
    });
    world.alias("c", TARGET).await;
    world.store.shut_gate();
    let slow: Vec<_> = ["a", "b"]
        .into_iter()
        .map(|key| {
            let resolver = Arc::clone(&world.resolver);
            tokio::spawn(async move { resolver.resolve(named(key)).await })
        })
        .collect();
    world.store.paused(2).await;
    let refused = world.resolver.resolve(named("c")).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Throttled);
    assert_eq!(
        world.store.gets(),
        2,
        "the third load never reached the store"
    );
    world.store.let_through(2);
    for visitor in slow {
        assert_eq!(visitor.await.unwrap().unwrap(), Resolution::Absent);
    }
    world.store.open_gate();
    assert_eq!(location(&world.resolve("c").await), Some(TARGET));
}

#[tokio::test]
async fn a_reader_paused_over_a_deletion_does_not_bring_the_link_back_d4() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.store.shut_gate();
    let resolver = Arc::clone(&world.resolver);
    let slow = tokio::spawn(async move { resolver.resolve(named("a")).await });
    world.store.paused(1).await;
    world.store.open_gate();
    let now = world.clock.now();
    world
        .store
        .delete_at(&id("a"), Revision::FIRST, now)
        .await
        .unwrap();
    world.invalidate("a");
    // Others are not held up by the slow one.
    assert_eq!(world.resolve("a").await, DELETED);
    world.store.let_through(1);
    assert_eq!(slow.await.unwrap().unwrap(), DELETED);
    assert_eq!(world.cached("a"), None);
    assert_eq!(world.resolve("a").await, DELETED);
}

const TTL: Duration = Duration::from_secs(1);

/// A server of many: others write, too, and do not tell.
fn one_of_many() -> World {
    World::with(Plan {
        resolver: ResolverSettings {
            entry_ttl: Some(TTL),
            negative_ttl: TTL,
            ..ResolverSettings::default()
        },
        ..Plan::default()
    })
}

fn spawn_visitor(world: &World) -> tokio::task::JoinHandle<Resolution> {
    let resolver = Arc::clone(&world.resolver);
    tokio::spawn(async move { resolver.resolve(named("a")).await.unwrap() })
}

async fn delete_elsewhere(world: &World) {
    let now = world.clock.now();
    world
        .store
        .delete_at(&id("a"), Revision::FIRST, now)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_copy_is_as_old_as_the_beginning_of_its_load_l2() {
    for late in [500, 999, 1_000, 4_000].map(Duration::from_millis) {
        let world = one_of_many();
        world.alias("a", TARGET).await;
        world.store.shut_gate();
        let slow = spawn_visitor(&world);
        world.store.paused(1).await;
        world.store.open_gate();
        delete_elsewhere(&world).await;
        world.clock.advance(late);
        world.store.let_through(1);
        // It asked before the deletion.
        assert_eq!(location(&slow.await.unwrap()), Some(TARGET));
        assert_eq!(world.cached("a").is_some(), late < TTL, "{late:?}");
        world.clock.set(START.plus(TTL));
        assert_eq!(world.cached("a"), None, "{late:?}");
        assert_eq!(world.resolve("a").await, DELETED, "{late:?}");
    }
}

#[tokio::test]
async fn nobody_waits_for_an_answer_that_is_too_old_for_them_l2() {
    let world = one_of_many();
    world.alias("a", TARGET).await;
    world.store.shut_gate();
    let first = spawn_visitor(&world);
    world.store.paused(1).await;
    world.clock.advance(TTL - Duration::from_millis(1));
    let follower = spawn_visitor(&world);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.store.gets(), 1, "young enough to be shared");
    delete_elsewhere(&world).await;
    world.clock.advance(Duration::from_millis(1));
    let late = spawn_visitor(&world);
    world.store.paused(2).await;
    // In the order in which they came: the older answer is for those who asked for it, and is not kept.
    world.store.let_through(1);
    assert_eq!(location(&first.await.unwrap()), Some(TARGET));
    assert_eq!(location(&follower.await.unwrap()), Some(TARGET));
    assert_eq!(world.cached("a"), None);
    world.store.let_through(1);
    assert_eq!(late.await.unwrap(), DELETED);
    assert_eq!(world.cached("a"), None);
    assert_eq!(world.store.gets(), 2);
}

#[tokio::test]
async fn a_slow_load_that_was_superseded_puts_nothing_back_and_is_voided_by_a_change_d4() {
    let world = one_of_many();
    world.alias("a", TARGET).await;
    world.store.shut_gate();
    let first = spawn_visitor(&world);
    world.store.paused(1).await;
    world.clock.advance(TTL);
    let second = spawn_visitor(&world);
    world.store.paused(2).await;
    world.store.open_gate();
    world.links.delete(own(ANN), "a", None).await.unwrap();
    world.store.let_through(2);
    // Neither may repeat what it read before the change that was acknowledged here.
    assert_eq!(first.await.unwrap(), DELETED);
    assert_eq!(second.await.unwrap(), DELETED);
    assert_eq!(world.cached("a"), None);
}

#[tokio::test]
async fn a_miss_is_as_old_as_the_beginning_of_its_load() {
    let world = one_of_many();
    world.store.shut_gate();
    let early = spawn_visitor(&world);
    world.store.paused(1).await;
    world.store.open_gate();
    // Made by another server: nothing tells this one.
    let other = World::new();
    let link = other.alias("a", TARGET).await.link;
    let request = vec![link];
    world.store.insert(request).await.unwrap();
    world.clock.advance(TTL - Duration::from_millis(1));
    world.store.let_through(1);
    assert_eq!(early.await.unwrap(), Resolution::Absent);
    assert_eq!(world.resolve("a").await, Resolution::Absent, "remembered");
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(location(&world.resolve("a").await), Some(TARGET));
}

#[tokio::test]
async fn an_expiry_that_another_server_extended_is_seen_in_time() {
    let world = one_of_many();
    let new = NewLink {
        alias: Some("a".into()),
        ..expiring(TARGET, Duration::from_millis(900))
    };
    let link = world.links.create(ANN, new, None).await.unwrap().link;
    world.resolve("a").await;
    let extended = curt_core::Link {
        expires_at: None,
        ..link.clone()
    };
    world
        .store
        .update_at(extended, link.revision)
        .await
        .unwrap();
    world.clock.advance(Duration::from_millis(950));
    assert_eq!(world.resolve("a").await, EXPIRED, "the old copy");
    world.clock.set(START.plus(TTL));
    assert_eq!(location(&world.resolve("a").await), Some(TARGET));
}
