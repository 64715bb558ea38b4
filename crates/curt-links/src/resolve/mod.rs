//! From a key to where it leads: L1, then the cache of misses, then one load per key.
//!
//! - A copy is judged at every read: expiry and valid-since against `now`, and the age of the copy against
//!   `entry_ttl`, which hits never refresh (L-2).
//! - A copy is as old as the moment at which its load *began*: the store may have read the link right then, however late
//!   its answer arrived. The same holds for misses, and for requests that wait for another request's load.
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

mod flights;
mod live;
mod metrics;
mod misses;
mod record;
mod settings;

use std::sync::{Arc, Mutex, PoisonError};

use curt_core::clock::UnixMillis;
use curt_core::error::{ErrorKind, PortError, PortResult};
use curt_core::link::Standing;
use curt_core::ports::{LinkChange, LinkStore, SpendReply};
use curt_core::reserved::is_reserved;
use curt_core::{Clock, Link, LinkId, LinkRef, LinkState, Revision, Visibility};
use tokio::sync::{Semaphore, mpsc};

use self::flights::{Boarding, Flights, Landed};
use self::live::LiveCache;
pub use self::metrics::ResolveMetrics;
pub use self::misses::MISS_TTL_MAX;
use self::misses::{Miss, MissCache, is_fresh};
pub use self::record::Hit;
pub use self::settings::ResolverSettings;
use crate::policy::{LinkPolicy, PolicySnapshot, Service};

/// How often one request starts over because the link changed while it was loaded.
const ROUNDS_MAX: usize = 8;
/// Expired links that wait to be purged; more than that are met again later.
const EXPIRED_SEEN_MAX: usize = 1_024;

const BACKEND: &str = "resolver";
const OP: &str = "load a link";

/// What a visitor gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    Live(Hit),
    /// Live, but not for every visitor or not at every moment: it is private or has a password, or visits to it are
    /// limited. Who is let through takes a visit by [`Resolver::spend`] last of all.
    Guarded(Arc<Link>),
    /// Never there, or not valid yet: 404.
    Absent,
    /// Expired, deleted or switched off: 410.
    Gone,
    /// Live, if its target were not blocked.
    Blocked,
}

/// What was decided about a loaded link, and what to remember of it.
struct Verdict {
    resolution: Resolution,
    keeping: Keeping,
}

enum Keeping {
    Copy(Hit),
    Miss(Miss),
    Nothing,
}

/// An expired link that somebody asked for.
pub(crate) type ExpiredSeen = (LinkId, Revision);

