//! Copies of links that several servers share, and what servers tell each other about changes.

mod changes;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::clock::ManualClock;
use curt_core::ports::{
    CacheUsage, CachedLink, ChangeReply, Inserted, Invalidations, LinkCache, LinkChange, LinkStore,
    RequestToken, SpendReply,
};
use curt_core::{
    Alphabet, Clock, ErrorKind, Link, LinkId, OwnerId, PortError, PortResult, Revision, Target,
    UnixMillis,
};
use curt_links::invalidate::{InvalidationMetrics, Publisher, PublisherSettings, follow};
use curt_links::shared_cache::{SharedCache, SharedCacheMetrics, SharedCacheSettings};
use curt_links::{
    LinkMetrics, LinkSettings, Links, NewLink, Resolution, ResolveMetrics, Resolver,
    ResolverSettings,
};
use curt_memory::{MemoryInvalidations, MemoryLinkCache, MemoryLinkStore};
use curt_testkit::intercept::{Call, InterceptedLinks, Interceptor};
use curt_testkit::keys::random_supply;
use curt_testkit::sample::link;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::interleave::{Actor, DELETED, Dice, RandomDelays, retarget, runtime, seen};
use crate::world::{ANN, START, id, named, new, own};

const INTERLEAVINGS: u64 = 10_000;
const READERS: usize = 6;
/// Nothing runs into a deadline by the machine's own slowness.
const LONG: Duration = Duration::from_secs(600);

/// A cache that takes a random number of polls before and after each call.
struct DelayedCache {
    cache: MemoryLinkCache,
    delays: RandomDelays,
}

impl DelayedCache {
    async fn delay<T>(&self, call: impl Future<Output = PortResult<T>>) -> PortResult<T> {
        self.delays.before(Call::Get).await?;
        let answer = call.await;
        self.delays.after(Call::Get).await?;
        answer
    }
}

#[async_trait]
impl LinkCache for DelayedCache {
    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<CachedLink>>> {
        self.delay(self.cache.get_many(ids)).await
    }

    async fn set_if_newer(&self, id: &LinkId, entry: CachedLink, ttl: Duration) -> PortResult<()> {
        self.delay(self.cache.set_if_newer(id, entry, ttl)).await
    }

    async fn invalidate(
        &self,
        id: &LinkId,
        revision: Option<Revision>,
        ttl: Duration,
    ) -> PortResult<()> {
        self.delay(self.cache.invalidate(id, revision, ttl)).await
    }

    async fn clear(&self) -> PortResult<()> {
        self.cache.clear().await
    }

    async fn usage(&self) -> PortResult<CacheUsage> {
        self.cache.usage().await
    }
}

/// One server of an installation.
struct Site {
    resolver: Arc<Resolver>,
    links: Arc<Links>,
    stop: CancellationToken,
}

/// What the servers have in common.
struct Common {
    store: Arc<InterceptedLinks<RandomDelays>>,
    clock: Arc<ManualClock>,
    cache: Option<Arc<DelayedCache>>,
    channel: Option<Arc<dyn Invalidations>>,
}

impl Common {
    fn new(channel: Option<Arc<dyn Invalidations>>, has_cache: bool) -> Self {
        let delays = || RandomDelays(Mutex::new(Dice(1)));
        let clock = Arc::new(ManualClock::at(START));
        let cache = has_cache.then(|| {
            Arc::new(DelayedCache {
                cache: MemoryLinkCache::new(1_000, clock.clone()),
                delays: delays(),
            })
        });
        Self {
            store: InterceptedLinks::new(Arc::new(MemoryLinkStore::new()), delays()),
            clock,
            cache,
            channel,
        }
    }

    /// The same store for servers that reach neither cache nor channel.
    fn cut_off(&self) -> Self {
        Self {
            store: self.store.clone(),
            clock: self.clock.clone(),
            cache: None,
            channel: None,
        }
    }

    /// Starts a server whose copies live this long.
    fn site(&self, settings: ResolverSettings) -> Site {
        let resolver = Resolver::new(
            settings,
            self.store.clone(),
            Arc::default(),
            self.clock.clone(),
            ResolveMetrics::default(),
        );
        let stop = CancellationToken::new();
        let cache = self.cache.clone().map(|cache| self.share(cache, &stop));
        if let Some(cache) = &cache {
            resolver.look_up_in(cache.clone());
        }
        let metrics = InvalidationMetrics::default();
        let wait = PublisherSettings { wait_max: LONG };
        let publisher = Publisher::new(wait, self.channel.clone(), cache, metrics.clone());
        resolver.publish_by(publisher.clone());
        tokio::spawn(publisher.run(stop.clone()));
        if let Some(channel) = &self.channel {
            let following = follow(resolver.clone(), channel.clone(), metrics, stop.clone());
            tokio::spawn(following);
        }
        tokio::spawn(resolver.clone().run_refreshes(stop.clone()));
        let links = Links::new(
            LinkSettings::default(),
            self.store.clone().into(),
            random_supply(Alphabet::Base62, 7),
            Arc::default(),
            resolver.clone(),
            self.clock.clone(),
            LinkMetrics::default(),
        );
        Site {
            resolver,
            links,
            stop,
        }
    }

