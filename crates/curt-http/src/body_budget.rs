//! What request bodies may hold of the memory, from the first byte until their requests are done.
//!
//! | body | counts | room |
//! |---|---|---|
//! | up to 4 KiB | not at all: it is smaller than the buffers of its connection | |
//! | up to 64 KiB | as small | all that is left |
//! | larger | as large | three quarters of the budget, so that small ones always find some |
//!
//! One client, that is one user or one address, gets a quarter of the budget for large bodies and a sixteenth for small
//! ones. Whole bodies that are worked on are several times their size as values, so few large ones are at a time; the
//! others wait as bytes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use curt_accounts::{CallerId, Principal};
use curt_core::limits::HTTP_BODY_BYTES_MAX;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::metrics::{HttpMetrics, RefusalReason};
use crate::problem::{Problem, ProblemCode};
use crate::settings::ServerSettings;

/// Bodies up to this size are not counted.
const UNCOUNTED_BYTES: u64 = 4 * 1_024;
/// Bodies up to this size are small.
const SMALL_BYTES: u64 = HTTP_BODY_BYTES_MAX as u64;
/// Bytes of bulk bodies that are worked on at once.
const WORKED_ON_BYTES: u64 = 16 * 1_024 * 1_024;
/// What a unit of the work semaphore stands for.
const WORK_UNIT_BYTES: u64 = 1_024;

/// The budget of a server.
#[derive(Debug)]
pub struct BodyBudget {
    bytes_max: u64,
    bulk_per_client_max: usize,
    held: Mutex<Held>,
    work: Arc<Semaphore>,
    metrics: HttpMetrics,
}

#[derive(Debug, Default)]
struct Held {
    small: u64,
    large: u64,
    /// Clients that hold something, and no others.
    clients: HashMap<CallerId, Share>,
}

/// What one client holds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Share {
    small: u64,
    large: u64,
    bulk_requests: usize,
}

/// Where a body comes from. What it holds counts for its address, and for the user if one is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodySource {
    address: CallerId,
    user: Option<CallerId>,
}

impl BodySource {
    pub(crate) fn new(address: IpAddr, principal: Option<&Principal>) -> Self {
        Self {
            address: CallerId::address(address),
            user: principal.map(|principal| CallerId::User(principal.user)),
        }
    }

    fn clients(self) -> impl Iterator<Item = CallerId> {
        std::iter::once(self.address).chain(self.user)
    }
}

impl BodyBudget {
    #[must_use]
    pub fn new(settings: &ServerSettings, metrics: HttpMetrics) -> Arc<Self> {
        let units = WORKED_ON_BYTES / WORK_UNIT_BYTES;
        Arc::new(Self {
            bytes_max: settings.bodies_max,
            bulk_per_client_max: settings.bulk_per_client,
            held: Mutex::default(),
            work: Arc::new(Semaphore::new(usize::try_from(units).unwrap_or(usize::MAX))),
            metrics,
        })
    }

