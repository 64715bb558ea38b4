use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{BatchId, KeyPool, LinkIndex, LinkTotals};
use curt_core::{Alphabet, Clock, KeyOrigin, LinkState};
use curt_keys::{KeySupply, Strategy};
use curt_links::{EditLink, IdempotencyKey, LinkError, NewLink};
use curt_memory::MemoryKeyPool;
use curt_testkit::keys::scripted_supply;

use crate::world::*;

const TARGET: &str = "https://example.com/";

fn once(key: &str, fingerprint: u8) -> Option<IdempotencyKey> {
    Some(IdempotencyKey {
        key: key.into(),
        fingerprint: [fingerprint; 32],
    })
}

fn aliased(alias: &str) -> NewLink {
    NewLink {
        alias: Some(alias.into()),
        title: Some("title".into()),
        ..new(TARGET)
    }
}

async fn live_links(world: &World) -> u64 {
    world.store.counts().await.unwrap().live
}

#[tokio::test]
async fn the_same_request_again_creates_nothing_and_gets_the_same_link() {
    let world = World::new();
    let first = world
        .links
        .create(ANN, new(TARGET), once("k", 1))
        .await
        .unwrap();
    for _ in 0..3 {
        let again = world
            .links
            .create(ANN, new(TARGET), once("k", 1))
            .await
            .unwrap();
        assert!(again.replayed);
        assert_eq!(again.link, first.link);
    }
    assert_eq!(live_links(&world).await, 1);
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_its_owner_and_its_request() {
    let world = World::new();
    world
        .links
        .create(ANN, new(TARGET), once("k", 1))
        .await
        .unwrap();
    let other_request = world.links.create(ANN, new(TARGET), once("k", 2)).await;
    assert!(matches!(other_request, Err(LinkError::IdempotencyMismatch)));
    let other_owner = world
        .links
        .create(BOB, new(TARGET), once("k", 1))
        .await
        .unwrap();
    assert!(!other_owner.replayed);
    assert_eq!(live_links(&world).await, 2);
}

#[tokio::test]
async fn an_idempotency_key_is_forgotten_after_a_day() {
    let world = World::new();
    world
        .links
        .create(ANN, new(TARGET), once("k", 1))
        .await
        .unwrap();
    world.clock.advance(IDEMPOTENCY_KEPT + DAY);
    let later = world
        .links
        .create(ANN, new(TARGET), once("k", 1))
        .await
        .unwrap();
    assert!(!later.replayed);
}

#[tokio::test]
async fn a_replay_shows_the_link_as_it_is_now() {
    let world = World::new();
    world
        .links
        .create(ANN, aliased("a"), once("k", 1))
        .await
        .unwrap();
    let edit = EditLink {
        target: Some("https://example.com/new".into()),
        ..EditLink::default()
    };
    let edited = world.links.edit(own(ANN), "a", None, edit).await.unwrap();
    let again = world
        .links
        .create(ANN, aliased("a"), once("k", 1))
        .await
        .unwrap();
    assert_eq!(again.link, edited);
}

#[tokio::test]
async fn a_replay_of_a_deleted_link_says_that_it_is_gone() {
    let world = World::new();
    let create = || world.links.create(ANN, aliased("a"), once("k", 1));
    create().await.unwrap();
    world.clock.advance(DAY / 24);
    world.links.delete(own(ANN), "a", None).await.unwrap();
    for _ in 0..2 {
        let again = create().await;
        assert!(matches!(again, Err(LinkError::CreatedAndGone(key)) if key.as_str() == "a"));
    }
    let tombstone = world.stored("a").await.unwrap();
    assert_eq!(
        tombstone.state,
        LinkState::Tombstone,
        "and it stays deleted"
    );
    assert_eq!(live_links(&world).await, 0);
}

#[tokio::test]
async fn a_replay_of_a_purged_link_in_a_bulk_says_which_one_is_gone() {
    let world = World::new();
    let items = || vec![new(TARGET), aliased("stays"), new(TARGET)];
    let create = || world.links.create_many(ANN, items(), once("k", 1));
    let first = create().await.unwrap();
    let gone = &first[2].as_ref().unwrap().link;
    let switched = world.links.disable("stays").await.unwrap();
    world
        .links
        .delete(own(ANN), gone.id.key.as_str(), None)
        .await
        .unwrap();
    let again = create().await.unwrap();
    assert_eq!(
        again[0].as_ref().unwrap().link,
        first[0].as_ref().unwrap().link
    );
    assert_eq!(again[1].as_ref().unwrap().link, switched, "as it is now");
    assert!(matches!(&again[2], Err(LinkError::CreatedAndGone(key)) if *key == gone.id.key));
}

/// The owner's own next link under the key is not the one that the request made, either.
#[tokio::test]
async fn a_replay_never_shows_another_link_that_has_got_the_key_since() {
    for by in [ANN, BOB] {
        let world = World::with(Plan {
            supply: scripted_supply(["gen0001", "gen0001", "gen0002"].map(generated)),
            ..Plan::default()
        });
        let create = || world.links.create(ANN, new(TARGET), once("k", 1));
        let first = create().await.unwrap().link;
        let key = first.id.key.as_str();
        world.links.delete(own(ANN), key, None).await.unwrap();
        world.clock.advance(DAY / 24);
        world.store.release(world.clock.now(), 9).await.unwrap();
        let again = create().await;
        assert!(matches!(again, Err(LinkError::CreatedAndGone(_))));
        let next = NewLink {
            alias: Some(key.into()),
            ..new(TARGET)
        };
        let next = world.links.create(by, next, None).await.unwrap().link;
        assert_eq!(next.id, first.id);
        assert_eq!(next.revision, first.revision.reborn());
        let again = create().await;
        assert!(
            matches!(again, Err(LinkError::CreatedAndGone(_))),
            "{again:?}"
        );
    }
}

#[tokio::test]
async fn a_taken_alias_is_remembered_as_the_answer() {
    let world = World::new();
    world.alias("taken", TARGET).await;
    for _ in 0..2 {
        let items = vec![aliased("taken"), new(TARGET)];
        let outcomes = world
            .links
            .create_many(ANN, items, once("k", 1))
            .await
            .unwrap();
        assert!(matches!(outcomes[0], Err(LinkError::AliasTaken(_))));
        assert!(outcomes[1].is_ok());
    }
    assert_eq!(live_links(&world).await, 2);
}

#[tokio::test]
async fn a_bulk_is_replayed_in_order_past_invalid_items() {
    let world = World::new();
    let items = || {
        vec![
            new("https://example.com/1"),
            new("ftp://example.com/"),
            aliased("mine"),
        ]
    };
    let first = world
        .links
        .create_many(ANN, items(), once("k", 1))
        .await
        .unwrap();
    let again = world
        .links
        .create_many(ANN, items(), once("k", 1))
        .await
        .unwrap();
    for (first, again) in first.iter().zip(&again) {
        match (first, again) {
            (Ok(first), Ok(again)) => {
                assert_eq!(first.link, again.link);
                assert!(again.replayed);
            }
            (Err(LinkError::Invalid(first)), Err(LinkError::Invalid(again))) => {
                assert_eq!(first, again);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(live_links(&world).await, 2);
}

#[tokio::test]
async fn a_conflict_is_resolved_with_fresh_keys_and_then_recorded() {
    let supply = scripted_supply(["taken01", "free001", "free002"].map(generated));
    let world = World::with(Plan {
        supply,
        ..Plan::default()
    });
    world.alias("taken01", TARGET).await;
    let items = || vec![new(TARGET), new(TARGET), aliased("mine")];
    let outcomes = world
        .links
        .create_many(ANN, items(), once("k", 1))
        .await
        .unwrap();
    let keys: Vec<String> = outcomes
        .into_iter()
        .map(|outcome| outcome.unwrap().link.id.key.to_string())
        .collect();
    assert_eq!(
        keys,
        ["free002", "free001", "mine"],
        "only the taken key was replaced"
    );
    let again = world
        .links
        .create_many(ANN, items(), once("k", 1))
        .await
        .unwrap();
    let again: Vec<String> = again
        .into_iter()
        .map(|outcome| outcome.unwrap().link.id.key.to_string())
        .collect();
    assert_eq!(again, keys);
    let counts = world.store.counts().await.unwrap();
    assert_eq!(counts.created_from(KeyOrigin::Ledger), 2);
    assert_eq!(counts.created_from(KeyOrigin::Random), 0);
}

#[tokio::test]
async fn an_item_whose_expiry_has_passed_since_makes_another_request() {
    let world = World::new();
    let items = || vec![expiring(TARGET, DAY / 24), new(TARGET)];
    world
        .links
        .create_many(ANN, items(), once("k", 1))
        .await
        .unwrap();
    world.clock.advance(DAY / 12);
    let late = world.links.create_many(ANN, items(), once("k", 1)).await;
    assert!(matches!(late, Err(LinkError::IdempotencyMismatch)));
    assert_eq!(live_links(&world).await, 2);
}

#[tokio::test]
async fn idempotency_keys_are_short_and_visible() {
    let world = World::new();
    let long = "x".repeat(256);
    for key in ["", &long, "a\nb", "ä"] {
        let refused = world.links.create(ANN, new(TARGET), once(key, 1)).await;
        assert_eq!(codes(refused), ["idempotency_key_invalid"], "{key:?}");
    }
    let longest = "x".repeat(255);
    assert!(
        world
            .links
            .create(ANN, new(TARGET), once(&longest, 1))
            .await
            .is_ok()
    );
}

/// Waits until the supply holds exactly `count` keys; they move between pool and buffer meanwhile.
async fn holds(supply: &KeySupply, count: u64) {
    for _ in 0..100_000 {
        let counts = supply.count_keys().await.unwrap();
        if counts.pooled + counts.buffered == count {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{:?}, wanted {count}", supply.count_keys().await);
}

#[tokio::test]
async fn replays_and_refusals_use_up_no_keys_k2() {
    let pool = MemoryKeyPool::new(1_000);
    let keys = (0..100).map(|n| Alphabet::Base62.encode(n, 7).unwrap());
    let batch = BatchId("batch".into());
    pool.push(&batch, &keys.collect::<Vec<_>>()).await.unwrap();
    let supply = supply(Strategy::Pool, pool).await;
    let world = World::with(Plan {
        supply: supply.clone(),
        ..Plan::default()
    });
    holds(&supply, 100).await;
    let items = || vec![new(TARGET), new(TARGET), aliased("mine")];
    world
        .links
        .create_many(ANN, items(), once("k", 1))
        .await
        .unwrap();
    holds(&supply, 98).await;
    for _ in 0..20 {
        let again = world.links.create_many(ANN, items(), once("k", 1)).await;
        assert!(again.unwrap().into_iter().all(|outcome| outcome.is_ok()));
        let other = world.links.create_many(ANN, items(), once("k", 2)).await;
        assert!(matches!(other, Err(LinkError::IdempotencyMismatch)));
    }
    holds(&supply, 98).await;
    assert_eq!(live_links(&world).await, 3);
}
