//! A small world to run a supply in: engines that outlive a crash, and a faulty wire in front of them.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::clock::ManualClock;
use curt_core::link::Link;
use curt_core::ports::{
    BatchId, Cursor, Finding, KeyFile, KeyFileLayout, KeyFileStat, KeyFileWriter, KeyLedger,
    KeyPool, LedgerCounts, OpenBatch, SeededDatabase,
};
use curt_core::{ErrorKind, Key, OwnerId, PortError, PortResult, Target, UnixMillis};
use curt_keys::{
    BufferSettings, ClaimSettings, FileSettings, KeyCounts, KeyMetrics, KeyPorts, KeyRequest,
    KeySettings, KeySupply, LedgerSettings, PoolSettings, Strategy, SuppliedKey,
};
use curt_memory::{
    MemoryCursor, MemoryHeartbeats, MemoryKeyFile, MemoryKeyLedger, MemoryLeases, MemoryLinkStore,
};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What survives a crash of the process.
pub(crate) struct World {
    pub(crate) ledgers: Vec<Arc<dyn KeyLedger>>,
    pub(crate) links: Arc<dyn SeededDatabase>,
    pub(crate) files: Arc<dyn KeyFile>,
    pub(crate) cursor: Arc<dyn Cursor>,
    pub(crate) clock: Arc<ManualClock>,
    /// Empty: the buffer is fed straight from the ledgers.
    pub(crate) pools: Vec<Arc<dyn KeyPool>>,
    pub(crate) faults: Arc<Faults>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            ledgers: vec![Arc::new(MemoryKeyLedger::new())],
            links: Arc::new(MemoryLinkStore::new()),
            files: Arc::new(MemoryKeyFile::new()),
            cursor: Arc::new(MemoryCursor::new()),
            clock: Arc::new(ManualClock::at(UnixMillis(1_800_000_000_000))),
            pools: Vec::new(),
            faults: Arc::default(),
        }
    }

    /// The ports as a new process sees them: leases have run out.
    pub(crate) fn life(&self) -> KeyPorts {
        KeyPorts {
            ledgers: self.ledgers.iter().map(|l| self.wire(l) as _).collect(),
            pools: self.pools.iter().map(|p| self.wire(p) as _).collect(),
            links: Some(Arc::clone(&self.links).into()),
            files: Some(self.wire(&self.files)),
            cursor: self.wire(&self.cursor),
            leases: Arc::new(MemoryLeases::new(self.clock.clone())),
            heartbeats: Arc::new(MemoryHeartbeats::new(self.clock.clone())),
            clock: self.clock.clone(),
            who: "test".into(),
        }
    }

    pub(crate) fn wire<P: ?Sized>(&self, inner: &Arc<P>) -> Arc<Wire<P>> {
        Arc::new(Wire {
            inner: Arc::clone(inner),
            faults: Arc::clone(&self.faults),
        })
    }

    /// Stores a link under the key and says whether the key was free.
    pub(crate) async fn store(&self, supplied: &SuppliedKey) -> bool {
        let links = vec![link(supplied)];
        let inserted = self.links.insert_if_absent(links, None).await.unwrap();
        inserted[0].is_created()
    }
}

pub(crate) fn link(supplied: &SuppliedKey) -> Link {
    Link {
        origin: supplied.origin,
        ..curt_testkit::sample::link(supplied.key.as_str())
    }
}

/// Numbers small enough that every mark is crossed many times in a short test.
pub(crate) fn small(strategy: Strategy) -> KeySettings {
    KeySettings {
        strategy,
        dry_wait: Duration::ZERO,
        ledger: LedgerSettings {
            low: 60,
            high: 90,
            mint_batch: 20,
        },
        pool: PoolSettings {
            low: 20,
            high: 30,
            batch: 7,
            ..PoolSettings::default()
        },
        buffer: BufferSettings {
            capacity: 12,
            low: 6,
        },
        file: FileSettings {
            file_keys: 100,
            block_keys: 10,
            refill_under: 4,
        },
        claim: ClaimSettings {
            low: 20,
            high: 40,
            seed_batch: 7,
        },
        sequence_block: 5,
        ..KeySettings::default()
    }
}

pub(crate) async fn take(supply: &KeySupply, number: u64) -> SuppliedKey {
    let target = Target::from_serialised(format!("https://example.com/{number}")).unwrap();
    let hint = KeyRequest {
        target: &target,
        owner: OwnerId(1),
        attempt: 0,
    };
    supply.take(&hint).await
}

/// K-2 once no key is on its way into the buffer: while one moves, reading stage after stage meets it twice or not at
/// all.
pub(crate) async fn key_counts_at_rest(supply: &KeySupply) -> KeyCounts {
    let mut last = supply.count_keys().await.unwrap();
    for _ in 0..100 {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let now = supply.count_keys().await.unwrap();
        if now == std::mem::replace(&mut last, now) {
            return now;
        }
    }
    panic!("keys do not come to rest: {last:?}");
}

/// A supply with its reconcilers, as a process runs it.
pub(crate) struct Running {
    pub(crate) supply: Arc<KeySupply>,
    pub(crate) ports: KeyPorts,
    pub(crate) metrics: KeyMetrics,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    pub(crate) async fn start(settings: KeySettings, ports: KeyPorts) -> Self {
        let metrics = KeyMetrics::default();
        let supply = KeySupply::open(settings, ports.clone(), metrics.clone())
            .await
            .unwrap();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&supply).run_keygen(stop.clone()));
        tasks.spawn(Arc::clone(&supply).run_keysync(stop.clone()));
        Self {
            supply,
            ports,
            metrics,
            stop,
            tasks,
        }
    }

    /// Ends as `SIGTERM` ends a process, and returns the supply for its accounts.
    pub(crate) async fn shut(mut self) -> Arc<KeySupply> {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        self.supply.close().await.unwrap();
        self.supply
    }

    /// Ends as `kill -9` ends a process.
    pub(crate) async fn crash(mut self) {
        self.tasks.shutdown().await;
    }
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// It fails and has no effect.
    FailBefore,
    /// It has its effect and the answer is lost.
    FailAfter,
    /// The process dies before it.
    DieBefore,
    /// The process dies after it.
    DieAfter,
}