    /// Sets so many bytes aside for a body that is about to be read.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        source: BodySource,
        bytes: u64,
    ) -> Result<BodyPermit, Problem> {
        let mut permit = BodyPermit {
            budget: Arc::clone(self),
            source,
            counted: 0,
        };
        permit.resize(bytes)?;
        Ok(permit)
    }

    /// Counts a bulk request before its body is read.
    pub(crate) fn begin_bulk(self: &Arc<Self>, source: BodySource) -> Result<BulkPermit, Problem> {
        let mut held = self.locked();
        let most = self.bulk_per_client_max;
        let is_full = |client: &CallerId| {
            let share = held.clients.get(client);
            share.is_some_and(|share| share.bulk_requests >= most)
        };
        if source.clients().any(|client| is_full(&client)) {
            drop(held);
            self.metrics.refused(RefusalReason::BulkAtOnce);
            return Err(Problem::new(ProblemCode::TooManyAtOnce).detail(format!(
                "A client has at most {most} bulk requests under way. Wait for an answer before the next one."
            )));
        }
        for client in source.clients() {
            held.clients.entry(client).or_default().bulk_requests += 1;
        }
        Ok(BulkPermit {
            budget: Arc::clone(self),
            source,
        })
    }

    /// Waits until a whole body may be turned into values. Those who wait hold their bytes in the budget, so that there
    /// are never many.
    pub(crate) async fn begin_work(&self, body_bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = (body_bytes as u64).min(WORKED_ON_BYTES);
        let units = u32::try_from(bytes.div_ceil(WORK_UNIT_BYTES)).unwrap_or(u32::MAX);
        // Never closed; and if it were, there would be no bound to wait for.
        Arc::clone(&self.work).acquire_many_owned(units).await.ok()
    }

    fn change(&self, source: BodySource, from: u64, to: u64) -> Result<(), Problem> {
        let mut held = self.locked();
        held.remove(source, from);
        let fits = held.fits(source, to, self.bytes_max);
        held.add(source, if fits.is_ok() { to } else { from });
        let all = held.small + held.large;
        drop(held);
        let shown = i64::try_from(all).unwrap_or(i64::MAX);
        self.metrics.body_bytes.set(shown);
        fits.map_err(|full| self.refusal(full))
    }

    fn refusal(&self, full: Full) -> Problem {
        match full {
            Full::Budget => {
                self.metrics.refused(RefusalReason::BodyBudget);
                Problem::new(ProblemCode::TooManyBodies)
            }
            Full::Share => {
                self.metrics.refused(RefusalReason::BodyShare);
                Problem::new(ProblemCode::TooManyAtOnce).detail(
                    "Your requests under way hold as much as one client may. Wait for their answers before the next one.",
                )
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    Budget,
    Share,
}

impl Held {
    fn fits(&self, source: BodySource, bytes: u64, max: u64) -> Result<(), Full> {
        let is_large = bytes > SMALL_BYTES;
        let nothing = Share::default();
        for client in source.clients() {
            let share = self.clients.get(&client).unwrap_or(&nothing);
            let (own, most) = match is_large {
                true => (share.large, max / 4),
                false => (share.small, max / 16),
            };
            if own.saturating_add(bytes) > most {
                return Err(Full::Share);
            }
        }
        let all = self.small.saturating_add(self.large).saturating_add(bytes);
        let is_within =
            all <= max && (!is_large || self.large.saturating_add(bytes) <= max / 4 * 3);
        is_within.then_some(()).ok_or(Full::Budget)
    }

    fn add(&mut self, source: BodySource, bytes: u64) {
        if bytes == 0 {
            return;
        }
        *self.kind(bytes) += bytes;
        for client in source.clients() {
            *self.clients.entry(client).or_default().kind(bytes) += bytes;
        }
    }

    fn remove(&mut self, source: BodySource, bytes: u64) {
        if bytes == 0 {
            return;
        }
        *self.kind(bytes) -= bytes;
        for client in source.clients() {
            self.update(client, |share| *share.kind(bytes) -= bytes);
        }
    }

    /// Takes something from a client's share, and forgets the client who holds nothing more.
    fn update(&mut self, client: CallerId, change: impl FnOnce(&mut Share)) {
        if let Some(share) = self.clients.get_mut(&client) {
            change(share);
            if *share == Share::default() {
                self.clients.remove(&client);
            }
        }
    }

    fn kind(&mut self, bytes: u64) -> &mut u64 {
        match bytes > SMALL_BYTES {
            true => &mut self.large,
            false => &mut self.small,
        }
    }
}

impl Share {
    fn kind(&mut self, bytes: u64) -> &mut u64 {
        match bytes > SMALL_BYTES {
            true => &mut self.large,
            false => &mut self.small,
        }
    }
}

/// Room for one body, until it is dropped.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    budget: Arc<BodyBudget>,
    source: BodySource,
    counted: u64,
}

impl BodyPermit {
    /// Makes room for so many bytes; if there is none, what is there stays.
    pub(crate) fn resize(&mut self, bytes: u64) -> Result<(), Problem> {
        let counted = if bytes <= UNCOUNTED_BYTES { 0 } else { bytes };
        if counted != self.counted {
            self.budget.change(self.source, self.counted, counted)?;
            self.counted = counted;
        }
        Ok(())
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        if self.counted > 0 {
            let given_back = self.budget.change(self.source, self.counted, 0);
            debug_assert!(given_back.is_ok(), "nothing always fits");
        }
    }
}

/// One bulk request under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct BulkPermit {
    budget: Arc<BodyBudget>,
    source: BodySource,
}

impl Drop for BulkPermit {
    fn drop(&mut self) {
        let mut held = self.budget.locked();
        for client in self.source.clients() {
            held.update(client, |share| share.bulk_requests -= 1);
        }
    }
}

/// Goes with an answer that is about as large as its request's body: what the body held is held until the client has
/// the answer.
#[derive(Clone, Debug)]
pub(crate) struct HeldByAnswer {
    _permits: Arc<(BodyPermit, BulkPermit)>,
}

