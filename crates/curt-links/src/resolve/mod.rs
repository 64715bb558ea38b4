//! From a key to where it leads: L1, then the negative cache, then a single-flight load, from the shared cache (L2) where
//! there is one, and else from the store.
//!
//! - A copy is checked at every read: expiry and valid-since against `now`, and the age of the copy against
//!   `entry_ttl`, which hits never refresh (L-2).
//! - A copy is as old as the moment at which its load *began*: the store may have read the link right then, however late
//!   its answer arrived. The same holds for negative answers, and for requests that wait for another request's load.
//! - Ages are differences of the wall clock, which goes on while the process is stopped (SIGSTOP) and while the
//!   machine sleeps, and which requests read anyway. Each request reads it after its bytes have been received. A clock
//!   that steps back below the beginning of a load makes the copy stale.
//! - Only active links that everybody may follow are kept. What needs a decision at each visit is handed out whole,
//!   and loaded anew each time.
//! - [`Resolver::invalidate`] must follow every acknowledged write. When it returns, no copy from before it is served
//!   again, however slow the reader that still carries one (D4).
//! - [`LinkPolicy::block`] and [`LinkPolicy::limit`] promise the same for all links at once.
//! - Words of the server are no links, whatever the store says: they are neither loaded nor kept, so that a look into the
//!   cache need not ask whether its key is one.
//! - A failure of the store is an error for everybody who waited, never an "absent", and is not remembered.

mod decision;
mod freshness;
mod live;
mod load;
mod metrics;
mod negative_cache;
mod refresh;
mod settings;
mod single_flight;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use curt_core::clock::UnixMillis;
use curt_core::error::PortResult;
use curt_core::link::Availability;
use curt_core::ports::{LinkChange, LinkStore, SpendReply};
use curt_core::reserved::is_reserved;
use curt_core::{Clock, GoneCause, Link, LinkId, LinkRef, Revision, ServedLink};
use tokio::sync::{Semaphore, mpsc};

pub use self::freshness::CHANNEL_LEASE;
use self::freshness::{CopyAge, Freshness};
use self::live::LiveCache;
pub use self::metrics::ResolveMetrics;
pub use self::negative_cache::NEGATIVE_TTL_MAX;
use self::negative_cache::{NegativeAnswer, NegativeCache};
use self::refresh::RefreshQueue;
pub use self::settings::ResolverSettings;
use self::single_flight::{Join, LoadOutcome, SingleFlight};
use crate::invalidate::{Publisher, RecentChanges, WriteOutcome};
use crate::policy::LinkPolicy;
use crate::shared_cache::SharedCache;

/// How often one request starts over because the link changed while it was loaded.
const ROUNDS_MAX: usize = 8;
/// Ended links that wait to be purged; more than that are met again later.
const ENDED_SEEN_MAX: usize = 1_024;

/// What a visitor gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    Live(ServedLink),
    /// Live, but not for every visitor or not at every moment: it is private or has a password, or visits to it are
    /// limited. Who is let through takes a visit by [`Resolver::spend`] last of all.
    Guarded(Arc<Link>),
    /// Never there: 404.
    Absent,
    /// Not valid yet: 404.
    Scheduled,
    /// Expired, deleted or switched off: 410.
    Gone(GoneCause),
    /// Live, if its target were not blocked.
    Blocked,
}

/// A link that somebody asked for after its end.
pub(crate) type EndedSeen = (LinkId, Revision);

pub struct Resolver {
    settings: ResolverSettings,
    store: Arc<dyn LinkStore>,
    clock: Arc<dyn Clock>,
    metrics: ResolveMetrics,
    live: Arc<LiveCache>,
    negative: NegativeCache,
    freshness: Freshness,
    single_flight: SingleFlight<PortResult<Resolution>>,
    refreshes: RefreshQueue,
    policy: Arc<LinkPolicy>,
    load_permits: Semaphore,
    /// Tells other processes what has changed, where there are any.
    publisher: OnceLock<Arc<Publisher>>,
    /// What others have changed: a replica may not have it yet.
    recent: OnceLock<RecentChanges>,
    /// L2, where there is one.
    shared: OnceLock<Arc<SharedCache>>,
    ended: mpsc::Sender<EndedSeen>,
    ended_seen: Mutex<Option<mpsc::Receiver<EndedSeen>>>,
}

