//! The one check where a key is given to a link, whatever made it.

use std::sync::Arc;

use curt_core::ports::SeededLinks;
use curt_core::{Alphabet, Key, KeyOrigin, KeyRules, UnwantedWords};
use curt_keys::{KeySupply, SuppliedKey};
use curt_links::{IdempotencyKey, LinkSettings, NewLink, Resolution};
use curt_testkit::keys::{claiming_supply, scripted_supply};

use curt_testkit::sample::SampleWrites;

use crate::world::*;

const TARGET: &str = "https://example.com/";

fn rules() -> LinkSettings {
    LinkSettings {
        keys: KeyRules::new(Alphabet::Base62, UnwantedWords::new(["rude"]).unwrap()),
        ..LinkSettings::default()
    }
}

fn world(supply: Arc<KeySupply>) -> World {
    World::with(Plan {
        links: rules(),
        supply,
        ..Plan::default()
    })
}

fn from(origin: KeyOrigin, keys: &[&str]) -> Arc<KeySupply> {
    let keys = keys.iter().map(|key| SuppliedKey {
        key: Key::parse(key).unwrap(),
        origin,
    });
    scripted_supply(keys)
}

fn once(name: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey {
        key: name.to_owned(),
        fingerprint: [7; 32],
    })
}

const REFUSED: [&str; 7] = [
    "account",
    "Metrics",
    "api",
    "robots.txt",
    "sign-in",
    "xRud3x1",
    "abc",
];

#[tokio::test]
async fn a_refused_key_of_any_origin_becomes_no_link_and_the_create_takes_the_next() {
    let origins = KeyOrigin::ALL.into_iter();
    for origin in origins.filter(|origin| *origin != KeyOrigin::Alias) {
        for name in [None, once("a")] {
            let keys = [&REFUSED[..], &["free001"]].concat();
            let world = world(from(origin, &keys));
            let made = world.links.create(ANN, new(TARGET), name).await.unwrap();
            assert_eq!(made.link.id, id("free001"), "{origin:?}");
            for key in REFUSED {
                assert_eq!(world.stored(key).await, None, "{origin:?} {key}");
            }
        }
    }
}

#[tokio::test]
async fn in_bulk_each_link_gets_a_key_that_may_be_given() {
    let world = world(from(
        KeyOrigin::Ledger,
        &[
            "health", "free001", "setup", "rude123", "free002", "free003",
        ],
    ));
    let made = world
        .links
        .create_many(ANN, vec![new(TARGET); 3], None)
        .await;
    let keys: Vec<String> = made
        .unwrap()
        .into_iter()
        .map(|made| made.unwrap().link.id.key.to_string())
        .collect();
    assert_eq!(keys, ["free001", "free002", "free003"]);
}

#[tokio::test]
async fn rows_seeded_before_a_word_was_unwanted_are_not_claimed() {
    for name in [None, once("a")] {
        let world = world(claiming_supply());
        let seeds = ["myrude1", "rude234"].map(id);
        world.store.seed(&seeds).await.unwrap();
        let fine = [id("free001")];
        world.store.seed(&fine).await.unwrap();
        let again = name.clone();
        let drafts: Vec<NewLink> = vec![new(TARGET); 3];
        let made = world.links.create_many(ANN, drafts.clone(), name).await;
        let keys: Vec<String> = made
            .unwrap()
            .into_iter()
            .map(|made| made.unwrap().link.id.key.to_string())
            .collect();
        for key in &keys {
            assert!(!key.contains("rude"), "{keys:?}");
            assert!(matches!(world.resolve(key).await, Resolution::Live(_)));
        }
        for key in ["myrude1", "rude234"] {
            assert!(!matches!(world.resolve(key).await, Resolution::Live(_)));
        }
        // Whoever repeats the request hears of the same links.
        if again.is_some() {
            let repeated = world.links.create_many(ANN, drafts, again).await.unwrap();
            let same: Vec<String> = repeated
                .into_iter()
                .map(|made| made.unwrap().link.id.key.to_string())
                .collect();
            assert_eq!(keys, same);
        }
    }
}

/// A row that somebody else wrote, or one of a version that knew fewer words.
#[tokio::test]
async fn a_stored_link_under_a_word_of_the_server_is_neither_served_nor_kept() {
    let world = World::new();
    let mut link = world.alias("fine", TARGET).await.link;
    for word in ["account", "API", "setup"] {
        link.id = id(word);
        let request = vec![link.clone()];
        world.store.insert(request).await.unwrap();
        assert_eq!(world.resolve(word).await, Resolution::Absent, "{word}");
        assert_eq!(world.cached(word), None, "{word}");
    }
    world.resolve("fine").await;
    assert!(world.cached("fine").is_some());
}