type Plan = Box<dyn FnMut(u64, &'static str) -> Fault + Send>;

/// Decides the fate of every call that goes over a [`Wire`].
#[derive(Default)]
pub(crate) struct Faults {
    plan: Mutex<Option<Plan>>,
    pub(crate) calls: AtomicU64,
    pub(crate) died: Notify,
}

impl Faults {
    pub(crate) fn plan(&self, plan: impl FnMut(u64, &'static str) -> Fault + Send + 'static) {
        self.calls.store(0, Ordering::SeqCst);
        *self.plan.lock().unwrap() = Some(Box::new(plan));
    }

    pub(crate) fn heal(&self) {
        *self.plan.lock().unwrap() = None;
    }

    fn next(&self, op: &'static str) -> Fault {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let mut plan = self.plan.lock().unwrap();
        plan.as_mut().map_or(Fault::None, |plan| plan(call, op))
    }
}

/// A port behind a wire that can break.
pub(crate) struct Wire<P: ?Sized> {
    inner: Arc<P>,
    faults: Arc<Faults>,
}

impl<P: ?Sized> Wire<P> {
    async fn call<R>(
        &self,
        op: &'static str,
        call: impl Future<Output = PortResult<R>>,
    ) -> PortResult<R> {
        // Others come in between, as they do on a real wire.
        tokio::task::yield_now().await;
        let broken = |kind| PortError::new(kind, "wire", op, "cut by the test");
        match self.faults.next(op) {
            Fault::None => {
                let answer = call.await;
                tokio::task::yield_now().await;
                answer
            }
            Fault::FailBefore => Err(broken(ErrorKind::Unavailable)),
            Fault::FailAfter => {
                call.await?;
                Err(broken(ErrorKind::Timeout))
            }
            Fault::DieBefore => {
                self.faults.died.notify_one();
                pending().await
            }
            Fault::DieAfter => {
                call.await?;
                self.faults.died.notify_one();
                pending().await
            }
        }
    }
}

#[async_trait]
impl KeyLedger for Wire<dyn KeyLedger> {
    async fn insert(&self, keys: &[Key]) -> PortResult<u64> {
        self.call("insert", self.inner.insert(keys)).await
    }
    async fn take(&self, batch: &BatchId, limit: usize, now: UnixMillis) -> PortResult<Vec<Key>> {
        let keys = self
            .call("take", self.inner.take(batch, limit, now))
            .await?;
        assert!(keys.len() <= limit, "K-3");
        Ok(keys)
    }
    async fn close(&self, batches: &[BatchId]) -> PortResult<()> {
        self.call("close", self.inner.close(batches)).await
    }
    async fn give_back(&self, batch: &BatchId, unused: &[Key]) -> PortResult<u64> {
        self.call("give back", self.inner.give_back(batch, unused))
            .await
    }
    async fn open_batches(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<OpenBatch>> {
        self.call("list batches", self.inner.open_batches(before, limit))
            .await
    }
    async fn recycle(&self, keys: &[Key]) -> PortResult<u64> {
        self.call("recycle", self.inner.recycle(keys)).await
    }
    async fn counts(&self) -> PortResult<LedgerCounts> {
        self.call("count", self.inner.counts()).await
    }
    async fn health(&self) -> PortResult<Vec<Finding>> {
        self.call("health", self.inner.health()).await
    }
}

#[async_trait]
impl KeyPool for Wire<dyn KeyPool> {
    async fn push(&self, batch: &BatchId, keys: &[Key]) -> PortResult<usize> {
        self.call("push", self.inner.push(batch, keys)).await
    }
    async fn pop(&self, limit: usize) -> PortResult<Vec<Key>> {
        self.call("pop", self.inner.pop(limit)).await
    }
    async fn peek(&self, first: u64, limit: usize) -> PortResult<Vec<Key>> {
        self.call("peek", self.inner.peek(first, limit)).await
    }
    async fn depth(&self) -> PortResult<u64> {
        self.call("depth", self.inner.depth()).await
    }
}

#[async_trait]
impl Cursor for Wire<dyn Cursor> {
    async fn get(&self, name: &str) -> PortResult<u64> {
        self.call("get", self.inner.get(name)).await
    }
    async fn advance(&self, name: &str, seen: u64, next: u64) -> PortResult<bool> {
        self.call("advance", self.inner.advance(name, seen, next))
            .await
    }
}

#[async_trait]
impl KeyFile for Wire<dyn KeyFile> {
    async fn create(
        &self,
        name: &str,
        layout: KeyFileLayout,
    ) -> PortResult<Box<dyn KeyFileWriter>> {
        self.call("create", self.inner.create(name, layout)).await
    }
    async fn stat(&self, name: &str) -> PortResult<Option<KeyFileStat>> {
        self.call("stat", self.inner.stat(name)).await
    }
    async fn read(&self, name: &str, first: u64, count: usize) -> PortResult<Vec<Key>> {
        self.call("read", self.inner.read(name, first, count)).await
    }
    async fn names(&self) -> PortResult<Vec<Box<str>>> {
        self.call("list files", self.inner.names()).await
    }
}
