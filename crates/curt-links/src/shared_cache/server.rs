//! One cache server: deadlines, and a circuit breaker that a missed invalidation opens at once.
//!
//! A server that was left is cleared before it is used again if it may hold what is old: an invalidation was not sent or
//! got no answer, or the connection failed, behind which another server may be by now. Late answers alone are no reason: a
//! process that is short of processor time would clear the cache of all others.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use curt_core::names::event;
use curt_core::ports::{CachedLink, LinkCache};
use curt_core::{LinkId, PortResult, Revision, ServedLink};
use tokio::time::{Instant, timeout};

use super::metrics::{ServerGauges, SharedCacheMetrics};

/// Failures in a row after which a server is left.
const FAILURES_MAX: u32 = 5;
/// How long a server is left at least: longer than any fill is under way that was begun before.
pub(super) const LEFT_MIN: Duration = Duration::from_secs(1);
/// An attempt to come back may take this long, so that the adapter notices a dead connection and makes another; only a
/// quick one counts.
const RETURN_WAIT: Duration = Duration::from_millis(2_500);
/// Invalidations are not a matter of a request's latency alone: missing one costs the whole server.
const INVALIDATION_DEADLINES: u32 = 5;
/// Weight of the past in the average of latencies, in eighths.
const PAST_EIGHTHS: u64 = 7;

pub(super) struct CacheServer {
    name: String,
    cache: Arc<dyn LinkCache>,
    deadline: Duration,
    gauges: ServerGauges,
    is_left: AtomicBool,
    leave: Mutex<Leave>,
    failures: AtomicU32,
    latency_micros: AtomicU64,
}

/// When a server was left, and whether it may hold what is old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Leave {
    since: Option<Instant>,
    is_outdated: bool,
}

/// The server did not answer in time, or said why it cannot.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoAnswer;

impl CacheServer {
    pub(super) fn new(
        name: String,
        cache: Arc<dyn LinkCache>,
        deadline: Duration,
        metrics: &SharedCacheMetrics,
    ) -> Self {
        Self {
            gauges: metrics.of_server(&name),
            name,
            cache,
            deadline,
            is_left: AtomicBool::new(false),
            leave: Mutex::default(),
            failures: AtomicU32::new(0),
            latency_micros: AtomicU64::new(0),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        !self.is_left.load(Ordering::Relaxed)
    }

    /// The average of the last answers.
    pub(super) fn latency(&self) -> u64 {
        self.latency_micros.load(Ordering::Relaxed)
    }

    pub(super) async fn get(&self, id: &LinkId) -> Result<Option<CachedLink>, NoAnswer> {
        let ids = std::slice::from_ref(id);
        let found = self.call(self.deadline, self.cache.get_many(ids)).await?;
        Ok(found.into_iter().next().flatten())
    }

    pub(super) async fn set(&self, id: &LinkId, link: &ServedLink, ttl: Duration) -> bool {
        let entry = CachedLink::Present(link.clone());
        let set = self.cache.set_if_newer(id, entry, ttl);
        self.call(self.deadline, set).await.is_ok()
    }

    /// Invalidates an entry, or leaves the server. One that was left already is told nothing.
    pub(super) async fn invalidate(
        &self,
        id: &LinkId,
        revision: Option<Revision>,
        ttl: Duration,
    ) -> bool {
        if self.is_left_untold() {
            return false;
        }
        let deadline = self.deadline * INVALIDATION_DEADLINES;
        for _ in 0..2 {
            let invalidate = self.cache.invalidate(id, revision, ttl);
            if self.call(deadline, invalidate).await.is_ok() {
                return true;
            }
        }
        self.leave("an invalidation failed", true);
        false
    }

    /// Notes that a server that was left misses an invalidation.
    fn is_left_untold(&self) -> bool {
        let mut leave = self.lock();
        leave.is_outdated |= leave.since.is_some();
        leave.since.is_some()
    }

    async fn call<T>(
        &self,
        deadline: Duration,
        call: impl Future<Output = PortResult<T>>,
    ) -> Result<T, NoAnswer> {
        let begun = Instant::now();
        let answer = timeout(deadline, call).await;
        if let Ok(Ok(answer)) = answer {
            self.failures.store(0, Ordering::Relaxed);
            self.note_latency(begun.elapsed());
            return Ok(answer);
        }
        self.note_latency(deadline);
        // A connection that failed, which may lead elsewhere from now on.
        if answer.is_ok() {
            self.lock().is_outdated = true;
        }
        if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES_MAX {
            self.leave("too many calls failed", false);
        }
        Err(NoAnswer)
    }

    /// Two at once may lose one of both: it is an average.
    fn note_latency(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let before = self.latency();
        let average = (before * PAST_EIGHTHS + took.min(1_000_000)) / (PAST_EIGHTHS + 1);
        self.latency_micros.store(average, Ordering::Relaxed);
    }

    fn leave(&self, why: &'static str, is_outdated: bool) {
        let mut leave = self.lock();
        leave.since = Some(Instant::now());
        leave.is_outdated |= is_outdated;
        if !self.is_left.swap(true, Ordering::SeqCst) {
            self.gauges.up.set(0);
            let server = &self.name;
            tracing::warn!(
                event = event::CACHE_SERVER_LEFT,
                server,
                why,
                "cache server left"
            );
        }
    }

    /// Uses the server again if it was left for long enough and answers in time.
    pub(super) async fn try_return(&self) {
        let before = *self.lock();
        if before.since.is_none_or(|since| since.elapsed() < LEFT_MIN) {
            return;
        }
        let begun = Instant::now();
        let answer = timeout(RETURN_WAIT, async {
            match before.is_outdated {
                true => self.cache.clear().await,
                false => self.cache.usage().await.map(drop),
            }
        });
        let answer = answer.await;
        let mut leave = self.lock();
        match answer {
            Ok(Ok(())) if begun.elapsed() <= self.deadline => {}
            Ok(Err(_)) => {
                leave.is_outdated = true;
                return;
            }
            _ => return,
        }
        // Something may have been missed meanwhile.
        if *leave == before {
            *leave = Leave::default();
            self.failures.store(0, Ordering::Relaxed);
            self.is_left.store(false, Ordering::SeqCst);
            self.gauges.up.set(1);
            let (server, was_cleared) = (&self.name, before.is_outdated);
            tracing::info!(
                event = event::CACHE_SERVER_RETURNED,
                server,
                was_cleared,
                "cache server returned"
            );
        }
    }

    pub(super) async fn read_usage(&self) {
        if let Ok(Ok(usage)) = timeout(RETURN_WAIT, self.cache.usage()).await {
            self.gauges.bytes.set(usage.bytes);
            self.gauges.bytes_max.set(usage.bytes_max);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Leave> {
        self.leave.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
