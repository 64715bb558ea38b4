//! One load: from the shared cache or the store, and what is decided about it and remembered of it.

use std::sync::Arc;

use curt_core::clock::UnixMillis;
use curt_core::error::{ErrorKind, PortError, PortResult};
use curt_core::link::Availability;
use curt_core::{GoneCause, Link, LinkId, Revision, ServedLink, Visibility};

use super::decision::{CacheFill, LoadDecision, gone, negative, uncached};
use super::negative_cache::NegativeAnswer;
use super::single_flight::{Leader, LoadOutcome};
use super::{Resolution, Resolver};
use crate::policy::{PolicySnapshot, Service};

const BACKEND: &str = "resolver";
const OP: &str = "load a link";

impl Resolver {
    /// Loads a key for all that wait for it.
    pub(super) async fn lead(
        &self,
        leader: Leader<'_, PortResult<Resolution>>,
        id: &LinkId,
        began: UnixMillis,
    ) -> LoadOutcome<PortResult<Resolution>> {
        // Read after joining: a change of policy from now on invalidates this load.
        let policy = self.policy.now();
        if let Some(served) = self.find_shared(&policy, id, began).await {
            let (fill, now) = (CacheFill::Live(served.clone()), self.clock.now());
            let result = Ok(Resolution::Live(served));
            self.metrics.from_shared.inc();
            return leader.complete(result, || self.fill_caches(id, fill, began, now));
        }
        // What is told about this load from here on says when the store was asked.
        let began = self.clock.now();
        let loaded = self.load(&policy, id).await;
        let now = self.clock.now();
        let (result, fill) = match loaded {
            Ok(found) => {
                let decision = self.decide(&policy, found, began, now);
                (Ok(decision.resolution), Some(decision.fill))
            }
            Err(failure) => (Err(failure), None),
        };
        leader.complete(result, || {
            if let Some(fill) = fill {
                // Under the key's lock: what was invalidated meanwhile is not shared.
                self.share(id, &fill);
                self.fill_caches(id, fill, began, now);
            }
        })
    }

    /// Returns the link if the shared cache has it and everybody may follow it now. It counts as loaded at `began`: an entry
    /// that is there was not invalidated before that, unless its server could be told nothing, so that it must not be old.
    async fn find_shared(
        &self,
        policy: &PolicySnapshot,
        id: &LinkId,
        began: UnixMillis,
    ) -> Option<ServedLink> {
        let shared = self.shared.get()?;
        if policy.is_pending {
            return None;
        }
        let since = self.freshness.shared_since(began);
        let served = shared.get(id, since).await?.loaded_again_at(began);
        let is_open = policy.service(&served) == Service::Open;
        let is_live = served.availability(self.clock.now()) == Availability::Live;
        (is_open && is_live).then_some(served)
    }

    /// Has a loaded link put into the shared cache, if everybody may follow it now.
    fn share(&self, id: &LinkId, fill: &CacheFill) {
        if let (Some(shared), CacheFill::Live(served)) = (self.shared.get(), fill)
            && served.valid_since().is_none()
        {
            shared.fill(id, served.clone());
        }
    }

    pub(super) async fn load(
        &self,
        policy: &PolicySnapshot,
        id: &LinkId,
    ) -> PortResult<Option<Link>> {
        if policy.is_pending {
            let detail = "the accounts have not been read since the start";
            return Err(PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail));
        }
        let turn = tokio::time::timeout(self.settings.load_wait_max, self.load_permits.acquire());
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
        self.metrics.from_store.inc();
        let found = self.store.get_nearby(id).await?;
        let revision = found
            .as_ref()
            .map_or_else(Revision::default, |link| link.revision);
        match self.recent.get() {
            // A replica that does not have the change yet. A copy of what it has would live on.
            Some(recent) if recent.is_outdated(id, revision) => self.store.get(id).await,
            _ => Ok(found),
        }
    }

    /// Decides at `now` about what a load found that began at `began`.
    pub(super) fn decide(
        &self,
        policy: &PolicySnapshot,
        found: Option<Link>,
        began: UnixMillis,
        now: UnixMillis,
    ) -> LoadDecision {
        let Some(link) = found else {
            return negative(Resolution::Absent, NegativeAnswer::Absent);
        };
        let served = ServedLink::new(&link, began);
        let service = policy.service(&served);
        let availability = served.availability(now);
        if link.ended_at(now).is_some_and(|at| self.is_due(at, now)) {
            self.report_ended(&link.id, link.revision);
        }
        let is_hidden = self.settings.hides_private && served.visibility() == Visibility::Private;
        let leads_on = availability == Availability::Live && service == Service::Guarded;
        if is_hidden && !leads_on {
            return match availability {
                // Not remembered, so that it begins to redirect at its hour.
                Availability::Scheduled => uncached(Resolution::Absent),
                _ => negative(Resolution::Absent, NegativeAnswer::Absent),
            };
        }
        match (availability, service) {
            (Availability::Live, Service::Open) => LoadDecision {
                resolution: Resolution::Live(served.clone()),
                fill: CacheFill::Live(served),
            },
            (Availability::Live, Service::Guarded) => uncached(Resolution::Guarded(Arc::new(link))),
            (Availability::Live, Service::Blocked) => {
                negative(Resolution::Blocked, NegativeAnswer::Blocked)
            }
            (Availability::Live, Service::Gone) => gone(GoneCause::Disabled),
            // Cached as a link, so that it begins to redirect at its hour.
            (Availability::Scheduled, Service::Open) => LoadDecision {
                resolution: Resolution::Scheduled,
                fill: CacheFill::Live(served),
            },
            (Availability::Scheduled, _) => uncached(Resolution::Scheduled),
            (Availability::Absent, _) => negative(Resolution::Absent, NegativeAnswer::Absent),
            (Availability::Gone(cause), _) => gone(cause),
        }
    }

    /// Fills the caches; runs under the key's single-flight lock. What is too old already drops the copies from before it.
    fn fill_caches(&self, id: &LinkId, fill: CacheFill, began: UnixMillis, now: UnixMillis) {
        match fill {
            CacheFill::Live(served) if self.is_fresh_enough(began, now) => {
                self.negative.remove(id.as_ref());
                self.live.insert(id.as_ref(), served);
            }
            CacheFill::Negative(answer) => {
                self.live.remove(id.as_ref());
                self.negative.insert(id.clone(), answer, began, now);
            }
            CacheFill::Live(_) | CacheFill::Nothing => {
                self.live.remove(id.as_ref());
                self.negative.remove(id.as_ref());
            }
        }
    }
}
