//! Every strategy gives distinct keys: alone, with many takers, with a twin, and over many lives.

use std::collections::HashSet;
use std::sync::Arc;

use curt_core::link::KeyOrigin;
use curt_core::{Key, PortResult};
use curt_keys::{KeyPorts, KeySettings, KeySupply, Strategy, SuppliedKey};
use tokio::task::JoinSet;

use crate::world::{Running, World, link, small, take};

const KEYS: u64 = 100_000;
const TAKERS: u64 = 16;

async fn distinct(strategy: Strategy, keys: u64) {
    let world = World::new();
    let settings = KeySettings {
        strategy,
        ..KeySettings::default()
    };
    let running = Running::start(settings, world.life()).await;
    let distinct = count_distinct(&running.supply, &running.ports, keys).await;
    assert_eq!(distinct, keys, "K-1: {strategy} gave a key twice");
    running.shut().await;
}

/// Takes `keys` keys of the strategy with all takers at once and returns how many are different.
async fn count_distinct(supply: &Arc<KeySupply>, ports: &KeyPorts, keys: u64) -> u64 {
    let mut takers = JoinSet::new();
    for taker in 0..TAKERS {
        let (supply, ports) = (Arc::clone(supply), ports.clone());
        takers.spawn(async move {
            let mut taken = Vec::new();
            while (taken.len() as u64) < keys / TAKERS {
                let number = taker * keys + taken.len() as u64;
                let before = taken.len();
                if supply.claims_rows() {
                    taken.extend(claim(&ports, keys / TAKERS - number % keys).await.unwrap());
                }
                if taken.len() == before {
                    let supplied = take(&supply, number).await;
                    match supplied.origin {
                        // Dry: leaves keygen the processor.
                        KeyOrigin::Random => tokio::task::yield_now().await,
                        _ => taken.push(supplied.key),
                    }
                }
            }
            taken
        });
    }
    let taken = takers.join_all().await;
    assert!(taken.iter().all(|keys| keys.len() == taken[0].len()));
    taken.into_iter().flatten().collect::<HashSet<Key>>().len() as u64
}

/// Claims up to 64 rows, and not more than are wanted.
async fn claim(ports: &KeyPorts, wanted: u64) -> PortResult<Vec<Key>> {
    let placeholder = SuppliedKey {
        key: Key::parse("ignored").unwrap(),
        origin: KeyOrigin::Claim,
    };
    let request = vec![link(&placeholder); wanted.min(64) as usize];
    let links = ports.links.as_ref().unwrap();
    let claimed = links.seeded.as_ref().unwrap().claim(request).await?;
    Ok(claimed.into_iter().map(|link| link.id.key).collect())
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
    let distinct = count_distinct(&supply, &world.life(), KEYS).await;
    assert_eq!(distinct, KEYS);
}

const BUFFERED: [Strategy; 5] = [
    Strategy::Pool,
    Strategy::Status,
    Strategy::File,
    Strategy::Snowflake,
    Strategy::Sequence,
];

#[tokio::test]
async fn two_supplies_on_the_same_ports_never_give_the_same_key() {
    for strategy in BUFFERED {
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
    for strategy in BUFFERED {
        let world = World::new();
        for life in 0..20 {
            let running = Running::start(small(strategy), world.life()).await;
            for number in 0..50 {
                running.supply.filled().await;
                let supplied = take(&running.supply, number).await;
                assert_ne!(supplied.origin, KeyOrigin::Random, "{strategy} ran dry");
                let stored = world.store(&supplied).await;
                assert!(stored, "K-1: {strategy} in life {life}");
            }
            running.crash().await;
        }
    }
}
