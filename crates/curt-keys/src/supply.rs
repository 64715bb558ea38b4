//! The front of the KEYS line: one object that hands out keys, whatever the strategy.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::clock::Clock;
use curt_core::link::KeyOrigin;
use curt_core::place::Modulo;
use curt_core::ports::{Cursor, KeyFile, KeyLedger, KeyPool, LinkStore, Locks};
use curt_core::{Alphabet, Key, LinkId, OwnerId, PortResult, Target};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::account::{self, KeyAccounts};
use crate::buffer::Buffer;
use crate::error::KeyError;
use crate::lease::Leases;
use crate::metrics::KeyMetrics;
use crate::mint::{LedgerFill, Minter};
use crate::pace::{Woken, next_pass, report};
use crate::settings::{KeySettings, Strategy};
use crate::sync::{FullestPool, Keysync};

/// How long [`KeySupply::close`] waits for a refill that is under way.
const REFILL_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// What a key is wanted for.
#[derive(Clone, Copy, Debug)]
pub struct KeyHint<'a> {
    pub target: &'a Target,
    pub owner: OwnerId,
    /// How many keys have been tried for this link before.
    pub attempt: u32,
}

/// A key to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppliedKey {
    pub key: Key,
    pub origin: KeyOrigin,
}

/// The engines behind the supply. A strategy uses those that it needs.
#[derive(Clone)]
pub struct KeyPorts {
    /// Shards of the keys database; a key's home is the one that its hash names.
    pub ledgers: Vec<Arc<dyn KeyLedger>>,
    /// Shards of the pool.
    pub pools: Vec<Arc<dyn KeyPool>>,
    pub links: Arc<dyn LinkStore>,
    pub files: Option<Arc<dyn KeyFile>>,
    pub cursor: Arc<dyn Cursor>,
    pub locks: Arc<dyn Locks>,
    pub clock: Arc<dyn Clock>,
}

/// Hands out keys that are most likely free. Only the insert into the links database decides (K-1).
pub struct KeySupply {
    minter: Minter,
    metrics: KeyMetrics,
    tick: Duration,
    source: Source,
    /// Keeps the ring filled; ends with the supply.
    refiller: Mutex<Option<AbortOnDropHandle<()>>>,
}

enum Source {
    Ledger(LedgerLine),
    Random,
    Scripted(Mutex<VecDeque<SuppliedKey>>),
}

/// `pool` and `status`: mint, ledger, sync, pool, buffer.
struct LedgerLine {
    ports: KeyPorts,
    buffer: Arc<Buffer>,
    keygen: LedgerFill,
    keysync: Keysync,
}

impl KeySupply {
    /// Opens the supply and starts filling its ring, on the runtime that calls. Nothing is minted or moved before
    /// [`run_keygen`](Self::run_keygen) and [`run_keysync`](Self::run_keysync) run somewhere.
    pub async fn open(
        settings: KeySettings,
        ports: KeyPorts,
        metrics: KeyMetrics,
    ) -> Result<Arc<Self>, KeyError> {
        settings.check()?;
        let source = match settings.strategy {
            Strategy::Pool | Strategy::Status => {
                Source::Ledger(LedgerLine::new(&settings, ports, &metrics)?)
            }
            other => {
                return Err(KeyError::Settings(format!("{other} is not built yet")));
            }
        };
        let supply = Self {
            minter: Minter::new(settings.alphabet, settings.length),
            metrics,
            tick: settings.tick,
            refiller: Mutex::new(None),
            source,
        };
        supply.start_refiller();
        Ok(Arc::new(supply))
    }

    /// A supply of random keys that needs no engine.
    #[must_use]
    pub fn random(alphabet: Alphabet, length: usize) -> Arc<Self> {
        Arc::new(Self::without_engine(alphabet, length, Source::Random))
    }

    /// A supply that hands out exactly `keys`, in order, and random ones after that. It lets a test force a conflict.
    #[must_use]
    pub fn scripted(keys: impl IntoIterator<Item = SuppliedKey>) -> Arc<Self> {
        let script = Mutex::new(keys.into_iter().collect());
        Arc::new(Self::without_engine(
            Alphabet::Base62,
            7,
            Source::Scripted(script),
        ))
    }

    fn without_engine(alphabet: Alphabet, length: usize, source: Source) -> Self {
        Self {
            minter: Minter::new(alphabet, length),
            metrics: KeyMetrics::default(),
            tick: KeySettings::default().tick,
            source,
            refiller: Mutex::new(None),
        }
    }

    fn start_refiller(&self) {
        if let Some(buffer) = self.buffer().cloned() {
            let tick = self.tick;
            let refiller = tokio::spawn(async move { buffer.run(tick).await });
            *lock(&self.refiller) = Some(AbortOnDropHandle::new(refiller));
        }
    }

    fn buffer(&self) -> Option<&Arc<Buffer>> {
        match &self.source {
            Source::Ledger(line) => Some(&line.buffer),
            Source::Random | Source::Scripted(_) => None,
        }
    }

    /// The next key to try. Never fails: a dry supply gives a random key and counts it.
    pub async fn take(&self, _hint: &KeyHint<'_>) -> SuppliedKey {
        let supplied = match &self.source {
            Source::Ledger(line) => line.buffer.take().await.map(|key| SuppliedKey {
                key,
                origin: KeyOrigin::Ledger,
            }),
            Source::Scripted(script) => lock(script).pop_front(),
            Source::Random => return self.random_key(),
        };
        supplied.unwrap_or_else(|| {
            self.metrics.fallbacks.inc();
            self.random_key()
        })
    }