pub struct Resolver {
    settings: ResolverSettings,
    store: Arc<dyn LinkStore>,
    clock: Arc<dyn Clock>,
    metrics: ResolveMetrics,
    live: Arc<LiveCache>,
    misses: MissCache,
    flights: Flights<PortResult<Resolution>>,
    policy: Arc<LinkPolicy>,
    loads: Semaphore,
    expired: mpsc::Sender<ExpiredSeen>,
    expired_seen: Mutex<Option<mpsc::Receiver<ExpiredSeen>>>,
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
        metrics.held.watch(&live);
        let (expired, expired_seen) = mpsc::channel(EXPIRED_SEEN_MAX);
        let resolver = Arc::new(Self {
            misses: MissCache::new(settings.miss_entries, settings.miss_ttl),
            flights: Flights::new(),
            loads: Semaphore::new(settings.loads_max.clamp(1, Semaphore::MAX_PERMITS)),
            expired,
            expired_seen: Mutex::new(Some(expired_seen)),
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
    pub fn cached(&self, link: LinkRef<'_>, now: UnixMillis) -> Option<Hit> {
        let copy = self.copy(link, now)?;
        (copy.standing(now) == Standing::Live).then_some(copy)
    }

    /// Counts links that [`cached`](Self::cached) returned.
    pub fn count_hits(&self, count: u64) {
        self.metrics.hit.inc_by(count);
    }

    /// What the key leads to now. A text that cannot be a key is absent.
    pub async fn resolve(&self, link: LinkRef<'_>) -> PortResult<Resolution> {
        if is_reserved(link.key) {
            return Ok(Resolution::Absent);
        }
        let asked_at = self.clock.now();
        if let Some(known) = self.known(link, asked_at) {
            return Ok(known);
        }
        let Some(id) = link.to_id() else {
            return Ok(Resolution::Absent);
        };
        self.metrics.miss.inc();
        for _ in 0..ROUNDS_MAX {
            // Before the store is asked: what it answers may be no younger than this.
            let began = self.clock.now();
            let may_follow = |flight| self.may_follow(flight, asked_at, began);
            let landed = match self.flights.board(&id, began, may_follow) {
                Boarding::Follow(flight) => flight.landed().await,
                Boarding::Lead(lead) => {
                    // Read on board: whoever replaces it from now on voids this flight.
                    let policy = self.policy.now();
                    let loaded = self.load(&policy, &id).await;
                    let now = self.clock.now();
                    let (result, keeping) = match loaded {
                        Ok(found) => {
                            let verdict = self.judge(&policy, found.as_ref(), began, now);
                            (Ok(verdict.resolution), Some(verdict.keeping))
                        }
                        Err(failure) => (Err(failure), None),
                    };
                    lead.land(result, || {
                        if let Some(keeping) = keeping {
                            self.keep(&id, keeping, began, now);
                        }
                    })
                }
            };
            if let Landed::With(result) = landed {
                return result;
            }
        }
        // The link changes faster than it can be loaded: one answer from the store, which is not kept.
        let (began, policy) = (self.clock.now(), self.policy.now());
        let found = self.load(&policy, &id).await?;
        let now = self.clock.now();
        let verdict = self.judge(&policy, found.as_ref(), began, now);
        Ok(verdict.resolution)
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
            self.flights.void(id, || {
                self.live.remove(id.as_ref());
                self.misses.remove(id.as_ref());
            });
        }
    }

    /// Links held and bytes that they take.
    #[must_use]
    pub fn held(&self) -> (usize, u64) {
        (self.live.links(), self.live.bytes())
    }

    /// Expired links met on the way, for the purger; the first caller gets them.
    pub(crate) fn take_expired_seen(&self) -> Option<mpsc::Receiver<ExpiredSeen>> {
        let seen = self.expired_seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Drops all copies and voids all loads under way. A load that boards later is judged by the policy that was put
    /// in force before this call.
    pub(crate) fn forget_all(&self) {
        self.flights.void_all();
        self.live.clear();
        self.misses.clear();
    }

    /// A copy that is not too old.
    fn copy(&self, link: LinkRef<'_>, now: UnixMillis) -> Option<Hit> {
        let copy = self.live.get(link)?;
        self.is_usable(copy.loaded_at(), now).then_some(copy)
    }

    /// Whether what a load found that began at `loaded_at` may be served to a request that is judged at `now`.
    fn is_usable(&self, loaded_at: UnixMillis, now: UnixMillis) -> bool {
        match self.settings.entry_ttl {
            Some(ttl) => is_fresh(loaded_at, now, ttl),
            None => true,
        }
    }

    /// Whether a request of `asked_at` may wait for a load that another one began at `flight`. `now` is later than
    /// both unless the clock stepped back in between.
    fn may_follow(&self, flight: UnixMillis, asked_at: UnixMillis, now: UnixMillis) -> bool {
        match self.settings.entry_ttl {
            Some(ttl) => flight <= now && asked_at.since(flight) < ttl,
            None => true,
        }
    }

    fn known(&self, link: LinkRef<'_>, now: UnixMillis) -> Option<Resolution> {
        if let Some(copy) = self.copy(link, now) {
            self.metrics.hit.inc();
            return Some(match copy.standing(now) {
                Standing::Live => Resolution::Live(copy),
                Standing::Absent => Resolution::Absent,
                Standing::Gone => {
                    self.retire(link, &copy, now);
                    Resolution::Gone
                }
            });
        }
        let miss = self.misses.get(link, now)?;
        self.metrics.absent.inc();
        Some(match miss {
            Miss::Absent => Resolution::Absent,
            Miss::Gone => Resolution::Gone,
            Miss::Blocked => Resolution::Blocked,
        })
    }

    /// Moves a copy that has expired to the misses, so that it is reported for purging once and not at every visit.
    fn retire(&self, link: LinkRef<'_>, copy: &Hit, now: UnixMillis) {
        let Some(id) = copy.id() else { return };
        self.report_expired(&id, copy.revision());
        // Where others write, the expiry that passed may have been replaced since the copy was loaded.
        let loaded_at = match self.settings.entry_ttl {
            Some(_) => copy.loaded_at(),
            None => now,
        };
        self.flights.hold(&id.clone(), || {
            if self.live.remove_copy(link, copy) {
                self.misses.insert(id, Miss::Gone, loaded_at, now);
            }
        });
    }

    async fn load(&self, policy: &PolicySnapshot, id: &LinkId) -> PortResult<Option<Link>> {
        if policy.is_pending {
            let detail = "the accounts have not been read since the start";
            return Err(PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail));
        }
        let turn = tokio::time::timeout(self.settings.load_wait_max, self.loads.acquire());
        let Ok(Ok(_turn)) = turn.await else {
            return Err(PortError::new(
                ErrorKind::Throttled,
                BACKEND,
                OP,
                format!(
                    "{} loads are under way and none ended within {:?}",
                    self.settings.loads_max, self.settings.load_wait_max
                ),
            ));
        };
        self.store.get(id).await
    }

    /// Decides at `now` about what a load found that began at `began`.
    fn judge(
        &self,
        policy: &PolicySnapshot,
        found: Option<&Link>,
        began: UnixMillis,
        now: UnixMillis,
    ) -> Verdict {
        let Some(link) = found else {
            return missed(Resolution::Absent, Miss::Absent);
        };
        let service = policy.service(link);
        let is_active = link.state == LinkState::Active;
        let standing = link.standing(now);
        if standing == Standing::Gone && is_active {
            self.report_expired(&link.id, link.revision);
        }
        let is_hidden = self.settings.hides_private && link.visibility == Visibility::Private;
        let leads_on = standing == Standing::Live && service == Service::Guarded;
        if is_hidden && !leads_on && standing != Standing::Absent {
            return missed(Resolution::Absent, Miss::Absent);
        }
        match (standing, service) {
            (Standing::Live, Service::Open) => {
                let hit = Hit::of(link, began);
                Verdict {
                    resolution: Resolution::Live(hit.clone()),
                    keeping: Keeping::Copy(hit),
                }
            }
            (Standing::Live, Service::Guarded) => {
                unkept(Resolution::Guarded(Arc::new(link.clone())))
            }
            (Standing::Live, Service::Blocked) => missed(Resolution::Blocked, Miss::Blocked),
            (Standing::Live, Service::Gone) => missed(Resolution::Gone, Miss::Gone),
            // Kept as a link, so that it begins to redirect at its hour.
            (Standing::Absent, Service::Open) if is_active => Verdict {
                resolution: Resolution::Absent,
                keeping: Keeping::Copy(Hit::of(link, began)),
            },
            (Standing::Absent, _) if is_active => unkept(Resolution::Absent),
            (Standing::Absent, _) => missed(Resolution::Absent, Miss::Absent),
            (Standing::Gone, _) => missed(Resolution::Gone, Miss::Gone),
        }
    }

    /// Fills the caches; runs under the key's flight lock. What is too old already drops the copies from before it.
    fn keep(&self, id: &LinkId, keeping: Keeping, began: UnixMillis, now: UnixMillis) {
        match keeping {
            Keeping::Copy(hit) if self.is_usable(began, now) => {
                self.misses.remove(id.as_ref());
                self.live.insert(id.as_ref(), hit);
            }
            Keeping::Miss(miss) => {
                self.live.remove(id.as_ref());
                self.misses.insert(id.clone(), miss, began, now);
            }
            Keeping::Copy(_) | Keeping::Nothing => {
                self.live.remove(id.as_ref());
                self.misses.remove(id.as_ref());
            }
        }
    }

    fn report_expired(&self, id: &LinkId, revision: Revision) {
        // A full queue is no loss: the scheduled purge finds the link, or the next visitor does.
        if self.expired.try_send((id.clone(), revision)).is_err() {
            tracing::trace!(%id, "purge queue full");
        }
    }
}

fn missed(resolution: Resolution, miss: Miss) -> Verdict {
    Verdict {
        resolution,
        keeping: Keeping::Miss(miss),
    }
}

fn unkept(resolution: Resolution) -> Verdict {
    Verdict {
        resolution,
        keeping: Keeping::Nothing,
    }
}
