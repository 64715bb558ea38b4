//! The purge over several links databases, by several processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{LinkIndex, SeededDatabase};
use curt_core::{Clock, Link, PortResult};
use curt_links::PurgeSettings;
use curt_memory::{MemoryLeases, MemoryLinkStore};
use curt_testkit::intercept::{Call, InterceptedLinks, Interceptor};
use curt_testkit::sample::{SampleWrites, link};
use tokio_util::sync::CancellationToken;

use crate::gated::{GatedStore, gated_store};
use crate::world::{DAY, START, World};

const NODES: usize = 3;
const EVERY: Duration = Duration::from_secs(60);

/// Counts how often a process looks for links to purge.
#[derive(Default)]
struct Looks(AtomicU64);

#[async_trait]
impl Interceptor for Looks {
    async fn before(&self, call: Call) -> PortResult<()> {
        if call == Call::Ended {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// One process: its view of every node.
struct Process {
    nodes: Vec<Arc<InterceptedLinks<Looks>>>,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

impl Process {
    fn start(world: &World, stores: &[Arc<dyn SeededDatabase>], leases: MemoryLeases) -> Self {
        let nodes = stores.iter().cloned();
        let nodes: Vec<_> = nodes
            .map(|store| InterceptedLinks::new(store, Looks::default()))
            .collect();
        let indexes = nodes.iter().cloned().map(|node| node as Arc<dyn LinkIndex>);
        let settings = PurgeSettings {
            on_access: false,
            every: EVERY,
            batch: 10,
            rate_max: 100,
            ..PurgeSettings::default()
        };
        let purger = world.purger_of(settings, indexes.collect(), leases);
        let stop = CancellationToken::new();
        let running = tokio::spawn(purger.run(stop.clone()));
        Self {
            nodes,
            stop,
            running,
        }
    }

    fn looks(&self) -> Vec<u64> {
        let looks = self.nodes.iter().map(|node| node.0.load(Ordering::SeqCst));
        looks.collect()
    }
}

async fn put_ended(store: &Arc<dyn SeededDatabase>, prefix: &str, count: usize) {
    let ended = (0..count).map(|n| Link {
        expires_at: Some(START),
        ..link(&format!("{prefix}{n}"))
    });
    store.insert(ended.collect()).await.unwrap();
}

async fn left(store: &Arc<dyn SeededDatabase>) -> usize {
    store.ended(START, 1_000).await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn each_database_is_purged_by_the_one_process_that_holds_its_lease() {
    let world = World::new();
    let store = |_| Arc::new(MemoryLinkStore::new()) as Arc<dyn SeededDatabase>;
    let stores: Vec<_> = (0..NODES).map(store).collect();
    for (node, store) in stores.iter().enumerate() {
        put_ended(store, &format!("n{node}-"), 35).await;
    }
    let leases = MemoryLeases::new(world.clock.clone());
    let one = Process::start(&world, &stores, leases.for_holder("one"));
    let other = Process::start(&world, &stores, leases.for_holder("other"));
    tokio::time::sleep(EVERY * 3).await;
    for store in &stores {
        assert_eq!(left(store).await, 0);
    }
    let (by_one, by_other) = (one.looks(), other.looks());
    for (mine, theirs) in by_one.iter().zip(&by_other) {
        assert!(*mine == 0 || *theirs == 0, "{by_one:?} and {by_other:?}");
        assert!(mine + theirs >= 4, "{by_one:?} and {by_other:?}");
    }

    // What a process leaves goes on with the other, which need not wait until a lease runs out.
    one.stop.cancel();
    one.running.await.unwrap();
    for (node, store) in stores.iter().enumerate() {
        put_ended(store, &format!("later{node}-"), 5).await;
    }
    assert!(world.clock.now() < START.plus(DAY));
    tokio::time::sleep(EVERY * 3).await;
    for store in &stores {
        assert_eq!(left(store).await, 0);
    }
    other.stop.cancel();
    other.running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_database_that_is_away_stops_the_purge_of_no_other() {
    let world = World::new();
    let away: Arc<GatedStore> = gated_store();
    let mut stores: Vec<Arc<dyn SeededDatabase>> = vec![away.clone()];
    stores.push(Arc::new(MemoryLinkStore::new()));
    for store in &stores {
        put_ended(store, "a", 35).await;
    }
    away.fail(true);
    let leases = MemoryLeases::new(world.clock.clone());
    let process = Process::start(&world, &stores, leases);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(left(&stores[1]).await, 0, "purged at its own rate");
    away.fail(false);
    assert_eq!(left(&stores[0]).await, 35);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(left(&stores[0]).await, 0, "soon after it is back");
    process.stop.cancel();
    process.running.await.unwrap();
}
