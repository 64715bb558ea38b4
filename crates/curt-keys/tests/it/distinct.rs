//! Every strategy gives distinct keys: alone, with many takers, with a twin, and over many lives.

use std::collections::HashSet;

use curt_core::link::KeyOrigin;
use curt_core::ports::Inserted;
use curt_keys::{KeySettings, KeySupply, Strategy, drive};

use crate::world::{Running, World, small, take};

const KEYS: u64 = 100_000;
const TAKERS: u64 = 16;

async fn distinct(strategy: Strategy, keys: u64) {
    let world = World::new();
    let settings = KeySettings {
        strategy,
        ..KeySettings::default()
    };
    let running = Running::start(settings, world.life()).await;
    let driven = drive(&running.supply, &running.ports, keys, TAKERS)
        .await
        .unwrap();
    assert_eq!(driven.keys, keys, "{strategy}");
    assert_eq!(driven.distinct, keys, "K-1: {strategy} gave a key twice");
    running.shut().await;
}

#[tokio::test]
async fn pool_gives_distinct_keys_to_16_takers() {
    distinct(Strategy::Pool, KEYS).await;
}

#[tokio::test]
async fn status_gives_distinct_keys_to_16_takers() {
    distinct(Strategy::Status, KEYS).await;
}

#[tokio::test]
async fn file_gives_distinct_keys_to_16_takers() {
    distinct(Strategy::File, KEYS).await;
}

#[tokio::test]
async fn claim_gives_distinct_keys_to_16_takers() {
    distinct(Strategy::Claim, KEYS).await;
}

#[tokio::test]
async fn snowflake_gives_distinct_keys_to_16_takers() {
    distinct(Strategy::Snowflake, KEYS).await;
}

#[tokio::test]
async fn sequence_gives_distinct_keys_to_16_takers() {
    distinct(Strategy::Sequence, KEYS).await;
}

/// 62^7 keys for 100,000 targets: a collision would be a chance of one in 700.
#[tokio::test]
async fn hash_gives_distinct_keys_to_distinct_targets() {
    let world = World::new();
    let settings = KeySettings {
        strategy: Strategy::Hash,
        length: 10,
        ..KeySettings::default()
    };
    let supply = KeySupply::open(settings, world.life(), Default::default())
        .await
        .unwrap();
    let driven = drive(&supply, &world.life(), KEYS, TAKERS).await.unwrap();
    assert_eq!((driven.keys, driven.distinct), (KEYS, KEYS));
}

const RINGED: [Strategy; 5] = [
    Strategy::Pool,
    Strategy::Status,
    Strategy::File,
    Strategy::Snowflake,
    Strategy::Sequence,
];

#[tokio::test]
async fn two_supplies_on_the_same_ports_never_give_the_same_key() {
    for strategy in RINGED {
        let world = World::new();
        let ports = world.life();
        let one = Running::start(small(strategy), ports.clone()).await;
        let two = Running::start(small(strategy), ports).await;
        let mut seen = HashSet::new();
        for number in 0..500 {
            for running in [&one, &two] {
                running.supply.filled().await;
                let supplied = take(&running.supply, number).await;
                assert_ne!(supplied.origin, KeyOrigin::Random, "{strategy} ran dry");
                assert!(seen.insert(supplied.key), "K-1: {strategy}");
            }
        }
    }
}

#[tokio::test]
async fn over_20_crashes_no_key_is_given_to_two_links() {
    for strategy in RINGED {
        let world = World::new();
        for life in 0..20 {
            let running = Running::start(small(strategy), world.life()).await;
            for number in 0..50 {
                running.supply.filled().await;
                let supplied = take(&running.supply, number).await;
                assert_ne!(supplied.origin, KeyOrigin::Random, "{strategy} ran dry");
                let stored = world.store(&supplied).await;
                assert_eq!(stored, Inserted::Created, "K-1: {strategy} in life {life}");
            }
            running.crash().await;
        }
    }
}
