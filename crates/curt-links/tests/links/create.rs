use std::collections::HashSet;
use std::sync::Arc;

use curt_core::limits::{BULK_LINKS_MAX, KEY_TRIES_MAX};
use curt_core::ports::SeededLinks;
use curt_core::{ErrorKind, KeyOrigin, LinkState, Revision};
use curt_keys::Strategy;
use curt_links::{IdempotencyKey, LinkError, NewLink, Resolution};
use curt_memory::MemoryKeyPool;
use curt_testkit::keys::scripted_supply;

use crate::world::*;

const TARGET: &str = "https://example.com/";

fn aliased(alias: &str) -> NewLink {
    NewLink {
        alias: Some(alias.into()),
        ..new(TARGET)
    }
}

fn scripted(keys: &[&str]) -> World {
    World::with(Plan {
        supply: scripted_supply(keys.iter().map(|key| generated(key))),
        ..Plan::default()
    })
}

#[tokio::test]
async fn a_created_link_is_stored_as_answered() {
    let world = scripted(&["abc1234"]);
    let created = world.links.create(ANN, new(TARGET), None).await.unwrap();
    assert!(!created.replayed);
    let link = created.link;
    assert_eq!(link.id, id("abc1234"));
    assert_eq!(link.owner, ANN.owner);
    assert_eq!(link.state, LinkState::Active);
    assert_eq!(link.revision, Revision::FIRST);
    assert_eq!(link.origin, KeyOrigin::Ledger);
    assert_eq!((link.created_at, link.updated_at), (START, START));
    assert_eq!(world.stored("abc1234").await, Some(link));
}

#[tokio::test]
async fn a_taken_alias_is_refused_and_the_first_link_stays_k1() {
    let world = World::new();
    let first = world.alias("mine", "https://example.com/first").await.link;
    let second = world.links.create(BOB, aliased("mine"), None).await;
    assert!(matches!(second, Err(LinkError::AliasTaken(_))));
    assert_eq!(world.stored("mine").await, Some(first));
}

#[tokio::test]
async fn a_tombstone_keeps_its_alias_l3() {
    let world = World::new();
    world.alias("mine", TARGET).await;
    world.links.delete(own(ANN), "mine", None).await.unwrap();
    let again = world.links.create(ANN, aliased("mine"), None).await;
    assert!(matches!(again, Err(LinkError::AliasTaken(_))));
}

#[tokio::test]
async fn a_generated_key_that_is_taken_is_replaced_k1_b3() {
    let world = scripted(&["taken01", "taken02", "free001"]);
    let first = world.alias("taken01", "https://example.com/1").await.link;
    world.alias("taken02", "https://example.com/2").await;
    let created = world.links.create(BOB, new(TARGET), None).await.unwrap();
    assert_eq!(created.link.id, id("free001"));
    assert_eq!(
        world.stored("taken01").await,
        Some(first),
        "nothing overwritten"
    );
}

#[tokio::test]
async fn the_tries_for_a_key_are_bounded() {
    let taken: Vec<String> = (0..KEY_TRIES_MAX).map(|n| format!("taken{n}")).collect();
    let mut script: Vec<&str> = taken.iter().map(String::as_str).collect();
    script.push("free001");
    let world = scripted(&script);
    for key in &taken {
        world.alias(key, TARGET).await;
    }
    let inserts = world.store.inserts();
    let exhausted = world.links.create(BOB, new(TARGET), None).await;
    assert!(matches!(exhausted, Err(LinkError::KeysExhausted)));
    assert_eq!(world.store.inserts() - inserts, KEY_TRIES_MAX as u64);
    let next = world.links.create(BOB, new(TARGET), None).await.unwrap();
    assert_eq!(next.link.id, id("free001"));
}

#[tokio::test]
async fn creating_ends_a_remembered_absence() {
    let world = scripted(&["abc1234"]);
    assert_eq!(world.resolve("abc1234").await, Resolution::Absent);
    world.links.create(ANN, new(TARGET), None).await.unwrap();
    assert_eq!(location(&world.resolve("abc1234").await), Some(TARGET));
}