impl Resolver {
    pub fn new(
        settings: ResolverSettings,
        store: Arc<dyn LinkStore>,
        policy: Arc<LinkPolicy>,
        clock: Arc<dyn Clock>,
        metrics: ResolveMetrics,
    ) -> Arc<Self> {
        let live = Arc::new(LiveCache::new(settings.cache_bytes));
        metrics.cache_size.watch(&live);
        let (ended, ended_seen) = mpsc::channel(ENDED_SEEN_MAX);
        let resolver = Arc::new(Self {
            negative: NegativeCache::new(settings.negative_entries, settings.negative_ttl),
            freshness: Freshness::new(settings.entry_ttl, settings.confirmed_ttl),
            single_flight: SingleFlight::new(),
            refreshes: RefreshQueue::new(),
            publisher: OnceLock::new(),
            recent: OnceLock::new(),
            shared: OnceLock::new(),
            load_permits: Semaphore::new(settings.loads_max.clamp(1, Semaphore::MAX_PERMITS)),
            ended,
            ended_seen: Mutex::new(Some(ended_seen)),
            live,
            settings,
            store,
            policy,
            clock,
            metrics,
        });
        resolver.policy.add_resolver(&resolver);
        resolver
    }

    /// Returns the link if a copy of it is here and redirects at `now`. Allocates nothing and never waits; `None` says
    /// nothing about the store. Counts nothing: callers that ask at each request [count](Self::count_hits) many at once.
    #[must_use]
    pub fn cached(&self, link: LinkRef<'_>, now: UnixMillis) -> Option<ServedLink> {
        let copy = self.get_fresh(link, now)?;
        (copy.availability(now) == Availability::Live).then_some(copy)
    }

    /// Counts links that [`cached`](Self::cached) returned.
    pub fn count_hits(&self, count: u64) {
        self.metrics.hit.inc_by(count);
    }

    /// Returns what the key leads to now. A text that cannot be a key is absent.
    pub async fn resolve(&self, link: LinkRef<'_>) -> PortResult<Resolution> {
        if is_reserved(link.key) {
            return Ok(Resolution::Absent);
        }
        let asked_at = self.clock.now();
        if let Some(cached) = self.resolve_cached(link, asked_at) {
            return Ok(cached);
        }
        let Some(id) = link.to_id() else {
            return Ok(Resolution::Absent);
        };
        self.metrics.miss.inc();
        for _ in 0..ROUNDS_MAX {
            // Before the store is asked: what it answers may be no younger than this.
            let began = self.clock.now();
            let may_follow = |load| self.may_follow(load, asked_at, began);
            let outcome = match self.single_flight.join(&id, began, may_follow) {
                Join::Follower(follower) => follower.wait().await,
                Join::Leader(leader) => self.lead(leader, &id, began).await,
            };
            if let LoadOutcome::Loaded(result) = outcome {
                return result;
            }
        }
        // The link changes faster than it can be loaded: one answer from the store, which is not cached.
        let (began, policy) = (self.clock.now(), self.policy.now());
        let found = self.load(&policy, &id).await?;
        let now = self.clock.now();
        let decision = self.decide(&policy, found, began, now);
        Ok(decision.resolution)
    }

    /// Takes one visit of a [`Resolution::Guarded`] link that has only so many; one that does not count, as of a bot or
    /// for the headers alone, takes none, must not be shown the target, and is refused
    /// all the same when none is left. When the link has changed since
    /// it was resolved the answer is [`SpendReply::Stale`]: resolve it again.
    pub async fn spend(&self, link: &Link, counts: bool) -> PortResult<SpendReply> {
        let Some(most) = link.max_clicks else {
            return Ok(SpendReply::Granted);
        };
        if counts {
            return self.store.spend_click(&link.id, link.revision).await;
        }
        Ok(match self.store.clicks_spent(&link.id).await? {
            spent if spent < most => SpendReply::Granted,
            _ => SpendReply::Exhausted,
        })
    }

    /// Drops the copies of the links and invalidates loads under way: to be called after every write, acknowledged or not.
    pub fn invalidate(&self, changes: &[LinkChange]) {
        for LinkChange { id, .. } in changes {
            self.single_flight.invalidate(id, || {
                self.live.remove(id.as_ref());
                self.negative.remove(id.as_ref());
            });
        }
    }

    /// Has other processes told of every change from now on. To be called before the first request.
    pub fn publish_by(&self, publisher: Arc<Publisher>) {
        self.publisher.get_or_init(|| publisher);
    }

    /// Has links looked up in the shared cache before the store from now on. To be called before the first request.
    pub fn look_up_in(&self, shared: Arc<SharedCache>) {
        self.shared.get_or_init(|| shared);
    }

    /// Drops the copies of links that other processes have changed.
    pub(crate) fn apply_changes(&self, changes: &[LinkChange]) {
        if let Some(shared) = self.shared.get() {
            shared.note_changes(changes);
        }
        // Before the copies go: the load that follows must know.
        self.recent
            .get_or_init(RecentChanges::default)
            .note(changes);
        self.invalidate(changes);
    }

    /// Tells other processes which links have changed, after [`invalidate`](Self::invalidate). Returns when they have been
    /// told, or after a bounded time.
    pub(crate) async fn publish(&self, changes: Vec<LinkChange>, outcome: WriteOutcome) {
        if let Some(publisher) = self.publisher.get() {
            publisher.publish(changes, outcome).await;
        }
    }

