//! Requests with an idempotency key: begun with a plan, carried out link by link, finished with an outcome.
//!
//! Each step may be the last before a crash. A retry resumes the stored plan: links with its token are its own, missing
//! ones are created, and the outcome is the same. Keys of a stored plan are not given back to the supply, because the
//! retry is going to use them, unless nothing came of it and its record could be removed.

mod answer;

use std::collections::HashSet;
use std::sync::Arc;

use curt_core::clock::UnixMillis;
use curt_core::limits::{IDEMPOTENCY_KEY_BYTES_MAX, KEY_TRIES_MAX};
use curt_core::ports::{
    BeginReply, CreationOutcome, CreationPlan, IdempotentRequest, Inserted, LinkChange, PlannedKey,
    RequestToken,
};
use curt_core::{Field, FieldError, KeyOrigin, Link, LinkId, OwnerId, PortError, PortResult};
use curt_keys::SuppliedKey;

use super::{LinkCreator, Outcome};
use crate::Links;
use crate::admit::AdmittedLink;
use crate::error::LinkError;
use crate::invalidate::WriteOutcome;

/// The client's `Idempotency-Key` and a digest of the request that carried it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    pub fingerprint: [u8; 32],
}

impl IdempotencyKey {
    pub(super) fn admit(self, owner: OwnerId) -> Result<IdempotentRequest, Vec<FieldError>> {
        let is_usable = !self.key.is_empty()
            && self.key.len() <= IDEMPOTENCY_KEY_BYTES_MAX
            && self
                .key
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if !is_usable {
            return Err(vec![FieldError::new(
                Field::IdempotencyKey,
                "idempotency_key_invalid",
                format!(
                    "An Idempotency-Key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters."
                ),
            )]);
        }
        Ok(IdempotentRequest {
            owner,
            key: self.key.into(),
            fingerprint: self.fingerprint,
        })
    }
}

/// A request under way.
struct Creation {
    by: LinkCreator,
    drafts: Vec<AdmittedLink>,
    plan: CreationPlan,
    /// Whether this request stored the plan: no earlier one can have inserted its links.
    is_new: bool,
    /// Per link, what the insert under its planned key said.
    inserted: Vec<Option<Inserted>>,
    /// The links that could not be inserted, by their places.
    failures: Vec<(usize, PortError)>,
}

/// How far a request was carried out.
enum Progress {
    Answered(Vec<Outcome>),
    /// Nothing came of it, and its record is gone, because of nodes that are away: with other keys it may do.
    Cancelled(Vec<AdmittedLink>, PortError),
}

impl Creation {
    /// Whether the link at `place` needs another key.
    fn is_key_taken(&self, place: usize) -> bool {
        let is_generated = self.plan.keys[place].origin != KeyOrigin::Alias;
        self.inserted[place] == Some(Inserted::Conflict) && is_generated
    }

    /// Whether no key stands in the plan twice.
    fn has_distinct_keys(&self) -> bool {
        let mut ids = HashSet::new();
        self.plan.keys.iter().all(|key| ids.insert(&key.id))
    }
}

impl Links {
    pub(super) async fn create_idempotently(
        &self,
        by: LinkCreator,
        drafts: Vec<AdmittedLink>,
        request: IdempotentRequest,
        now: UnixMillis,
    ) -> Result<Vec<Outcome>, LinkError> {
        let first = self.begin_or_resume(by, drafts, &request, now).await?;
        let drafts = match first {
            Progress::Answered(outcomes) => return Ok(outcomes),
            Progress::Cancelled(drafts, _) => drafts,
        };
        match self.begin_or_resume(by, drafts, &request, now).await? {
            Progress::Answered(outcomes) => Ok(outcomes),
            Progress::Cancelled(_, failure) => Err(failure.into()),
        }
    }

