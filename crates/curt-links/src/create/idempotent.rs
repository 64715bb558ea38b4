//! Requests with an idempotency key: applied as a whole, once, however often they come.

use curt_core::clock::UnixMillis;
use curt_core::limits::{IDEMPOTENCY_KEY_BYTES_MAX, KEY_TRIES_MAX};
use curt_core::ports::{ClaimReply, InsertReply, InsertRequest, Inserted, Once, Replay};
use curt_core::{Field, FieldError, KeyOrigin, Link, LinkState, OwnerId, PortError};

use super::independent::{placeholder_key, unexpected_reply};
use super::{Created, LinkCreator, Outcome, supplied_key, with_stored_generation};
use crate::Links;
use crate::admit::AdmittedLink;
use crate::error::LinkError;

/// The client's `Idempotency-Key` and a digest of the request that carried it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    pub fingerprint: [u8; 32],
}

impl IdempotencyKey {
    pub(super) fn admit(self, owner: OwnerId) -> Result<Once, Vec<FieldError>> {
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
        Ok(Once {
            owner,
            key: self.key.into(),
            fingerprint: self.fingerprint,
        })
    }
}

/// What stays the same for all links of one try.
struct InsertAttempt {
    by: LinkCreator,
    now: UnixMillis,
    attempt: usize,
}

impl Links {
    pub(super) async fn insert_idempotently(
        &self,
        by: LinkCreator,
        drafts: Vec<AdmittedLink>,
        once: Once,
        now: UnixMillis,
    ) -> Result<Vec<Outcome>, LinkError> {
        // A row that was seeded before its key was refused cannot be given up once it is on record.
        let may_claim = self.supply.claims_rows() && !self.settings.keys.has_unwanted_words();
        if may_claim && drafts.iter().all(|draft| draft.alias.is_none()) {
            let claimed = self.claim_once(by, &drafts, &once, now).await?;
            if let Some(outcomes) = claimed {
                return Ok(outcomes);
            }
        }
        let mut links = Vec::with_capacity(drafts.len());
        for draft in &drafts {
            let key = self.take_key(draft, by.owner, 0).await;
            links.push(self.build(draft, by, key, now));
        }
        for attempt in 1..=KEY_TRIES_MAX {
            let request = InsertRequest {
                links: links.clone(),
                once: Some(once.clone()),
                now,
            };
            let reply = self.insert(request).await;
            if let Err(failure) = &reply {
                self.put_back_after(failure, &links);
            }
            let inserted = match reply? {
                InsertReply::Stored(inserted) if inserted.len() == links.len() => inserted,
                InsertReply::Replayed(replay) => {
                    self.put_back(&links);
                    return self.replay(by, &drafts, replay).await;
                }
                InsertReply::Mismatch => {
                    self.put_back(&links);
                    return Err(LinkError::OnceMismatch);
                }
                reply @ InsertReply::Stored(_) => {
                    return Err(unexpected_reply("insert links", &reply).into());
                }
            };
            let placing = InsertAttempt { by, now, attempt };
            if !self
                .replace_conflicted(&placing, &drafts, &mut links, &inserted)
                .await
            {
                return Ok(self.collect_outcomes(links, inserted));
            }
        }
        self.put_back(&links);
        Err(LinkError::KeysExhausted)
    }

    fn collect_outcomes(&self, links: Vec<Link>, inserted: Vec<Inserted>) -> Vec<Outcome> {
        let outcomes = links.into_iter().zip(inserted);
        outcomes
            .map(|(link, inserted)| match inserted {
                Inserted::Created | Inserted::CreatedAnew(_) => {
                    self.count_created(with_stored_generation(link, inserted))
                }
                Inserted::Conflict | Inserted::Withheld => Err(LinkError::AliasTaken),
            })
            .collect()
    }

    /// Returns the keys of an insert that was clearly refused. After any other failure it may have happened, and then a
    /// key would be handed out that is on a link.
    pub(super) fn put_back_after(&self, failure: &PortError, links: &[Link]) {
        if failure.kind.is_without_effect() {
            self.put_back(links);
        }
    }

    /// Returns keys that certainly went into no link.
    fn put_back(&self, links: &[Link]) {
        for link in links {
            if link.origin != KeyOrigin::Alias {
                self.supply.put_back(supplied_key(link));
            }
        }
    }

    /// Gives a fresh key to each link whose generated one was taken, and says whether there was any: then nothing has
    /// been applied.
    async fn replace_conflicted(
        &self,
        placing: &InsertAttempt,
        drafts: &[AdmittedLink],
        links: &mut [Link],
        inserted: &[Inserted],
    ) -> bool {
        let mut any = false;
        for ((draft, link), inserted) in drafts.iter().zip(links).zip(inserted) {
            if *inserted == Inserted::Conflict && link.origin != KeyOrigin::Alias {
                any = true;
                self.supply.conflicted(&supplied_key(link));
                let key = self
                    .take_key(draft, placing.by.owner, placing.attempt)
                    .await;
                *link = self.build(draft, placing.by, key, placing.now);
            }
        }
        any
    }

    /// `None` when there are too few seeded rows for all.
    async fn claim_once(
        &self,
        by: LinkCreator,
        drafts: &[AdmittedLink],
        once: &Once,
        now: UnixMillis,
    ) -> Result<Option<Vec<Outcome>>, LinkError> {
        let mut links = Vec::with_capacity(drafts.len());
        for draft in drafts {
            links.push(self.build(draft, by, placeholder_key()?, now));
        }
        let request = InsertRequest {
            links,
            once: Some(once.clone()),
            now,
        };
        match self.claim(request).await? {
            ClaimReply::Claimed(links) if links.len() == drafts.len() => {
                let outcomes = links.into_iter().map(|link| self.count_created(link));
                Ok(Some(outcomes.collect()))
            }
            ClaimReply::Claimed(links) if links.is_empty() => Ok(None),
            reply @ ClaimReply::Claimed(_) => Err(unexpected_reply("claim rows", &reply).into()),
            ClaimReply::Replayed(replay) => Ok(Some(self.replay(by, drafts, replay).await?)),
            ClaimReply::Mismatch => Err(LinkError::OnceMismatch),
        }
    }

    /// What has become of the links that the request made when it was applied.
    async fn replay(
        &self,
        by: LinkCreator,
        drafts: &[AdmittedLink],
        replay: Replay,
    ) -> Result<Vec<Outcome>, LinkError> {
        // Items that were admitted then and are not now (their expiry has passed) make it another request: pairing
        // the rest with the wrong links would be worse than refusing.
        if replay.ids.len() != drafts.len() {
            return Err(LinkError::OnceMismatch);
        }
        let mut outcomes = Vec::with_capacity(replay.ids.len());
        for id in replay.ids {
            let Some(id) = id else {
                outcomes.push(Err(LinkError::AliasTaken));
                continue;
            };
            // Another owner's link, or one of another time, has got the key since.
            let is_made_then = |link: &Link| {
                link.owner == by.owner
                    && link.created_at == replay.at
                    && matches!(link.state, LinkState::Active | LinkState::Disabled)
            };
            let found = self.ports.store.get(&id).await?.filter(is_made_then);
            outcomes.push(match found {
                Some(link) => Ok(Created {
                    link,
                    replayed: true,
                }),
                None => Err(LinkError::CreatedAndGone(id.key)),
            });
        }
        Ok(outcomes)
    }
}
