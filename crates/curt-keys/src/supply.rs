//! The front of the KEYS line: one object that hands out keys, whatever the strategy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use curt_core::clock::Clock;
use curt_core::link::KeyOrigin;
use curt_core::names::event;
use curt_core::ports::{Cursor, KeyFile, KeyLedger, KeyPool, LinkStore, Locks, Roster};
use curt_core::{
    Alphabet, ErrorKind, Key, KeyRefusal, LinkId, OwnerId, PortError, PortResult, Target,
    UnwantedWords,
};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::account::{BalanceWatch, KeyAccounts};
use crate::error::KeyError;
use crate::metrics::KeyMetrics;
use crate::mint::Minter;
use crate::pace::{NextPass, Nudges, next_pass, report};
use crate::presence::{Held, Presence};
use crate::settings::{KeySettings, Strategy};
use crate::status::too_many;
use crate::strategy::{self, Line, NoLine, Taking};

/// How long [`KeySupply::close`] waits for a refill that is under way.
const REFILL_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Keys of the supply that are tried for one link. A pool that came back with old data brings thousands in a row that are
/// on links already, and a random one is the better guess then.
const SUPPLIED_TRIES_MAX: u32 = 4;

/// How often the metric of K-2 is brought up to date: in ticks, and at most.
const ACCOUNTS_EVERY_TICKS: u32 = 5;
const ACCOUNTS_EVERY: Duration = Duration::from_secs(5);

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
    /// `None` in a process that only makes or moves keys and owes the links database nothing.
    pub links: Option<Arc<dyn LinkStore>>,
    pub files: Option<Arc<dyn KeyFile>>,
    pub cursor: Arc<dyn Cursor>,
    pub locks: Arc<dyn Locks>,
    pub roster: Arc<dyn Roster>,
    pub clock: Arc<dyn Clock>,
    /// How this process describes itself to people.
    pub who: Box<str>,
}

impl KeyPorts {
    pub(crate) fn links(&self) -> PortResult<&Arc<dyn LinkStore>> {
        self.links.as_ref().ok_or_else(|| {
            let detail = "this process does not use the links database";
            PortError::new(
                ErrorKind::Unavailable,
                "key supply",
                "look at links",
                detail,
            )
        })
    }

    /// Whether keys in the pools outlive the process that put them there.
    pub(crate) fn pools_last(&self) -> bool {
        self.pools.iter().all(|pool| pool.survives_restart())
    }
}

