//! K-2 to the key, recycling, and the metric.

use std::sync::Arc;
use std::time::Duration;

use curt_core::link::KeyOrigin;
use curt_core::{DomainId, Key, LinkId, Revision, UnixMillis};
use curt_keys::{KeyCounts, KeyMetrics, KeySupply, Strategy, SuppliedKey};
use curt_memory::MemoryKeyPool;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::world::{Running, World, key_counts_at_rest, link, small, take};

#[tokio::test]
async fn every_key_is_accounted_for_while_running_and_after_the_end() {
    for strategy in [Strategy::Pool, Strategy::Status] {
        let world = World::new();
        let running = Running::start(small(strategy), world.life()).await;
        for number in 0..300 {
            running.supply.filled().await;
            let supplied = take(&running.supply, number).await;
            assert_eq!(supplied.origin, KeyOrigin::Ledger);
            world.store(&supplied).await;
        }
        let supply = running.shut().await;
        let accounts = supply.count_keys().await.unwrap();
        assert!(accounts.balances(), "K-2: {accounts:?}");
        assert_eq!((accounts.used, accounts.leaked), (300, 0), "{accounts:?}");
        assert_eq!(accounts.minted, accounts.free + 300, "{accounts:?}");
    }
}

/// A supply whose reconcilers run only when the test says so: nothing moves while it counts.
struct Quiet {
    world: World,
    supply: Arc<KeySupply>,
    metrics: KeyMetrics,
}

impl Quiet {
    async fn open(world: World) -> Self {
        let metrics = KeyMetrics::default();
        let mut settings = small(Strategy::Pool);
        settings.pool.in_flight = Duration::from_secs(1);
        let supply = KeySupply::open(settings, world.life(), metrics.clone())
            .await
            .unwrap();
        Self {
            world,
            supply,
            metrics,
        }
    }

    async fn pass(&self) {
        self.supply.keygen_pass(&CancellationToken::new()).await;
        self.supply.keysync_pass(&CancellationToken::new()).await;
        self.supply.filled().await;
    }

    async fn create(&self, links: u64) -> Vec<LinkId> {
        let mut ids = Vec::new();
        for number in 0..links {
            self.pass().await;
            let supplied = take(&self.supply, number).await;
            self.world.store(&supplied).await;
            ids.push(LinkId::new(DomainId::DEFAULT, supplied.key));
        }
        self.pass().await;
        ids
    }

    async fn count_keys(&self) -> KeyCounts {
        let accounts = key_counts_at_rest(&self.supply).await;
        assert!(accounts.balances(), "K-2: {accounts:?}");
        accounts
    }

    /// Creates 20 links, deletes 10 and releases 6 of those. Returns the released ids.
    async fn release_six(&self) -> Vec<LinkId> {
        let links = &self.world.links;
        for id in &self.create(20).await[..10] {
            links
                .delete_at(id, Revision::FIRST, UnixMillis(1))
                .await
                .unwrap();
        }
        let deleted = self.count_keys().await;
        assert_eq!((deleted.quarantined, deleted.used), (10, 10), "{deleted:?}");
        assert_eq!(deleted.leaked, 0, "{deleted:?}");
        let released = links.release(UnixMillis(1), 6).await.unwrap();
        let released: Vec<LinkId> = released.into_iter().map(|one| one.id).collect();
        assert_eq!(released.len(), 6);
        let lost = self.count_keys().await;
        assert_eq!((lost.quarantined, lost.leaked), (4, 6), "{lost:?}");
        released
    }
}

#[tokio::test]
async fn recycled_keys_are_free_again_and_counted() {
    let mut world = World::new();
    world.pools = vec![Arc::new(MemoryKeyPool::new(100))];
    let quiet = Quiet::open(world).await;
    let released = quiet.release_six().await;
    assert_eq!(quiet.supply.recycle(&released).await.unwrap(), 6);
    assert_eq!(quiet.metrics.recycled.get(), 6);
    let accounts = quiet.count_keys().await;
    assert_eq!((accounts.recycled, accounts.leaked), (6, 0), "{accounts:?}");
}

/// Without a pool batches stay open until they are used up, and a ledger frees no key of an open batch.
#[tokio::test]
async fn keys_recycled_while_their_batch_is_open_come_back_with_it() {
    let quiet = Quiet::open(World::new()).await;
    let released = quiet.release_six().await;
    assert_eq!(quiet.supply.recycle(&released).await.unwrap(), 0);
    quiet.supply.close().await.unwrap();
    let accounts = quiet.count_keys().await;
    assert_eq!((accounts.used, accounts.leaked), (10, 0), "{accounts:?}");
}

