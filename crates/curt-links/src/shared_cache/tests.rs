use std::sync::atomic::{AtomicBool, AtomicU64};

use async_trait::async_trait;
use curt_core::clock::ManualClock;
use curt_core::ports::CacheUsage;
use curt_core::{ErrorKind, PortError, PortResult};
use curt_memory::MemoryLinkCache;
use curt_testkit::sample::{NOW, id, link};

use super::*;

/// A cache that can be made to fail or to take its time, and counts what it is asked.
#[derive(Default)]
struct FaultyCache {
    cache: MemoryLinkCache,
    fails: AtomicBool,
    is_slow: AtomicBool,
    reads: AtomicU64,
}

impl FaultyCache {
    async fn pass(&self) -> PortResult<()> {
        if self.is_slow.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        match self.fails.load(Ordering::SeqCst) {
            false => Ok(()),
            true => Err(PortError::new(
                ErrorKind::Unavailable,
                "test",
                "ask",
                "away",
            )),
        }
    }
}

#[async_trait]
impl LinkCache for FaultyCache {
    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<CachedLink>>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.pass().await?;
        self.cache.get_many(ids).await
    }

    async fn set_if_newer(&self, id: &LinkId, entry: CachedLink, ttl: Duration) -> PortResult<()> {
        self.pass().await?;
        self.cache.set_if_newer(id, entry, ttl).await
    }

    async fn invalidate(
        &self,
        id: &LinkId,
        revision: Option<Revision>,
        ttl: Duration,
    ) -> PortResult<()> {
        self.pass().await?;
        self.cache.invalidate(id, revision, ttl).await
    }

    async fn clear(&self) -> PortResult<()> {
        self.pass().await?;
        self.cache.clear().await
    }

    async fn usage(&self) -> PortResult<CacheUsage> {
        self.pass().await?;
        self.cache.usage().await
    }
}

struct Fixture {
    servers: Vec<Arc<FaultyCache>>,
    shared: Arc<SharedCache>,
    stop: CancellationToken,
}

impl Fixture {
    fn start(servers: usize, settings: SharedCacheSettings) -> Self {
        let servers: Vec<Arc<FaultyCache>> = (0..servers).map(|_| Arc::default()).collect();
        let named = servers.iter().enumerate().map(|(number, server)| {
            let cache: Arc<dyn LinkCache> = server.clone();
            (format!("cache-{number}"), cache)
        });
        let clock = Arc::new(ManualClock::at(NOW));
        let metrics = SharedCacheMetrics::default();
        let shared = SharedCache::new(settings, named.collect(), clock, metrics);
        let stop = CancellationToken::new();
        tokio::spawn(Arc::clone(&shared).run(stop.clone()));
        Self {
            servers,
            shared,
            stop,
        }
    }

    fn fill(&self, key: &str) {
        let served = ServedLink::new(&link(key), NOW);
        self.shared.fill(&id(key), served);
    }

    async fn has(&self, key: &str) -> bool {
        self.shared.get(&id(key), UnixMillis(0)).await.is_some()
    }

    async fn copies(&self, key: &str) -> usize {
        let mut copies = 0;
        for server in &self.servers {
            let found = server.cache.get_many(&[id(key)]).await.unwrap();
            copies += found.into_iter().flatten().count();
        }
        copies
    }