/// Hands out keys that are most likely free. Only the insert into the links database decides (K-1).
pub struct KeySupply {
    strategy: Strategy,
    minter: Minter,
    metrics: KeyMetrics,
    tick: Duration,
    nudges: Arc<Nudges>,
    taking: Taking,
    line: Box<dyn Line>,
    presence: Option<Presence>,
    shown_at: Mutex<Option<Instant>>,
    balance: Mutex<BalanceWatch>,
    /// Keys that are surely found twice.
    surplus: AtomicU64,
    /// Keeps the ring filled; ends with the supply.
    refiller: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl KeySupply {
    /// Opens the supply and starts a task that keeps its ring filled, on the runtime that calls. Nothing is minted or
    /// moved before [`run_keygen`](Self::run_keygen) and [`run_keysync`](Self::run_keysync) run somewhere.
    pub async fn open(
        settings: KeySettings,
        ports: KeyPorts,
        metrics: KeyMetrics,
    ) -> Result<Arc<Self>, KeyError> {
        let mut supply = Self::open_line(&settings, ports, metrics)?;
        if let Taking::Ring { buffer, .. } = &supply.taking {
            let (buffer, tick) = (Arc::clone(buffer), settings.tick);
            let task = tokio::spawn(async move { buffer.run(tick).await });
            supply.refiller = Mutex::new(Some(AbortOnDropHandle::new(task)));
        }
        Ok(Arc::new(supply))
    }

    /// Opens the supply of a process that makes or moves keys and creates no links: it fetches none for itself.
    pub fn open_behind(
        settings: &KeySettings,
        ports: KeyPorts,
        metrics: KeyMetrics,
    ) -> Result<Arc<Self>, KeyError> {
        Self::open_line(settings, ports, metrics).map(Arc::new)
    }

    fn open_line(
        settings: &KeySettings,
        ports: KeyPorts,
        metrics: KeyMetrics,
    ) -> Result<Self, KeyError> {
        settings.check()?;
        let nudges = Arc::new(Nudges::default());
        let presence = Presence::new(&ports);
        let (taking, line) = strategy::open(settings, ports, &metrics, &nudges, &presence)?;
        Ok(Self {
            strategy: settings.strategy,
            minter: Minter::new(
                settings.alphabet,
                settings.length,
                settings.unwanted.clone(),
            ),
            metrics,
            tick: settings.tick,
            nudges,
            taking,
            line,
            presence: Some(presence),
            shown_at: Mutex::new(None),
            balance: Mutex::default(),
            surplus: AtomicU64::new(0),
            refiller: Mutex::new(None),
        })
    }

    /// A supply of random keys that needs no engine.
    #[must_use]
    pub fn random(alphabet: Alphabet, length: usize) -> Arc<Self> {
        Self::without_engine(alphabet, length, Taking::Random)
    }

    /// A supply that hands out exactly `keys`, in order, and random ones after that. It lets a test force a conflict.
    #[must_use]
    pub fn scripted(keys: impl IntoIterator<Item = SuppliedKey>) -> Arc<Self> {
        let script = Mutex::new(keys.into_iter().collect());
        Self::without_engine(Alphabet::Base62, 7, Taking::Scripted(script))
    }

    /// A supply that leaves the keys to [`LinkStore::claim`] and seeds nothing itself.
    #[must_use]
    pub fn claiming() -> Arc<Self> {
        Self::without_engine(Alphabet::Base62, 7, Taking::Rows)
    }

    fn without_engine(alphabet: Alphabet, length: usize, taking: Taking) -> Arc<Self> {
        Arc::new(Self {
            strategy: Strategy::default(),
            minter: Minter::new(alphabet, length, UnwantedWords::default()),
            metrics: KeyMetrics::default(),
            tick: KeySettings::default().tick,
            nudges: Arc::default(),
            taking,
            line: Box::new(NoLine),
            presence: None,
            shown_at: Mutex::new(None),
            balance: Mutex::default(),
            surplus: AtomicU64::new(0),
            refiller: Mutex::new(None),
        })
    }

    /// The next key to try. Never fails: a dry supply gives a random key and counts it, and so does one that has given
    /// several used keys in a row.
    pub async fn take(&self, hint: &KeyHint<'_>) -> SuppliedKey {
        let supplied = match &self.taking {
            // Keys lie in the order in which they were handed out once: after one that is used come more of these.
            Taking::Ring { .. } if hint.attempt >= SUPPLIED_TRIES_MAX => None,
            Taking::Ring { buffer, origin } => buffer.take().await.map(|key| SuppliedKey {
                key,
                origin: *origin,
            }),
            Taking::Hash(keys) => keys.key(hint).map(|key| SuppliedKey {
                key,
                origin: KeyOrigin::Hash,
            }),
            Taking::Scripted(script) => lock(script).pop_front(),
            Taking::Rows => {
                self.rows_ran_out();
                None
            }
            Taking::Random => return self.random_key(),
        };
        supplied.unwrap_or_else(|| {
            self.metrics.fallbacks.inc();
            self.random_key()
        })
    }

    pub(crate) fn rows_ran_out(&self) {
        self.nudges.keygen.notify_one();
    }

    fn random_key(&self) -> SuppliedKey {
        SuppliedKey {
            key: self.minter.mint(),
            origin: KeyOrigin::Random,
        }
    }

    /// Takes a key back that was not tried, or whose insert certainly did not happen, so that it is not lost (K-2).
    pub fn put_back(&self, unused: SuppliedKey) {
        match &self.taking {
            Taking::Ring { buffer, origin } if unused.origin == *origin => {
                buffer.put_back(unused.key);
            }
            Taking::Scripted(script) if unused.origin != KeyOrigin::Random => {
                lock(script).push_front(unused);
            }
            _ => {}
        }
    }

    /// An insert met an existing link under this key. The key is not used again.
    pub fn conflicted(&self, key: &SuppliedKey) {
        tracing::debug!(key = %key.key, origin = key.origin.name(), "key met an existing link");
        self.metrics.conflicts.inc();
    }

    /// Drops a key that no link may have. It is not given to another one, and shows as leaked (K-2).
    pub fn refused(&self, key: &SuppliedKey, why: KeyRefusal) {
        self.metrics.refused(why).inc();
        let (text, origin, reason) = (key.key.as_str(), key.origin.name(), why.name());
        match why {
            // Words come to be unwanted when settings change.
            KeyRefusal::Unwanted => {
                tracing::debug!(
                    event = event::KEY_REFUSED,
                    key = text,
                    origin,
                    reason,
                    "key refused"
                );
            }
            // Nothing of ours makes such keys.
            _ => {
                tracing::warn!(
                    event = event::KEY_REFUSED,
                    key = text,
                    origin,
                    reason,
                    "key refused"
                );
            }
        }
    }

    /// Whether links get their keys from [`LinkStore::claim`]; [`take`](Self::take) is for when the rows run out.
    #[must_use]
    pub fn claims_rows(&self) -> bool {
        matches!(self.taking, Taking::Rows)
    }

    /// Waits until the ring is filled to its low mark; returns at once where there is no ring.
    pub async fn filled(&self) {
        if let Taking::Ring { buffer, .. } = &self.taking {
            buffer.filled().await;
        }
    }

    /// Makes keys ahead of time until `stop`.
    pub async fn run_keygen(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let next = self.line.generate(&stop).await;
            next_pass(&self.nudges.keygen, next, self.tick, &stop).await;
        }
        self.line.generating_ended().await;
    }

