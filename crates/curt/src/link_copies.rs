//! Copies of links that other processes change: what this process tells the others, and what it hears from them.

use std::sync::Arc;
use std::time::Duration;

use curt_http::{Impact, Readiness};
use curt_links::Resolver;
use curt_links::invalidate::{InvalidationMetrics, Publisher, follow};
use curt_links::shared_cache::{SharedCache, SharedCacheMetrics};
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::health::{note_fail, note_pass};
use crate::supervisor::Supervisor;
use crate::wiring::Stores;

/// The check that fails while the channel does not answer.
const INVALIDATIONS: &str = "invalidations";
/// How often it is looked at, and how long after the start it may be silent.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Starts what keeps copies fresh. To be called before the first request.
pub(crate) fn start(
    config: &Config,
    stores: &Stores,
    resolver: &Arc<Resolver>,
    (supervisor, ready): (&Supervisor, &Arc<Readiness>),
    registry: &mut Registry,
) {
    let refresher = Arc::clone(resolver);
    supervisor.start("cache-refreshes", |stop| refresher.run_refreshes(stop));
    let cache =
        (!stores.caches.is_empty()).then(|| start_cache(config, stores, supervisor, registry));
    if let Some(cache) = &cache {
        resolver.look_up_in(Arc::clone(cache));
    }
    let channel = stores.invalidations.clone();
    if cache.is_none() && channel.is_none() {
        return;
    }
    let metrics = match &channel {
        Some(_) => InvalidationMetrics::register(registry),
        None => InvalidationMetrics::default(),
    };
    let settings = config.publisher.clone();
    let publisher = Publisher::new(settings, channel.clone(), cache, metrics.clone());
    resolver.publish_by(Arc::clone(&publisher));
    supervisor.start("invalidation-publisher", |stop| publisher.run(stop));
    if let Some(channel) = channel {
        let follower = Arc::clone(resolver);
        supervisor.start("invalidations", |stop| {
            follow(follower, channel, metrics, stop)
        });
        let (resolver, ready) = (Arc::clone(resolver), Arc::clone(ready));
        supervisor.start("invalidation-health", |stop| watch(resolver, ready, stop));
    }
}

fn start_cache(
    config: &Config,
    stores: &Stores,
    supervisor: &Supervisor,
    registry: &mut Registry,
) -> Arc<SharedCache> {
    let settings = config.shared_cache.clone();
    let (servers, clock) = (stores.caches.clone(), stores.clock.clone());
    let metrics = SharedCacheMetrics::register(registry);
    let cache = SharedCache::new(settings, servers, clock, metrics);
    let runner = Arc::clone(&cache);
    supervisor.start("shared-cache", |stop| runner.run(stop));
    cache
}

/// Without the channel everything goes on, with more look-ups in the store.
async fn watch(resolver: Arc<Resolver>, ready: Arc<Readiness>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        match resolver.has_channel() {
            true => note_pass(&ready, INVALIDATIONS),
            false => {
                let why = "the channel of store.invalidations does not answer: copies of links live shorter";
                note_fail(&ready, INVALIDATIONS, Impact::Degraded, &why);
            }
        }
    }
}