    async fn begin_or_resume(
        &self,
        by: LinkCreator,
        drafts: Vec<AdmittedLink>,
        request: &IdempotentRequest,
        now: UnixMillis,
    ) -> Result<Progress, LinkError> {
        let mut keys = Vec::with_capacity(drafts.len());
        for draft in &drafts {
            keys.push(self.plan_key(draft, by.owner, 0).await);
        }
        let mut creation = Creation {
            by,
            inserted: vec![None; drafts.len()],
            drafts,
            plan: CreationPlan {
                token: RequestToken(rand::random()),
                version: 0,
                at: now,
                keys,
            },
            is_new: true,
            failures: Vec::new(),
        };
        let (begun, outcome) = match self.begin(request, &mut creation).await {
            Ok(begun) => begun,
            Err(failure) => {
                if failure.kind.is_without_effect() {
                    self.put_back(&creation.plan.keys);
                }
                return Err(failure.into());
            }
        };
        if begun != BeginReply::New {
            self.put_back(&creation.plan.keys);
            creation.is_new = false;
        }
        match (begun, outcome) {
            (BeginReply::New, Some(stored)) => {
                let outcomes = self.answer(creation, stored).await?;
                return Ok(Progress::Answered(outcomes));
            }
            (BeginReply::New, None) => {}
            (BeginReply::Resumed(plan), _) => creation.plan = plan,
            (BeginReply::Replayed(outcome), _) => {
                let outcomes = self.replay(by, creation.drafts.len(), outcome).await?;
                return Ok(Progress::Answered(outcomes));
            }
            (BeginReply::Mismatch, _) => return Err(LinkError::IdempotencyMismatch),
        }
        // Items that were admitted then and are not now (their expiry has passed) make it another request.
        if creation.plan.keys.len() != creation.drafts.len() {
            return Err(LinkError::IdempotencyMismatch);
        }
        self.carry_out(request, creation).await
    }

    /// Stores the plan. An engine with transactions also inserts the links, and stores the outcome if all keys were free.
    async fn begin(
        &self,
        request: &IdempotentRequest,
        creation: &mut Creation,
    ) -> PortResult<(BeginReply, Option<CreationOutcome>)> {
        let port = Arc::clone(&self.ports.idempotency);
        if !port.can_create_at_once() || !creation.has_distinct_keys() {
            return Ok((port.begin(request, &creation.plan).await?, None));
        }
        let places = 0..creation.plan.keys.len();
        let links: Vec<Link> = places.map(|at| self.planned_link(creation, at)).collect();
        let (request, plan) = (request.clone(), creation.plan.clone());
        let create = self.write_and_invalidate(
            |_| WriteOutcome::Created,
            |_| async move {
                let changes = links.iter().map(LinkChange::of).collect();
                (changes, port.create_at_once(&request, &plan, links).await)
            },
        );
        let created = create.await?;
        for (place, inserted) in created.inserted.into_iter().enumerate() {
            self.note_inserted(creation, place, inserted);
        }
        Ok((created.begun, created.outcome))
    }

    /// Inserts what the plan says, with other keys where generated ones are taken, and finishes the request.
    async fn carry_out(
        &self,
        request: &IdempotentRequest,
        mut creation: Creation,
    ) -> Result<Progress, LinkError> {
        for attempt in 1..=KEY_TRIES_MAX {
            self.insert_planned(&mut creation).await;
            if !creation.failures.is_empty() {
                let is_first = attempt == 1;
                return self.break_off(request, creation, is_first).await;
            }
            let inserted = creation.inserted.iter().flatten();
            if let Some(outcome) = CreationOutcome::of(&creation.plan, inserted) {
                let outcomes = self.finish(request, creation, outcome).await?;
                return Ok(Progress::Answered(outcomes));
            }
            let all = 0..creation.plan.keys.len();
            let taken: Vec<usize> = all.filter(|place| creation.is_key_taken(*place)).collect();
            self.replace_keys(request, &mut creation, &taken, attempt)
                .await?;
        }
        Err(LinkError::KeysExhausted)
    }

    /// Gives the keys of a plan back that nothing came of, if its record could be removed, and says whether it was.
    async fn cancel(&self, request: &IdempotentRequest, plan: &CreationPlan) -> bool {
        let cancelled = self.ports.idempotency.cancel(request, plan.token).await;
        // Otherwise the next retry uses them. That this failed, too, was noted with its port.
        let is_cancelled = cancelled.unwrap_or(false);
        if is_cancelled {
            self.put_back(&plan.keys);
        }
        is_cancelled
    }