    /// Moves keys from the ledgers to the pools until `stop`, and settles what dead processes left behind.
    pub async fn run_keysync(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let next = self.line.move_on(&stop).await;
            next_pass(&self.nudges.keysync, next, self.tick, &stop).await;
        }
    }

    /// One pass of keygen, for tools and tests that want no background.
    pub async fn keygen_pass(&self, stop: &CancellationToken) {
        self.line.generate(stop).await;
    }

    /// One pass of keysync, for tools and tests that want no background.
    pub async fn keysync_pass(&self, stop: &CancellationToken) {
        self.line.move_on(stop).await;
    }

    /// Writes key files until `wanted` keys wait in them, and tells `progress` how many do. Returns that number, which is
    /// lower when `stop` came first.
    pub async fn stock_files(
        &self,
        wanted: u64,
        stop: &CancellationToken,
        progress: impl Fn(u64) + Sync,
    ) -> Result<u64, KeyError> {
        let stocked = self.line.stock(wanted, stop, &progress).await;
        self.line.generating_ended().await;
        stocked.unwrap_or(Err(KeyError::NoFiles(self.strategy)))
    }

    /// Says once a tick what this process holds, so that others can do the accounts, and shows them here, until `stop`.
    pub async fn run_presence(self: Arc<Self>, stop: CancellationToken) {
        let Some(presence) = &self.presence else {
            return;
        };
        let never = Notify::new();
        let mut answered = Vec::new();
        while !stop.is_cancelled() {
            presence.announce(self.held(), &self.metrics).await;
            if let Some(audits) = self.show_accounts().await {
                let buffer = || self.buffered_keys();
                presence.answer_audits(&audits, &mut answered, buffer).await;
            }
            next_pass(&never, NextPass::AtTick, self.tick, &stop).await;
        }
        presence.answer_audits(&[], &mut answered, Vec::new).await;
    }

    fn buffered_keys(&self) -> Vec<Key> {
        match &self.taking {
            Taking::Ring { buffer, .. } => buffer.keys(),
            _ => Vec::new(),
        }
    }

    /// What this process holds at this moment.
    fn held(&self) -> Held {
        let ring = match &self.taking {
            Taking::Ring { buffer, .. } => buffer.len() as u64,
            _ => 0,
        };
        let moving = self.line.moving();
        let held = Held { ring, moving };
        self.metrics.show_held(&held);
        held
    }

    /// Brings the metrics up to date from time to time, and returns then which audits ask for the buffers.
    async fn show_accounts(&self) -> Option<Vec<Box<str>>> {
        let now = Instant::now();
        let every = (self.tick * ACCOUNTS_EVERY_TICKS).min(ACCOUNTS_EVERY);
        {
            let mut shown_at = lock(&self.shown_at);
            if shown_at.is_some_and(|at| now.duration_since(at) < every) {
                return None;
            }
            *shown_at = Some(now);
        }
        let Some(mut status) = self.line.status().await else {
            match self.accounts().await {
                Ok(accounts) => self.metrics.show(&accounts),
                Err(error) => report(&error),
            }
            return None;
        };
        status.failures.iter().for_each(report);
        self.metrics.show_shards(&status);
        if let Some(accounts) = status.accounts() {
            self.metrics.show(&accounts);
        }
        let audits = std::mem::take(&mut status.audits);
        if let Some(surplus) = lock(&self.balance).add(status) {
            self.note_surplus(surplus);
        }
        Some(audits)
    }

    fn note_surplus(&self, keys: u64) {
        let before = self.surplus.swap(keys, Ordering::Relaxed);
        self.metrics.show_surplus(keys);
        if keys > 0 && before == 0 {
            let advice = too_many(keys);
            tracing::warn!(
                event = event::KEYS_UNBALANCED,
                keys,
                advice,
                "keys found twice"
            );
        } else if keys == 0 && before > 0 {
            tracing::info!(event = event::KEYS_BALANCED, "keys balance again");
        }
    }

    /// What is wrong with the accounts of K-2, as this process has seen them over several looks: more keys are found
    /// than were made.
    #[must_use]
    pub fn imbalance(&self) -> Option<String> {
        match self.surplus.load(Ordering::Relaxed) {
            0 => None,
            keys => Some(too_many(keys)),
        }
    }

    /// K-2: where every key is. See [`KeyAccounts`] for what can be off for a moment.
    pub async fn accounts(&self) -> PortResult<KeyAccounts> {
        self.line.accounts().await
    }

    /// Puts the keys of purged links back into the supply, where the strategy has a place for them. Returns how many
    /// went back at once; keys that a ledger cannot take back yet follow later.
    pub async fn recycle(&self, keys: &[LinkId]) -> PortResult<u64> {
        self.line.recycle(keys).await
    }

    /// Gives unused keys back. Stop the reconcilers and the creates first; a create that still comes gets a random key.
    pub async fn close(&self) -> PortResult<()> {
        if let Taking::Ring { buffer, .. } = &self.taking {
            buffer.close();
            let refiller = lock(&self.refiller).take();
            if let Some(refiller) = refiller
                && tokio::time::timeout(REFILL_ENDS_WITHIN, refiller)
                    .await
                    .is_err()
            {
                tracing::warn!("a refill did not end in time and was given up");
            }
        }
        let closed = self.line.close().await;
        if let Some(presence) = &self.presence {
            presence.leave().await;
        }
        closed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