#[tokio::test]
async fn a_bulk_answers_each_item_in_order() {
    let world = scripted(&["gen0001", "gen0002"]);
    world.alias("taken", TARGET).await;
    let inserts = world.store.inserts();
    let items = vec![
        new("https://example.com/1"),
        aliased("taken"),
        new("javascript:alert(1)"),
        aliased("mine"),
        aliased("mine"),
        new("https://example.com/2"),
    ];
    let outcomes = world.links.create_many(ANN, items, None).await.unwrap();
    let shown: Vec<String> = outcomes
        .into_iter()
        .map(|outcome| match outcome {
            Ok(created) => format!("{} {}", created.link.id.key, created.link.target),
            Err(LinkError::Invalid(mistakes)) => mistakes[0].code.to_owned(),
            Err(other) => other.to_string(),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "gen0001 https://example.com/1",
            "the alias is taken",
            "target_scheme",
            "mine https://example.com/",
            "the alias is taken",
            "gen0002 https://example.com/2",
        ]
    );
    assert_eq!(world.store.inserts() - inserts, 1, "one insert for all");
}

#[tokio::test]
async fn a_bulk_retries_only_what_met_a_conflict() {
    let world = scripted(&[
        "taken01", "free001", "taken02", "free002", "taken01", "free003",
    ]);
    world.alias("taken01", TARGET).await;
    world.alias("taken02", TARGET).await;
    let items = vec![new(TARGET), new(TARGET), new(TARGET)];
    let outcomes = world.links.create_many(ANN, items, None).await.unwrap();
    let keys: Vec<String> = outcomes
        .into_iter()
        .map(|outcome| outcome.unwrap().link.id.key.to_string())
        .collect();
    // First round: taken01, free001, taken02. Second: free002, taken01. Third: free003.
    assert_eq!(keys, ["free002", "free001", "free003"]);
}

#[tokio::test]
async fn the_same_key_twice_in_one_bulk_goes_to_one_link_k1() {
    let world = scripted(&["same001", "same001", "free001"]);
    let items = vec![new(TARGET), new(TARGET)];
    let outcomes = world.links.create_many(ANN, items, None).await.unwrap();
    let keys: Vec<String> = outcomes
        .into_iter()
        .map(|outcome| outcome.unwrap().link.id.key.to_string())
        .collect();
    assert_eq!(keys, ["same001", "free001"]);
}