    fn up(&self) -> usize {
        let servers = self.shared.servers.iter();
        servers.filter(|server| server.is_up()).count()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

fn all_fail(servers: &[Arc<FaultyCache>], fails: bool) {
    for server in servers {
        server.fails.store(fails, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fill_reaches_every_replica_and_an_invalidation_too() {
    let fixture = Fixture::start(3, SharedCacheSettings::default());
    fixture.fill("a");
    pass(1).await;
    assert_eq!(fixture.copies("a").await, 2);
    assert!(fixture.has("a").await);
    let revision = Some(link("a").revision);
    fixture.shared.invalidate(&[(id("a"), revision)]).await;
    assert_eq!(fixture.copies("a").await, 0);
    assert!(!fixture.has("a").await);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_missed_an_invalidation_comes_back_empty() {
    let fixture = Fixture::start(3, SharedCacheSettings::default());
    fixture.fill("a");
    pass(1).await;
    all_fail(&fixture.servers, true);
    fixture.shared.invalidate(&[(id("a"), None)]).await;
    assert_eq!(
        (fixture.up(), fixture.copies("a").await),
        (1, 2),
        "one has no copy"
    );
    all_fail(&fixture.servers, false);
    assert!(!fixture.has("a").await, "it was left");
    pass(2_000).await;
    assert_eq!((fixture.up(), fixture.copies("a").await), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_costs_a_few_deadlines_and_then_nothing() {
    let settings = SharedCacheSettings {
        replicas: 1,
        ..SharedCacheSettings::default()
    };
    let fixture = Fixture::start(1, settings);
    fixture.servers[0].is_slow.store(true, Ordering::SeqCst);
    let begun = tokio::time::Instant::now();
    for _ in 0..1_000 {
        assert!(!fixture.has("a").await);
    }
    assert!(
        begun.elapsed() <= Duration::from_millis(60),
        "{:?}",
        begun.elapsed()
    );
    // It answers, too late to be used.
    pass(10_000).await;
    assert_eq!(fixture.up(), 0);
    fixture.servers[0].is_slow.store(false, Ordering::SeqCst);
    pass(2_000).await;
    assert_eq!(fixture.up(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_other_replica_answers_for_one_that_fails() {
    let fixture = Fixture::start(2, SharedCacheSettings::default());
    fixture.fill("a");
    pass(1).await;
    all_fail(&fixture.servers[..1], true);
    for _ in 0..100 {
        assert!(fixture.has("a").await);
    }
}

#[tokio::test(start_paused = true)]
async fn the_faster_replica_is_asked_more_often_and_round_robin_asks_both() {
    for (balance, share) in [
        (CacheBalance::PowerOfTwo, 0..200),
        (CacheBalance::RoundRobin, 500..501),
    ] {
        let settings = SharedCacheSettings {
            balance,
            deadline: Duration::from_secs(1),
            ..SharedCacheSettings::default()
        };
        let fixture = Fixture::start(2, settings);
        fixture.servers[0].is_slow.store(true, Ordering::SeqCst);
        for _ in 0..1_000 {
            fixture.has("a").await;
        }
        let slow = fixture.servers[0].reads.load(Ordering::SeqCst);
        assert!(share.contains(&slow), "{balance:?}: {slow} of 1000");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_to_be_old_is_not_believed_and_what_took_long_is_not_filled() {
    let fixture = Fixture::start(1, SharedCacheSettings::default());
    fixture.fill("a");
    pass(1).await;
    let mut revision = link("a").revision;
    revision.version += 1;
    fixture.shared.note_changes(&[LinkChange {
        id: id("a"),
        revision,
    }]);
    assert!(!fixture.has("a").await);
    let slow = ServedLink::new(&link("b"), NOW.minus(FILL_AGE_MAX));
    fixture.shared.fill(&id("b"), slow);
    pass(1).await;
    assert_eq!(fixture.copies("b").await, 0);
}

/// A process that is short of processor time must not empty the cache of all others.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_late_and_missed_nothing_keeps_what_it_holds() {
    for is_told in [true, false] {
        let fixture = Fixture::start(1, SharedCacheSettings::default());
        fixture.fill("a");
        pass(1).await;
        let server = &fixture.servers[0];
        server.is_slow.store(true, Ordering::SeqCst);
        for _ in 0..10 {
            fixture.has("a").await;
        }
        assert_eq!(fixture.up(), 0);
        if !is_told {
            let outdated = (id("b"), Some(Revision::FIRST));
            fixture.shared.invalidate(&[outdated]).await;
        }
        server.is_slow.store(false, Ordering::SeqCst);
        pass(3_000).await;
        assert_eq!(fixture.up(), 1);
        assert_eq!(fixture.has("a").await, is_told, "told of all: {is_told}");
    }
}
