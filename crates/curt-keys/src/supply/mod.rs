//! The front of the KEYS line: one object that hands out keys, whatever the strategy.

mod report;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use curt_core::link::KeyOrigin;
use curt_core::names::event;
use curt_core::{Key, KeyRefusal, LinkId, PortResult};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::report::BalanceReport;
use crate::buffer::Buffer;
use crate::error::KeySupplyError;
use crate::heartbeat::{Heartbeat, Holdings};
use crate::metrics::KeyMetrics;
use crate::mint::Minter;
use crate::pace::{NextPass, Nudges, next_pass};
use crate::ports::KeyPorts;
use crate::settings::{KeySettings, Strategy};
use crate::source::{KeyProducer, KeyRequest, KeySource, SuppliedKey};
use crate::strategy;

/// How long [`KeySupply::close`] waits for a refill that is under way.
const REFILL_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Keys of the buffer that are tried for one link. A pool that came back with old data brings thousands in a row that
/// are on links already, and a random one is the better guess then.
const BUFFERED_TRIES_MAX: u32 = 4;

/// Hands out keys that are most likely free. Only the insert into the links database decides (K-1).
pub struct KeySupply {
    strategy: Strategy,
    minter: Minter,
    metrics: KeyMetrics,
    tick: Duration,
    nudges: Arc<Nudges>,
    source: Arc<dyn KeySource>,
    producer: Option<Arc<dyn KeyProducer>>,
    /// Filled from the source, where that is drawn from ahead of time.
    buffer: Option<Arc<Buffer>>,
    /// `None` over a source of the caller's own, which no other process sees.
    heartbeat: Option<Heartbeat>,
    balance: BalanceReport,
    /// Keeps the buffer filled; ends with the supply.
    refiller: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl KeySupply {
    /// Opens the supply and starts a task that keeps its buffer filled, on the runtime that calls. Nothing is minted or
    /// moved before [`run_keygen`](Self::run_keygen) and [`run_keysync`](Self::run_keysync) run somewhere.
    pub async fn open(
        settings: KeySettings,
        ports: KeyPorts,
        metrics: KeyMetrics,
    ) -> Result<Arc<Self>, KeySupplyError> {
        let supply = Self::open_behind(&settings, ports, metrics)?;
        if let Some(buffer) = supply.buffer.clone() {
            let (source, tick) = (Arc::clone(&supply.source), settings.tick);
            #[expect(clippy::disallowed_methods, reason = "`close` waits for it")]
            let task = tokio::spawn(async move { buffer.run(&*source, tick).await });
            *lock(&supply.refiller) = Some(AbortOnDropHandle::new(task));
        }
        Ok(supply)
    }

    /// Opens the supply of a process that makes or moves keys and creates no links: it draws none for itself.
    pub fn open_behind(
        settings: &KeySettings,
        ports: KeyPorts,
        metrics: KeyMetrics,
    ) -> Result<Arc<Self>, KeySupplyError> {
        settings.check()?;
        let nudges = Arc::new(Nudges::default());
        let heartbeat = Heartbeat::new(&ports);
        let (source, producer) = strategy::open(settings, ports, &metrics, &nudges)?;
        let buffer = source
            .buffer()
            .map(|size| Arc::new(Buffer::new(size, settings.dry_wait, Arc::clone(&nudges))));
        let mut supply = Self::new(settings, source, metrics);
        supply.nudges = nudges;
        supply.producer = producer;
        supply.buffer = buffer;
        supply.heartbeat = Some(heartbeat);
        Ok(Arc::new(supply))
    }

    /// A supply over a source of the caller's own that makes its keys per request.
    #[must_use]
    pub fn over(settings: &KeySettings, source: Arc<dyn KeySource>) -> Arc<Self> {
        Arc::new(Self::new(settings, source, KeyMetrics::default()))
    }

    fn new(settings: &KeySettings, source: Arc<dyn KeySource>, metrics: KeyMetrics) -> Self {
        Self {
            strategy: settings.strategy,
            minter: Minter::of(settings),
            metrics,
            tick: settings.tick,
            nudges: Arc::default(),
            source,
            producer: None,
            buffer: None,
            heartbeat: None,
            balance: BalanceReport::default(),
            refiller: Mutex::new(None),
        }
    }

    /// Hands out the next key to try. Never fails: a dry supply gives a random key and counts it, and so does one that
    /// has given several used keys in a row.
    pub async fn take(&self, hint: &KeyRequest<'_>) -> SuppliedKey {
        let supplied = match &self.buffer {
            None => self.source.make(hint),
            Some(buffer) if hint.attempt < BUFFERED_TRIES_MAX => {
                let origin = self.source.origin();
                let key = buffer.take().await;
                key.map(|key| SuppliedKey { key, origin })
            }
            // Keys lie in the order in which they were handed out once: after one that is used come more of these.
            Some(_) => None,
        };
        supplied.unwrap_or_else(|| {
            self.metrics.fallbacks.inc();
            SuppliedKey {
                key: self.minter.mint(),
                origin: KeyOrigin::Random,
            }
        })
    }

    /// Takes a key back that was not tried, or whose insert certainly did not happen, so that it is not lost (K-2).
    pub fn put_back(&self, unused: SuppliedKey) {
        match &self.buffer {
            Some(buffer) if unused.origin == self.source.origin() => buffer.put_back(unused.key),
            // Made on the spot, and as easily made again.
            Some(_) => {}
            None => self.source.put_back(unused),
        }
    }

    /// As [`put_back`](Self::put_back), for a key that this process has no use for now and others may have: it goes back to
    /// the pool that it came from, where there is one.
    pub fn set_aside(&self, unused: SuppliedKey) {
        match &self.buffer {
            Some(buffer) if unused.origin == self.source.origin() => buffer.set_aside(unused.key),
            _ => self.put_back(unused),
        }
    }

    /// Makes a random key that `is_wanted` likes, or any where none is found in `tries`.
    pub fn make_where(&self, tries: usize, is_wanted: impl Fn(&Key) -> bool) -> SuppliedKey {
        let minted = || std::iter::repeat_with(|| self.minter.mint());
        let wanted = minted().take(tries).find(|key| is_wanted(key));
        SuppliedKey {
            key: wanted.unwrap_or_else(|| self.minter.mint()),
            origin: KeyOrigin::Random,
        }
    }

    /// Counts a key whose insert met an existing link. The key is not used again.
    pub fn conflicted(&self, key: &SuppliedKey) {
        tracing::debug!(key = %key.key, origin = key.origin.name(), "key met an existing link");
        self.metrics.conflicts.inc();
    }

    /// Drops a key that no link may have. It is not given to another one, and shows as leaked (K-2).
    pub fn refused(&self, key: &SuppliedKey, why: KeyRefusal) {
        self.metrics.refused(why).inc();
        let (event, key, origin) = (event::KEY_REFUSED, key.key.as_str(), key.origin.name());
        let reason = why.name();
        match why {
            // Words come to be unwanted when settings change.
            KeyRefusal::Unwanted => tracing::debug!(event, key, origin, reason, "key refused"),
            // Nothing of ours makes such keys.
            _ => tracing::warn!(event, key, origin, reason, "key refused"),
        }
    }

    /// Whether links get their keys from [`SeededLinks::claim`](curt_core::ports::SeededLinks::claim);
    /// [`take`](Self::take) is for when the rows run out.
    #[must_use]
    pub fn claims_rows(&self) -> bool {
        self.source.claims_rows()
    }

    /// Waits until the buffer is filled to its low watermark; returns at once where there is no buffer.
    pub async fn filled(&self) {
        if let Some(buffer) = &self.buffer {
            buffer.wait_until_filled().await;
        }
    }

    /// Makes keys ahead of time until `stop`.
    pub async fn run_keygen(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let next = self.generate(&stop).await;
            next_pass(&self.nudges.keygen, next, self.tick, &stop).await;
        }
        self.release_keygen().await;
    }