    fn random_key(&self) -> SuppliedKey {
        SuppliedKey {
            key: self.minter.mint(),
            origin: KeyOrigin::Random,
        }
    }

    /// Takes a key back that was not tried, or whose insert certainly did not happen.
    pub fn put_back(&self, unused: SuppliedKey) {
        if let Some(buffer) = self.buffer()
            && unused.origin == KeyOrigin::Ledger
        {
            buffer.put_back(unused.key);
        }
    }

    /// An insert met an existing link under this key. The key is not used again.
    pub fn conflicted(&self, key: &SuppliedKey) {
        tracing::debug!(key = %key.key, origin = key.origin.name(), "key met an existing link");
        self.metrics.conflicts.inc();
    }

    /// Whether links get their keys from [`LinkStore::claim`] instead of [`take`](Self::take).
    #[must_use]
    pub fn claims_rows(&self) -> bool {
        false
    }

    /// Makes keys ahead of time until `stop`.
    pub async fn run_keygen(self: Arc<Self>, stop: CancellationToken) {
        match &self.source {
            Source::Ledger(line) => {
                while !stop.is_cancelled() {
                    line.keygen
                        .pass(&stop, || line.keysync.wake.notify_one())
                        .await;
                    next_pass(&line.keygen.wake, self.tick, &stop).await;
                }
                line.keygen.stopped().await;
            }
            Source::Random | Source::Scripted(_) => stop.cancelled().await,
        }
    }

    /// Moves keys from the ledgers to the pools until `stop`.
    pub async fn run_keysync(self: Arc<Self>, stop: CancellationToken) {
        let Source::Ledger(line) = &self.source else {
            return stop.cancelled().await;
        };
        while !stop.is_cancelled() {
            if line.keysync.pass(&stop).await {
                line.keygen.wake.notify_one();
            }
            if next_pass(&line.keysync.wake, self.tick, &stop).await == Woken::Tick {
                self.show_accounts().await;
            }
        }
    }

    async fn show_accounts(&self) {
        match self.accounts().await {
            Ok(accounts) => self.metrics.show(&accounts),
            Err(error) => report(&error),
        }
    }

    /// K-2: where every key is.
    pub async fn accounts(&self) -> PortResult<KeyAccounts> {
        match &self.source {
            Source::Ledger(line) => {
                let moving = line.keysync.moving().await;
                let buffered = line.buffer.len() as u64;
                let links = line.ports.links.counts().await?;
                let ports = &line.ports;
                account::of_ledgers(&ports.ledgers, &ports.pools, moving, buffered, &links).await
            }
            Source::Random | Source::Scripted(_) => Ok(KeyAccounts::default()),
        }
    }

    /// Puts the keys of purged links back into the supply, where the strategy has a place for them. Returns how many
    /// went back.
    pub async fn recycle(&self, keys: &[LinkId]) -> PortResult<u64> {
        let recycled = match &self.source {
            Source::Ledger(line) => {
                let keys = keys.iter().map(|id| id.key.clone());
                line.keygen.recycle(keys).await?
            }
            Source::Random | Source::Scripted(_) => 0,
        };
        self.metrics.recycled.inc_by(recycled);
        Ok(recycled)
    }

    /// Gives unused keys back. Stop the reconcilers and the creates first; a create that still comes gets a random key.
    pub async fn close(&self) -> PortResult<()> {
        let Some(buffer) = self.buffer() else {
            return Ok(());
        };
        buffer.close();
        let refiller = lock(&self.refiller).take();
        if let Some(refiller) = refiller
            && tokio::time::timeout(REFILL_ENDS_WITHIN, refiller)
                .await
                .is_err()
        {
            tracing::warn!("a refill did not end in time and was given up");
        }
        match &self.source {
            Source::Ledger(line) => line.keysync.close().await,
            Source::Random | Source::Scripted(_) => Ok(()),
        }
    }
}

impl LedgerLine {
    fn new(
        settings: &KeySettings,
        ports: KeyPorts,
        metrics: &KeyMetrics,
    ) -> Result<Self, KeyError> {
        let missing = |needs| KeyError::Missing {
            strategy: settings.strategy.name(),
            needs,
        };
        let shards = u32::try_from(ports.ledgers.len()).unwrap_or(u32::MAX);
        let homes = Modulo::new(shards).ok_or_else(|| missing("1 to 1,024 ledgers"))?;
        if ports.pools.is_empty() {
            return Err(missing("a pool"));
        }
        let keysync_wake = Arc::new(Notify::new());
        let feed = FullestPool {
            pools: ports.pools.clone(),
            low: settings.pool.low,
            keysync: Arc::clone(&keysync_wake),
        };
        let buffer = Arc::new(Buffer::new(
            Box::new(feed),
            settings.buffer.capacity,
            settings.buffer.low,
            settings.dry_wait,
        ));
        let leases = || Leases::new(Arc::clone(&ports.locks), settings.lock_ttl);
        let keygen = LedgerFill::new(
            ports.ledgers.clone(),
            homes,
            Minter::new(settings.alphabet, settings.length),
            settings.ledger,
            metrics.clone(),
            leases(),
        );
        let keysync = Keysync::new(
            &ports,
            settings.pool,
            metrics.clone(),
            Arc::clone(&buffer),
            keysync_wake,
            leases(),
        );
        Ok(Self {
            ports,
            buffer,
            keygen,
            keysync,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