#[tokio::test]
async fn a_bulk_has_a_bound() {
    let world = World::new();
    let many = vec![new(TARGET); BULK_LINKS_MAX + 1];
    assert_eq!(
        codes(world.links.create_many(ANN, many, None).await),
        ["links_too_many"]
    );
    let most = vec![new(TARGET); BULK_LINKS_MAX];
    let outcomes = world.links.create_many(ANN, most, None).await.unwrap();
    let keys: HashSet<_> = outcomes
        .into_iter()
        .map(|outcome| outcome.unwrap().link.id)
        .collect();
    assert_eq!(keys.len(), BULK_LINKS_MAX);
    assert!(
        world
            .links
            .create_many(ANN, vec![], None)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_failing_store_is_an_error_and_what_was_created_before_it_is_told() {
    let world = scripted(&["free001", "taken01"]);
    world.alias("taken01", TARGET).await;
    world.store.fail(true);
    let failed = world.links.create(ANN, new(TARGET), None).await;
    assert!(
        matches!(failed, Err(LinkError::Store(failure)) if failure.kind == ErrorKind::Unavailable)
    );
    world.store.fail(false);

    let world = scripted(&["free001", "taken01"]);
    world.alias("taken01", TARGET).await;
    world.store.fail_after_inserts(2);
    let items = vec![new(TARGET), new(TARGET)];
    let outcomes = world.links.create_many(ANN, items, None).await.unwrap();
    assert_eq!(outcomes[0].as_ref().unwrap().link.id, id("free001"));
    assert!(
        matches!(&outcomes[1], Err(LinkError::Store(failure)) if failure.kind == ErrorKind::Timeout)
    );
}

#[tokio::test]
async fn many_creators_race_for_one_alias_and_one_wins_b2() {
    let world = World::new();
    for n in 0..200 {
        let alias = format!("race{n}");
        let racers: Vec<_> = (0..8)
            .map(|_| {
                let links = Arc::clone(&world.links);
                let new = aliased(&alias);
                tokio::spawn(async move { links.create(ANN, new, None).await })
            })
            .collect();
        let mut winners = 0;
        for racer in racers {
            match racer.await.unwrap() {
                Ok(_) => winners += 1,
                Err(LinkError::AliasTaken(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(winners, 1);
    }
}

async fn claiming_world(seeds: &[&str]) -> World {
    let supply = supply(Strategy::Claim, MemoryKeyPool::new(0)).await;
    let world = World::with(Plan {
        supply,
        ..Plan::default()
    });
    let ids: Vec<_> = seeds.iter().map(|key| id(key)).collect();
    world.store.seed(&ids).await.unwrap();
    world
}

#[tokio::test]
async fn claimed_rows_are_used_first_and_random_keys_when_they_run_out() {
    let world = claiming_world(&["seed001", "seed002"]).await;
    assert_eq!(world.resolve("seed001").await, Resolution::Absent);
    let items = vec![new(TARGET), aliased("mine"), new(TARGET), new(TARGET)];
    let outcomes = world.links.create_many(ANN, items, None).await.unwrap();
    let links: Vec<_> = outcomes.into_iter().map(|o| o.unwrap().link).collect();
    let origins: Vec<_> = links.iter().map(|link| link.origin).collect();
    assert_eq!(
        origins,
        [
            KeyOrigin::Claim,
            KeyOrigin::Alias,
            KeyOrigin::Claim,
            KeyOrigin::Random
        ]
    );
    let keys: HashSet<_> = links.iter().map(|link| link.id.key.as_str()).collect();
    assert!(keys.contains("seed001") && keys.contains("seed002"));
    assert_eq!(keys.len(), 4);
    assert_eq!(location(&world.resolve("seed001").await), Some(TARGET));
    for link in links {
        assert_eq!(world.stored(link.id.key.as_str()).await, Some(link));
    }
}

/// A retry must know the keys before anything is written: seeded rows are for requests without one.
#[tokio::test]
async fn a_request_with_an_idempotency_key_takes_random_keys_instead_of_rows() {
    let world = claiming_world(&["seed001", "seed002"]).await;
    let create = || {
        let [_, key] = once_keys();
        world.links.create(ANN, new(TARGET), key)
    };
    let first = create().await.unwrap();
    let again = create().await.unwrap();
    assert_eq!(first.link, again.link);
    assert!(again.replayed && !first.replayed);
    assert_eq!(first.link.origin, KeyOrigin::Random);
}

fn once_keys() -> [Option<IdempotencyKey>; 2] {
    let once = IdempotencyKey {
        key: "again".into(),
        fingerprint: [7; 32],
    };
    [None, Some(once)]
}

#[tokio::test]
async fn a_create_that_is_clearly_refused_gives_its_keys_back_k2() {
    for once in once_keys() {
        let world = scripted(&["abc1234", "abc1235"]);
        world.store.fail(true);
        for _ in 0..10 {
            let both = vec![new(TARGET), new(TARGET), aliased("mine")];
            let refused = world.links.create_many(ANN, both, once.clone()).await;
            assert!(matches!(refused, Err(LinkError::Store(_))), "{refused:?}");
        }
        world.store.fail(false);
        let both = vec![new(TARGET), new(TARGET)];
        let made = world.links.create_many(ANN, both, once).await.unwrap();
        let keys: HashSet<String> = made
            .into_iter()
            .map(|one| one.unwrap().link.id.key.to_string())
            .collect();
        assert_eq!(keys, ["abc1234", "abc1235"].map(str::to_owned).into());
    }
}

#[tokio::test]
async fn a_create_of_unknown_outcome_keeps_its_key() {
    for once in once_keys() {
        let world = scripted(&["abc1234"]);
        world.store.fail_after_inserts(0);
        let unknown = world.links.create(ANN, new(TARGET), once.clone()).await;
        assert!(matches!(unknown, Err(LinkError::Store(_))), "{unknown:?}");
        world.store.fail_after_inserts(u64::MAX);
        let is_retry = once.is_some();
        let made = world.links.create(ANN, new(TARGET), once).await.unwrap();
        // It may be on a link; a retry goes on with the key that it planned.
        assert_eq!(made.link.id == id("abc1234"), is_retry);
    }
}