#[tokio::test(start_paused = true)]
async fn keys_recycled_while_their_batch_is_open_follow_once_it_is_used_up() {
    let quiet = Quiet::open(World::new()).await;
    let released = quiet.release_six().await;
    assert_eq!(quiet.supply.recycle(&released).await.unwrap(), 0);
    quiet.create(100).await;
    for _ in 0..2 {
        tokio::time::advance(Duration::from_secs(301)).await;
        quiet.pass().await;
    }
    assert_eq!(quiet.metrics.recycled.get(), 6);
    let accounts = quiet.count_keys().await;
    assert_eq!((accounts.recycled, accounts.leaked), (6, 0), "{accounts:?}");
}

#[tokio::test]
async fn a_key_that_met_a_link_is_the_only_one_that_leaks() {
    let world = World::new();
    let running = Running::start(small(Strategy::Pool), world.life()).await;
    running.supply.filled().await;
    let supplied = take(&running.supply, 0).await;
    world
        .store(&SuppliedKey {
            origin: KeyOrigin::Alias,
            ..supplied.clone()
        })
        .await;
    running.supply.conflicted(&supplied);
    assert_eq!(running.metrics.conflicts.get(), 1);
    let supply = running.shut().await;
    let accounts = supply.count_keys().await.unwrap();
    assert_eq!((accounts.used, accounts.leaked), (0, 1), "{accounts:?}");
}

#[tokio::test]
async fn rows_are_seeded_between_the_watermarks_and_seeded_again_by_recycling() {
    let world = World::new();
    let metrics = KeyMetrics::default();
    let supply = KeySupply::open(small(Strategy::Claim), world.life(), metrics)
        .await
        .unwrap();
    assert!(supply.claims_rows());
    let stop = CancellationToken::new();
    supply.keygen_pass(&stop).await;
    assert_eq!(world.links.counts().await.unwrap().seeded, 40);
    let placeholder = SuppliedKey {
        key: Key::parse("ignored").unwrap(),
        origin: KeyOrigin::Claim,
    };
    let request = vec![link(&placeholder); 25];
    let claimed = world.links.claim(request).await.unwrap();
    let accounts = supply.count_keys().await.unwrap();
    assert_eq!((accounts.free, accounts.used), (15, 25));
    supply.keygen_pass(&stop).await;
    assert_eq!(world.links.counts().await.unwrap().seeded, 40);

    let id = &claimed[0].id;
    world
        .links
        .delete_at(id, Revision::FIRST, UnixMillis(1))
        .await
        .unwrap();
    let released = world.links.release(UnixMillis(1), 9).await.unwrap();
    let released: Vec<LinkId> = released.into_iter().map(|one| one.id).collect();
    assert_eq!(released, std::slice::from_ref(id));
    assert_eq!(supply.recycle(&released).await.unwrap(), 1);
    assert_eq!(world.links.counts().await.unwrap().seeded, 41);
}

#[tokio::test]
async fn strategies_without_a_place_for_old_keys_ignore_them() {
    let world = World::new();
    let ids = [LinkId::new(DomainId::DEFAULT, Key::parse("old").unwrap())];
    for strategy in [
        Strategy::File,
        Strategy::Snowflake,
        Strategy::Sequence,
        Strategy::Hash,
    ] {
        let supply = KeySupply::open(small(strategy), world.life(), KeyMetrics::default())
            .await
            .unwrap();
        assert_eq!(supply.recycle(&ids).await.unwrap(), 0, "{strategy}");
    }
}

#[tokio::test]
async fn a_sequence_accounts_for_the_numbers_that_it_gave_away() {
    let world = World::new();
    let running = Running::start(small(Strategy::Sequence), world.life()).await;
    for number in 0..100 {
        running.supply.filled().await;
        world.store(&take(&running.supply, number).await).await;
    }
    let accounts = running.supply.count_keys().await.unwrap();
    assert!(accounts.balances(), "{accounts:?}");
    assert_eq!((accounts.used, accounts.leaked), (100, 0), "{accounts:?}");
}

#[tokio::test(start_paused = true)]
async fn the_metric_shows_every_stage() {
    let world = World::new();
    let mut registry = Registry::default();
    let metrics = KeyMetrics::register(&mut registry);
    let supply = KeySupply::open(small(Strategy::Pool), world.life(), metrics)
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let keygen = tokio::spawn(Arc::clone(&supply).run_keygen(stop.clone()));
    tokio::spawn(Arc::clone(&supply).run_heartbeat(stop.clone()));
    while world.ledgers[0].counts().await.unwrap().free < 90 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        "curt_keys{stage=\"minted\"} 120",
        "curt_keys{stage=\"free\"} 90",
        "curt_keys{stage=\"buffered\"} 30",
        "curt_keys{stage=\"leaked\"} 0",
        "curt_key_fallbacks_total 0",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    stop.cancel();
    keygen.await.unwrap();
}