    /// Notes that every change has been told to this process that others had made by `at`: copies may be used for longer, as
    /// long as this goes on.
    pub fn confirm_channel(&self, at: UnixMillis) {
        self.freshness.confirm(at);
    }

    /// Drops all copies, because changes that others have made by now may not have been told to this process.
    pub(crate) fn drop_missed(&self) {
        self.freshness.note_missed(self.clock.now());
        self.invalidate_all();
    }

    /// Returns whether changes that others make reach this process.
    #[must_use]
    pub fn has_channel(&self) -> bool {
        self.freshness.is_confirmed(self.clock.now())
    }

    /// Returns how many links are cached and the bytes that they take.
    #[must_use]
    pub fn cache_size(&self) -> (usize, u64) {
        (self.live.links(), self.live.bytes())
    }

    /// Returns the ended links that requests met, for the purger; the first caller gets them.
    pub(crate) fn take_ended_seen(&self) -> Option<mpsc::Receiver<EndedSeen>> {
        let seen = self.ended_seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Drops all copies and invalidates all loads under way: after a change of policy, and when the channel begins to tell
    /// of changes. A load that begins later is decided by the policy that was put in force before this call.
    pub fn invalidate_all(&self) {
        // Loads first: one that completes after the caches were emptied would fill them again.
        self.single_flight.invalidate_all();
        self.live.clear();
        self.negative.clear();
    }

    /// Returns the cached link if it is not too old.
    fn get_fresh(&self, link: LinkRef<'_>, now: UnixMillis) -> Option<ServedLink> {
        let copy = self.live.get(link)?;
        match self.freshness.age(copy.loaded_at(), now) {
            CopyAge::Fresh => Some(copy),
            CopyAge::Aging => {
                self.refreshes.meet(link);
                Some(copy)
            }
            CopyAge::Stale => None,
        }
    }

    /// Whether what a load found that began at `loaded_at` may be served at `now`.
    fn is_fresh_enough(&self, loaded_at: UnixMillis, now: UnixMillis) -> bool {
        self.freshness.age(loaded_at, now) != CopyAge::Stale
    }

    /// Whether a request of `asked_at` may wait for a load that another one began at `load`. `now` is later than
    /// both unless the clock stepped back in between.
    fn may_follow(&self, load: UnixMillis, asked_at: UnixMillis, now: UnixMillis) -> bool {
        match self.freshness.entry_ttl() {
            Some(ttl) => load <= now && asked_at.since(load) < ttl,
            None => true,
        }
    }

    fn resolve_cached(&self, link: LinkRef<'_>, now: UnixMillis) -> Option<Resolution> {
        if let Some(copy) = self.get_fresh(link, now) {
            self.metrics.hit.inc();
            return Some(match copy.availability(now) {
                Availability::Live => Resolution::Live(copy),
                Availability::Absent => Resolution::Absent,
                Availability::Scheduled => Resolution::Scheduled,
                Availability::Gone(cause) => {
                    self.drop_expired(link, &copy, now);
                    Resolution::Gone(cause)
                }
            });
        }
        let answer = self.negative.get(link, now)?;
        self.metrics.absent.inc();
        Some(match answer {
            NegativeAnswer::Absent => Resolution::Absent,
            NegativeAnswer::Gone(cause) => Resolution::Gone(cause),
            NegativeAnswer::Blocked => Resolution::Blocked,
        })
    }

    /// Moves a copy that has expired to the negative cache, so that it is reported for purging once and not at every
    /// click.
    fn drop_expired(&self, link: LinkRef<'_>, copy: &ServedLink, now: UnixMillis) {
        let Some(id) = copy.id() else { return };
        if copy.expires_at().is_some_and(|at| self.is_due(at, now)) {
            self.report_ended(&id, copy.revision());
        }
        // Where others write, the expiry that passed may have been replaced since the copy was loaded.
        let loaded_at = match self.freshness.entry_ttl() {
            Some(_) => copy.loaded_at(),
            None => now,
        };
        self.single_flight.with_lock(&id.clone(), || {
            if self.live.remove_same(link, copy) {
                let answer = NegativeAnswer::Gone(GoneCause::Expired);
                self.negative.insert(id, answer, loaded_at, now);
            }
        });
    }

    /// Whether a link that ended at `ended_at` may be purged.
    fn is_due(&self, ended_at: UnixMillis, now: UnixMillis) -> bool {
        ended_at <= now.minus(self.settings.grace)
    }

    fn report_ended(&self, id: &LinkId, revision: Revision) {
        // A full queue is no loss: the scheduled purge finds the link, or the next request does.
        if self.ended.try_send((id.clone(), revision)).is_err() {
            tracing::trace!(%id, "purge queue full");
        }
    }
}