    fn share(&self, cache: Arc<DelayedCache>, stop: &CancellationToken) -> Arc<SharedCache> {
        let settings = SharedCacheSettings {
            deadline: LONG,
            ..SharedCacheSettings::default()
        };
        let servers: Vec<(String, Arc<dyn LinkCache>)> = vec![("one".to_owned(), cache)];
        let metrics = SharedCacheMetrics::default();
        let shared = SharedCache::new(settings, servers, self.clock.clone(), metrics);
        tokio::spawn(shared.clone().run(stop.clone()));
        shared
    }
}

impl Site {
    async fn read(&self, key: &str) -> u32 {
        seen(&self.resolver.resolve(named(key)).await.unwrap())
    }

    async fn create(&self, key: &str) {
        let new = NewLink {
            alias: Some(key.to_owned()),
            ..new("https://example.com/1")
        };
        self.links.create(ANN, new, None).await.unwrap();
    }

    async fn edit(&self, key: &str, version: u32) {
        let edit = retarget(version);
        self.links.edit(own(ANN), key, None, edit).await.unwrap();
    }

    async fn write(&self, key: &str, acked: &Cell<u32>) {
        self.create(key).await;
        acked.set(1);
        for version in 2..=4 {
            self.edit(key, version).await;
            acked.set(version);
        }
        self.links.delete(own(ANN), key, None).await.unwrap();
        acked.set(DELETED);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The link that lies in the shared cache.
fn shared_now(cache: &DelayedCache, key: &str) -> Option<u32> {
    let ids = [id(key)];
    let mut found = std::pin::pin!(cache.cache.get_many(&ids));
    let mut context = Context::from_waker(Waker::noop());
    let std::task::Poll::Ready(found) = found.as_mut().poll(&mut context) else {
        unreachable!("memory answers at once");
    };
    match found.unwrap().remove(0)? {
        CachedLink::Present(link) => Some(seen(&Resolution::Live(link))),
        CachedLink::Absent(_) => None,
    }
}

/// Returns how often something was found in the shared cache.
fn run(common: &Common, sites: &[Site], runtime: &Runtime, seed: u64) -> u64 {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    *common.store.0.lock().unwrap() = dice;
    let cache = common.cache.as_ref().unwrap();
    *cache.delays.0.lock().unwrap() = Dice(dice.roll(u64::MAX) | 1);
    let key = format!("k{seed}");
    let acked = Rc::new(Cell::new(0));
    let stale: Rc<RefCell<Vec<String>>> = Rc::default();
    let mut actors: Vec<Actor<'_>> = vec![Box::pin(sites[0].write(&key, &acked))];
    let (mut readers_left, mut found) = (READERS * 4, 0);
    while !actors.is_empty() {
        common.clock.advance(Duration::from_millis(dice.roll(2)));
        if readers_left > 0 && actors.len() < READERS + 1 && dice.roll(2) == 0 {
            readers_left -= 1;
            let site = &sites[usize::try_from(dice.roll(sites.len() as u64)).unwrap()];
            let (key, acked, stale) = (&key, Rc::clone(&acked), Rc::clone(&stale));
            actors.push(Box::pin(async move {
                // Another load may be followed that began before.
                let due = acked.get();
                common.clock.advance(Duration::from_millis(2));
                let got = site.read(key).await;
                if got < due {
                    stale.borrow_mut().push(format!("{got} instead of {due}"));
                }
            }));
        }
        if dice.roll(2) == 0 {
            runtime.block_on(tokio::task::yield_now());
        }
        let chosen = usize::try_from(dice.roll(actors.len() as u64)).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        if actors[chosen].as_mut().poll(&mut context).is_ready() {
            drop(actors.swap_remove(chosen));
        }
        if let Some(got) = shared_now(cache, &key) {
            found += 1;
            let due = acked.get();
            assert!(got >= due, "D4 seed {seed}: shared {got} instead of {due}");
        }
    }
    // Fills that are under way.
    for _ in 0..20 {
        runtime.block_on(tokio::task::yield_now());
    }
    let left = shared_now(cache, &key);
    assert_eq!(left, None, "D4 seed {seed}: the link is deleted");
    let stale = stale.borrow();
    assert!(stale.is_empty(), "D4 seed {seed}: {stale:?}");
    found
}

/// A reader that is paused between load and set, on any server, never puts back what was changed meanwhile.
#[test]
fn no_interleaving_leaves_an_old_link_in_the_shared_cache_d4_l2() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let common = Common::new(None, true);
    let settings = ResolverSettings {
        entry_ttl: Some(Duration::from_millis(1)),
        negative_ttl: Duration::from_millis(1),
        ..ResolverSettings::default()
    };
    let sites = [(); 3].map(|()| common.site(settings.clone()));
    let mut found = 0;
    for seed in 1..=INTERLEAVINGS {
        found += run(&common, &sites, &runtime, seed);
    }
    assert!(
        found > INTERLEAVINGS,
        "the shared cache was filled {found} times"
    );
}
