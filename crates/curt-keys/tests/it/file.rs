//! Key files: written once, claimed before served (K-4), skipped when damaged.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::ports::{KeyFile, KeyFileLayout, KeyFileStat, KeyFileWriter};
use curt_core::{Alphabet, ErrorKind, Key, PortError, PortResult};
use curt_keys::{KeyMetrics, KeySupply, KeySupplyError, Strategy};
use tokio_util::sync::CancellationToken;

use crate::world::{Running, World, small, take};

/// Files of which one block is damaged.
struct Damaged {
    inner: Arc<dyn KeyFile>,
    block: u64,
}

#[async_trait]
impl KeyFile for Damaged {
    async fn create(
        &self,
        name: &str,
        layout: KeyFileLayout,
    ) -> PortResult<Box<dyn KeyFileWriter>> {
        self.inner.create(name, layout).await
    }
    async fn stat(&self, name: &str) -> PortResult<Option<KeyFileStat>> {
        self.inner.stat(name).await
    }
    async fn read(&self, name: &str, first: u64, count: usize) -> PortResult<Vec<Key>> {
        if first / 10 == self.block {
            let why = "checksum differs";
            return Err(PortError::new(ErrorKind::Corrupt, "test", "read", why));
        }
        self.inner.read(name, first, count).await
    }
    async fn names(&self) -> PortResult<Vec<Box<str>>> {
        self.inner.names().await
    }
}

#[tokio::test]
async fn a_damaged_block_is_skipped_and_counted() {
    let mut world = World::new();
    world.files = Arc::new(Damaged {
        inner: Arc::clone(&world.files),
        block: 2,
    });
    let running = Running::start(small(Strategy::File), world.life()).await;
    let mut seen = HashSet::new();
    for number in 0..60 {
        running.supply.filled().await;
        let supplied = take(&running.supply, number).await;
        assert_eq!(supplied.origin, KeyOrigin::File);
        assert!(seen.insert(supplied.key));
    }
    assert_eq!(running.metrics.corrupt_blocks.get(), 1);
}

#[tokio::test]
async fn a_block_is_claimed_before_its_first_key_is_served() {
    let world = World::new();
    let running = Running::start(small(Strategy::File), world.life()).await;
    running.supply.filled().await;
    take(&running.supply, 0).await;
    let position = world.cursor.get("key-files/base62-7/position").await;
    assert!(position.unwrap() >= 10, "K-4");
}

#[tokio::test]
async fn files_hold_every_index_once_and_do_not_tell_their_neighbours() {
    let world = World::new();
    let stop = CancellationToken::new();
    let mut settings = small(Strategy::File);
    settings.file.file_keys = 10_000;
    settings.file.block_keys = 1_000;
    let open = || KeySupply::open(settings.clone(), world.life(), KeyMetrics::default());
    // Two writers with the same numbers, one after the other: the second finds nothing to do.
    open().await.unwrap().keygen_pass(&stop).await;
    open().await.unwrap().keygen_pass(&stop).await;
    let names = world.files.names().await.unwrap();
    assert_eq!(names.len(), 1, "{names:?}");
    let keys = world.files.read(&names[0], 0, 20_000).await.unwrap();
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 10_000);
    let numbers: Vec<u128> = keys
        .iter()
        .map(|key| Alphabet::Base62.decode(key.as_str()).unwrap())
        .collect();
    let close = numbers
        .windows(2)
        .filter(|pair| pair[0].abs_diff(pair[1]) < 1 << 20)
        .count();
    assert!(close < 5, "{close} of 10,000 neighbours are close");
}

#[tokio::test]
async fn the_next_file_is_written_before_the_last_runs_out() {
    let world = World::new();
    let running = Running::start(small(Strategy::File), world.life()).await;
    for number in 0..1_000 {
        running.supply.filled().await;
        let supplied = take(&running.supply, number).await;
        assert_eq!(supplied.origin, KeyOrigin::File, "dry at key {number}");
        world.store(&supplied).await;
    }
    assert!(world.files.names().await.unwrap().len() > 10);
    let supply = running.shut().await;
    let accounts = supply.count_keys().await.unwrap();
    assert!(accounts.balances(), "{accounts:?}");
    assert_eq!((accounts.used, accounts.leaked), (1_000, 0), "{accounts:?}");
}

#[tokio::test]
async fn without_a_place_for_files_the_strategy_says_so() {
    let world = World::new();
    let mut ports = world.life();
    ports.files = None;
    let opened = KeySupply::open(small(Strategy::File), ports, KeyMetrics::default()).await;
    let why = opened.err().unwrap().to_string();
    assert_eq!(why, "the key strategy file needs a place for key files");
}

#[tokio::test]
async fn files_are_written_until_enough_keys_wait_and_progress_is_told() {
    let ports = World::new().life();
    let mut settings = small(Strategy::File);
    settings.file.file_keys = 1_000;
    settings.file.block_keys = 100;
    let open = |settings| KeySupply::open_behind(settings, ports.clone(), KeyMetrics::default());
    let supply = open(&settings).unwrap();
    let (stop, heard) = (CancellationToken::new(), Mutex::new(Vec::new()));
    let progress = |waiting| heard.lock().unwrap().push(waiting);
    let waiting = supply.stock_files(2_500, &stop, progress).await;
    assert_eq!(waiting.unwrap(), 3_000, "files are whole");
    let heard = heard.into_inner().unwrap();
    assert!(heard.is_sorted(), "{heard:?}");
    assert_eq!((heard[0], heard[1], heard.last()), (0, 100, Some(&3_000)));
    let again = supply.stock_files(2_500, &stop, |_| ()).await;
    assert_eq!(again.unwrap(), 3_000, "nothing was left to do");

    stop.cancel();
    let stopped = supply.stock_files(9_000, &stop, |_| ()).await;
    assert_eq!(stopped.unwrap(), 3_000, "told to stop");
    let lease = ports
        .leases
        .acquire("shard-locks/key-files", Duration::from_secs(60))
        .await;
    assert!(lease.unwrap().is_some(), "the lock is free again");
    let busy = supply
        .stock_files(9_000, &CancellationToken::new(), |_| ())
        .await;
    assert!(matches!(busy, Err(KeySupplyError::Busy(_))), "{busy:?}");
    let none = open(&small(Strategy::Pool)).unwrap();
    let none = none.stock_files(1, &stop, |_| ()).await;
    assert!(matches!(none, Err(KeySupplyError::NoFiles(Strategy::Pool))));
}