    /// Moves keys on to where they are handed out until `stop`, and settles what dead processes left behind.
    pub async fn run_keysync(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let next = self.sync(&stop).await;
            next_pass(&self.nudges.keysync, next, self.tick, &stop).await;
        }
    }

    /// Makes one pass of keygen, for tools and tests that want no background.
    pub async fn keygen_pass(&self, stop: &CancellationToken) {
        self.generate(stop).await;
    }

    /// Makes one pass of keysync, for tools and tests that want no background.
    pub async fn keysync_pass(&self, stop: &CancellationToken) {
        self.sync(stop).await;
    }

    async fn generate(&self, stop: &CancellationToken) -> NextPass {
        match &self.producer {
            Some(producer) => producer.generate(stop).await,
            None => NextPass::AtTick,
        }
    }

    async fn sync(&self, stop: &CancellationToken) -> NextPass {
        let handed_out = self.buffer.as_ref().map_or(0, |buffer| buffer.handed_out());
        match &self.producer {
            Some(producer) => producer.sync(handed_out, stop).await,
            None => NextPass::AtTick,
        }
    }

    async fn release_keygen(&self) {
        if let Some(producer) = &self.producer {
            producer.release_leases().await;
        }
    }

    /// Writes key files until `wanted` keys wait in them, and tells `progress` how many do. Returns that number, which
    /// is lower when `stop` came first.
    pub async fn stock_files(
        &self,
        wanted: u64,
        stop: &CancellationToken,
        progress: impl Fn(u64) + Sync,
    ) -> Result<u64, KeySupplyError> {
        let stocked = match &self.producer {
            Some(producer) => producer.fill_key_files(wanted, stop, &progress).await,
            None => None,
        };
        self.release_keygen().await;
        stocked.unwrap_or(Err(KeySupplyError::NoFiles(self.strategy)))
    }

    fn buffered_keys(&self) -> Vec<Key> {
        self.buffer
            .as_ref()
            .map_or_else(Vec::new, |buffer| buffer.keys())
    }

    /// What this process holds at this moment.
    fn holdings(&self) -> Holdings {
        let holdings = Holdings {
            buffered: self.buffer.as_ref().map_or(0, |buffer| buffer.len() as u64),
            in_transit: self
                .producer
                .as_ref()
                .map_or(0, |producer| producer.keys_in_transit()),
        };
        self.metrics.show_held(&holdings);
        holdings
    }

    /// Puts the keys of purged links back into the supply, where the strategy has a place for them. Returns how many
    /// went back at once; keys that a ledger cannot take back yet follow later.
    pub async fn recycle(&self, keys: &[LinkId]) -> PortResult<u64> {
        self.source.recycle(keys).await
    }

    /// Gives unused keys back. Stop the reconcilers and the creates first; a create that still comes gets a random key.
    pub async fn close(&self) -> PortResult<()> {
        if let Some(buffer) = &self.buffer {
            buffer.close();
            let refiller = lock(&self.refiller).take();
            // A draw that is under way brings its keys into the buffer first, or they would be nowhere.
            if let Some(refiller) = refiller
                && tokio::time::timeout(REFILL_ENDS_WITHIN, refiller)
                    .await
                    .is_err()
            {
                tracing::warn!("refill given up, did not end");
            }
        }
        self.release_keygen().await;
        let drain = || {
            self.buffer
                .as_ref()
                .map_or_else(Vec::new, |buffer| buffer.drain())
        };
        let closed = self.source.close(&drain).await;
        // Last: until its keys are back they are seen with this instance.
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.leave().await;
        }
        closed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
