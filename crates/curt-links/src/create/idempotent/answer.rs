//! What a request with an idempotency key is answered, whole or in part, the first time and again.

use curt_core::ports::{CreationOutcome, IdempotentRequest, Inserted, PlannedKey};
use curt_core::{ErrorKind, Link, LinkId, PortError};

use super::{Creation, Progress};
use crate::Links;
use crate::create::{Created, LinkCreator, Outcome};
use crate::error::{AliasHolder, LinkError};

impl Links {
    /// Answers a request of which some links could not be inserted. The others are told, and a retry goes on with the
    /// rest: planned keys are never replaced by others here, because they may yet be inserted, by a retry at the same
    /// time. If nothing came of the request, it is as if it had not been made.
    pub(super) async fn break_off(
        &self,
        request: &IdempotentRequest,
        mut creation: Creation,
        is_first_insert: bool,
    ) -> Result<Progress, LinkError> {
        let is_made = creation.inserted.iter().flatten().any(Inserted::is_made);
        if is_made {
            return self.answer_partly(creation).await.map(Progress::Answered);
        }
        let failures = std::mem::take(&mut creation.failures);
        let mut kinds = failures.iter().map(|(_, failure)| failure.kind);
        let is_untouched = creation.is_new && is_first_insert;
        let is_cancelled = is_untouched
            && kinds.all(ErrorKind::is_without_effect)
            && self.cancel(request, &creation.plan).await;
        let would_fit = |(place, failure): &(usize, PortError)| {
            let key = &creation.plan.keys[*place];
            self.would_fit_elsewhere(failure, &key.id, key.origin)
        };
        let would_all_fit = failures.iter().all(would_fit);
        match failures.into_iter().next() {
            Some((_, failure)) if is_cancelled && would_all_fit => {
                Ok(Progress::Cancelled(creation.drafts, failure))
            }
            Some((_, failure)) => Err(failure.into()),
            None => Err(LinkError::KeysExhausted),
        }
    }

    /// What a request is answered that is not finished: a retry is answered the same of the links that it has made.
    async fn answer_partly(&self, mut creation: Creation) -> Result<Vec<Outcome>, LinkError> {
        let failures = std::mem::take(&mut creation.failures);
        let places = 0..creation.inserted.len();
        let taken: Vec<usize> = places.filter(|at| creation.is_key_taken(*at)).collect();
        let made = |(inserted, key): (&Option<Inserted>, &PlannedKey)| {
            let is_made = inserted.as_ref().is_some_and(Inserted::is_made);
            is_made.then(|| key.id.clone())
        };
        let ids = creation.inserted.iter().zip(&creation.plan.keys).map(made);
        let so_far = CreationOutcome {
            at: creation.plan.at,
            ids: ids.collect(),
        };
        let mut outcomes = self.answer(creation, so_far).await?;
        for place in taken {
            outcomes[place] = Err(LinkError::KeysExhausted);
        }
        for (place, failure) in failures {
            outcomes[place] = Err(failure.into());
        }
        Ok(outcomes)
    }

    /// What a request is answered whose outcome this is.
    pub(super) async fn answer(
        &self,
        creation: Creation,
        stored: CreationOutcome,
    ) -> Result<Vec<Outcome>, LinkError> {
        let is_before =
            |inserted: &Option<Inserted>| matches!(inserted, Some(Inserted::CreatedBefore(_)));
        if creation.inserted.iter().any(is_before) {
            let count = creation.drafts.len();
            return self.replay(creation.by, count, stored).await;
        }
        let is_taken = |place: &usize| creation.inserted[*place] == Some(Inserted::Conflict);
        let taken = (0..creation.inserted.len()).filter(is_taken);
        let taken: Vec<LinkId> = taken.map(|at| creation.plan.keys[at].id.clone()).collect();
        let owner = creation.by.owner;
        let holders = self.alias_holders(owner, &taken, creation.plan.at).await;
        let mut holders = holders.into_iter();
        let outcome = |(place, inserted): (usize, &Option<Inserted>)| match inserted {
            Some(Inserted::Created(change)) => Ok(Created {
                link: Link {
                    revision: change.revision,
                    ..self.planned_link(&creation, place)
                },
                replayed: false,
            }),
            Some(Inserted::Conflict) => {
                let holder = holders.next().unwrap_or(AliasHolder::Another);
                Err(LinkError::AliasTaken(holder))
            }
            _ => Err(LinkError::KeysExhausted),
        };
        Ok(creation.inserted.iter().enumerate().map(outcome).collect())
    }

    /// What has become of the links that the request made.
    pub(super) async fn replay(
        &self,
        by: LinkCreator,
        count: usize,
        outcome: CreationOutcome,
    ) -> Result<Vec<Outcome>, LinkError> {
        // As above: pairing the rest with the wrong links would be worse than refusing.
        if outcome.ids.len() != count {
            return Err(LinkError::IdempotencyMismatch);
        }
        let ids: Vec<LinkId> = outcome.ids.iter().flatten().cloned().collect();
        let mut links = self.ports.store.get_many(&ids).await?.into_iter();
        // Another owner's link, or one of another time, has got the key since.
        let is_made_then = |link: &Link| {
            link.owner == by.owner && link.created_at == outcome.at && link.state.is_live()
        };
        let replayed = |id: &Option<LinkId>| {
            let id = id.as_ref();
            let id = id.ok_or(LinkError::AliasTaken(AliasHolder::Another))?;
            let link = links.next().flatten().filter(is_made_then);
            let link = link.ok_or_else(|| LinkError::CreatedAndGone(id.key.clone()))?;
            Ok(Created {
                link,
                replayed: true,
            })
        };
        Ok(outcome.ids.iter().map(replayed).collect())
    }
}