impl HeldByAnswer {
    pub(crate) fn new(body: BodyPermit, bulk: BulkPermit) -> Self {
        Self {
            _permits: Arc::new((body, bulk)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use curt_core::OwnerId;
    use futures_util::FutureExt as _;

    use super::*;

    const MIB: u64 = 1 << 20;
    const LARGE: u64 = 4 * MIB;
    const SMALL: u64 = 64 * 1_024;

    fn budget() -> Arc<BodyBudget> {
        let settings = ServerSettings {
            bodies_max: 64 * MIB,
            bulk_per_client: 2,
            ..ServerSettings::default()
        };
        BodyBudget::new(&settings, HttpMetrics::unregistered())
    }

    fn from(address: u16, user: Option<u64>) -> BodySource {
        let [high, low] = address.to_be_bytes();
        BodySource {
            address: CallerId::address(Ipv4Addr::new(198, 18, high, low).into()),
            user: user.map(|user| CallerId::User(OwnerId(user))),
        }
    }

    fn code<T: std::fmt::Debug>(refused: Result<T, Problem>) -> ProblemCode {
        refused.unwrap_err().code()
    }

    fn fill(
        budget: &Arc<BodyBudget>,
        bytes: u64,
        mut source: impl FnMut() -> BodySource,
    ) -> Vec<BodyPermit> {
        std::iter::from_fn(|| budget.reserve(source(), bytes).ok()).collect()
    }

    #[test]
    fn large_bodies_leave_room_for_small_ones_and_tiny_ones_always_fit() {
        let budget = budget();
        let mut address = 0;
        let mut next = || {
            address += 1;
            from(address, None)
        };
        let large = fill(&budget, LARGE, &mut next);
        assert_eq!(large.len(), 12);
        assert_eq!(
            code(budget.reserve(next(), LARGE)),
            ProblemCode::TooManyBodies
        );
        let small = fill(&budget, SMALL, &mut next);
        assert_eq!(small.len(), 256);
        let tiny = (0..1_000).filter_map(|_| budget.reserve(from(1, None), UNCOUNTED_BYTES).ok());
        assert_eq!(tiny.collect::<Vec<_>>().len(), 1_000);
        drop(large);
        assert_eq!(fill(&budget, LARGE, || from(1, None)).len(), 4);
        drop(small);
        let held = budget.locked();
        assert_eq!((held.small, held.large, held.clients.len()), (0, 0, 0));
    }

    #[test]
    fn one_client_gets_a_share_by_address_and_by_user() {
        let budget = budget();
        let own = fill(&budget, LARGE, || from(1, Some(7)));
        assert_eq!(own.len(), 4);
        for source in [from(1, None), from(1, Some(8)), from(2, Some(7))] {
            let refused = budget.reserve(source, LARGE);
            assert_eq!(code(refused), ProblemCode::TooManyAtOnce, "{source:?}");
            // Small ones have a share of their own, and tiny ones need none.
            assert!(budget.reserve(source, SMALL).is_ok());
            assert!(budget.reserve(source, UNCOUNTED_BYTES).is_ok());
        }
        assert!(budget.reserve(from(2, Some(8)), LARGE).is_ok());
        let small = fill(&budget, SMALL, || from(1, None));
        assert_eq!(small.len(), 64);
        drop((own, small));
        assert!(budget.locked().clients.is_empty());
    }

    #[test]
    fn a_body_of_unknown_length_is_counted_as_it_grows() {
        let budget = budget();
        let mut growing = budget.reserve(from(1, None), 0).unwrap();
        let others: Vec<_> = (2..=13)
            .filter_map(|address| budget.reserve(from(address, None), LARGE).ok())
            .collect();
        assert_eq!(others.len(), 12);
        growing.resize(UNCOUNTED_BYTES).unwrap();
        growing.resize(SMALL).unwrap();
        assert_eq!(code(growing.resize(2 * SMALL)), ProblemCode::TooManyBodies);
        assert_eq!(budget.locked().small, SMALL);
        drop(others);
        growing.resize(2 * SMALL).unwrap();
        assert_eq!(budget.locked().large, 2 * SMALL);
        drop(growing);
        assert!(budget.locked().clients.is_empty());
    }

    #[test]
    fn few_bulk_requests_of_a_client_are_under_way_at_once() {
        let budget = budget();
        let first = budget.begin_bulk(from(1, Some(7))).unwrap();
        let second = budget.begin_bulk(from(2, Some(7))).unwrap();
        let refused = budget.begin_bulk(from(3, Some(7)));
        assert_eq!(code(refused), ProblemCode::TooManyAtOnce);
        assert!(budget.begin_bulk(from(3, Some(8))).is_ok());
        drop(first);
        assert!(budget.begin_bulk(from(3, Some(7))).is_ok());
        drop(second);
        assert!(budget.locked().clients.is_empty());
    }

    #[tokio::test]
    async fn few_large_bodies_are_worked_on_at_once() {
        let budget = budget();
        let body_bytes = usize::try_from(LARGE).unwrap();
        let mut working = Vec::new();
        for _ in 0..4 {
            working.push(budget.begin_work(body_bytes).await.unwrap());
        }
        let mut fifth = std::pin::pin!(budget.begin_work(body_bytes));
        assert!(fifth.as_mut().now_or_never().is_none());
        working.pop();
        assert!(fifth.await.is_some());
    }
}