    /// Inserts the links that have no answer yet, and notes which could not be.
    async fn insert_planned(&self, creation: &mut Creation) {
        let mut ids: HashSet<&LinkId> = HashSet::new();
        let (mut places, mut links) = (Vec::new(), Vec::new());
        for (place, key) in creation.plan.keys.iter().enumerate() {
            // The same key twice in a request: it is the first one's, and the store could not tell them apart.
            if !ids.insert(&key.id) {
                creation.inserted[place] = Some(Inserted::Conflict);
            } else if creation.inserted[place].is_none() {
                places.push(place);
                links.push(self.planned_link(creation, place));
            }
        }
        if links.is_empty() {
            return;
        }
        let token = Some(creation.plan.token);
        let inserted = self.insert_links(links, token).await;
        for (place, inserted) in places.into_iter().zip(inserted) {
            match inserted {
                Ok(inserted) => self.note_inserted(creation, place, inserted),
                Err(failure) => creation.failures.push((place, failure)),
            }
        }
    }

    fn note_inserted(&self, creation: &mut Creation, place: usize, inserted: Inserted) {
        if inserted.is_created() {
            let origin = creation.plan.keys[place].origin;
            self.metrics.created(origin).inc();
        }
        creation.inserted[place] = Some(inserted);
    }

    fn planned_link(&self, creation: &Creation, place: usize) -> Link {
        let PlannedKey { id, origin } = creation.plan.keys[place].clone();
        let key = SuppliedKey {
            key: id.key,
            origin,
        };
        let draft = &creation.drafts[place];
        self.build(draft, creation.by, key, creation.plan.at)
    }

    /// Stores a plan with other keys at the places where they are taken, before any of them is inserted.
    async fn replace_keys(
        &self,
        request: &IdempotentRequest,
        creation: &mut Creation,
        taken: &[usize],
        attempt: usize,
    ) -> PortResult<()> {
        let mut next = creation.plan.clone();
        next.version += 1;
        for place in taken {
            let draft = &creation.drafts[*place];
            self.supply.conflicted(&supplied_key(&next.keys[*place]));
            next.keys[*place] = self.plan_key(draft, creation.by.owner, attempt).await;
        }
        let stored = self.ports.idempotency.replace_plan(request, &next).await?;
        if stored != next {
            // A retry at the same time was faster: its plan counts.
            let ours: Vec<PlannedKey> = taken.iter().map(|at| next.keys[*at].clone()).collect();
            self.put_back(&ours);
        }
        for (place, key) in stored.keys.iter().enumerate() {
            if key.id != creation.plan.keys[place].id {
                creation.inserted[place] = None;
            }
        }
        creation.plan = stored;
        Ok(())
    }

    async fn finish(
        &self,
        request: &IdempotentRequest,
        creation: Creation,
        outcome: CreationOutcome,
    ) -> Result<Vec<Outcome>, LinkError> {
        let port = &self.ports.idempotency;
        let token = creation.plan.token;
        let stored = port.finish(request, token, outcome.clone()).await?;
        if stored != outcome {
            return self
                .replay(creation.by, creation.drafts.len(), stored)
                .await;
        }
        self.answer(creation, stored).await
    }

    async fn plan_key(&self, draft: &AdmittedLink, owner: OwnerId, attempt: usize) -> PlannedKey {
        let SuppliedKey { key, origin } = self.take_key(draft, owner, attempt).await;
        let id = LinkId::new(self.settings.domain, key);
        PlannedKey { id, origin }
    }

    /// Returns keys that are in no link and no stored plan.
    fn put_back(&self, keys: &[PlannedKey]) {
        for key in keys.iter().filter(|key| key.origin != KeyOrigin::Alias) {
            self.supply.put_back(supplied_key(key));
        }
    }
}

fn supplied_key(planned: &PlannedKey) -> SuppliedKey {
    SuppliedKey {
        key: planned.id.key.clone(),
        origin: planned.origin,
    }
}
