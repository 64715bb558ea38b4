//! New links: a key for each, one insert for all, and a fresh key where the insert met an existing link (K-1).
//!
//! - *Alone or in bulk* is the same road; a single link is a bulk of one.
//! - *Without an idempotency key* items are independent: a taken alias or an invalid item does not stop the others.
//! - *With one* the request is carried out in steps that a retry resumes (`idempotent.rs`). The same request again is
//!   answered from the links themselves, as they are now, edits included. One that is no more, because it was deleted
//!   or purged and maybe its key given to another link since, is [`LinkError::CreatedAndGone`]. A request that was valid
//!   and is not any more, because its own expiry has passed, is refused like any other late one.
//! - *Strategy `claim`* takes seeded rows, and falls back to a random key and an insert when they run out. Requests with
//!   an idempotency key always take random keys: a retry must know them before it writes.

mod idempotent;
mod independent;

use curt_core::clock::UnixMillis;
use curt_core::limits::BULK_LINKS_MAX;
use curt_core::ports::{Inserted, LinkChange, RequestToken};
use curt_core::{
    ApiKeyNumber, ErrorKind, Field, FieldError, Key, KeyOrigin, Link, LinkId, LinkState, OwnerId,
    PortError, PortResult, Revision,
};
use curt_keys::{KeyRequest, SuppliedKey};

pub use self::idempotent::IdempotencyKey;
use crate::Links;
use crate::admit::{self, AdmittedLink, NewLink};
use crate::error::{AliasHolder, LinkError};
use crate::invalidate::WriteOutcome;

/// Keys of the supply that are looked at for one whose link is written in the own region, and random ones after that.
const HOME_TRIES_MAX: usize = 16;
const HOME_MADE_MAX: usize = 256;

/// Who makes links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCreator {
    pub owner: OwnerId,
    /// The API key that the request came with.
    pub made_with: Option<ApiKeyNumber>,
}

/// A link that exists because of this request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    pub link: Link,
    /// The request had been applied before, and this is what its link is like now.
    pub replayed: bool,
}

type Outcome = Result<Created, LinkError>;

impl Links {
    pub async fn create(
        &self,
        by: LinkCreator,
        new: NewLink,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Created, LinkError> {
        let now = self.clock.now();
        let blocklist = self.policy.blocklist();
        let rules = self.admission_rules(&blocklist, now);
        let draft = admit::new_link(&rules, by.owner, new).map_err(LinkError::Invalid)?;
        let mut outcomes = self
            .insert_admitted(by, vec![draft], idempotency, now)
            .await?;
        outcomes.pop().unwrap_or(Err(LinkError::KeysExhausted))
    }

    /// Creates up to [`BULK_LINKS_MAX`] links. One outcome per item, in order; an error only when nothing was done.
    pub async fn create_many(
        &self,
        by: LinkCreator,
        new: Vec<NewLink>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Vec<Result<Created, LinkError>>, LinkError> {
        if new.len() > BULK_LINKS_MAX {
            return Err(LinkError::Invalid(vec![FieldError::new(
                Field::Links,
                "links_too_many",
                format!("A request creates at most {BULK_LINKS_MAX} links."),
            )]));
        }
        let now = self.clock.now();
        let blocklist = self.policy.blocklist();
        let rules = self.admission_rules(&blocklist, now);
        let mut refusals = Vec::with_capacity(new.len());
        let mut drafts = Vec::with_capacity(new.len());
        for item in new {
            match admit::new_link(&rules, by.owner, item) {
                Ok(draft) => {
                    drafts.push(draft);
                    refusals.push(None);
                }
                Err(mistakes) => refusals.push(Some(LinkError::Invalid(mistakes))),
            }
        }
        let mut placed = self
            .insert_admitted(by, drafts, idempotency, now)
            .await?
            .into_iter();
        Ok(refusals
            .into_iter()
            .map(|refusal| match refusal {
                Some(mistakes) => Err(mistakes),
                None => placed.next().unwrap_or(Err(LinkError::KeysExhausted)),
            })
            .collect())
    }

    async fn insert_admitted(
        &self,
        by: LinkCreator,
        drafts: Vec<AdmittedLink>,
        idempotency: Option<IdempotencyKey>,
        now: UnixMillis,
    ) -> Result<Vec<Outcome>, LinkError> {
        match idempotency {
            Some(key) => {
                let request = key.admit(by.owner).map_err(LinkError::Invalid)?;
                if drafts.is_empty() {
                    return Ok(Vec::new());
                }
                self.create_idempotently(by, drafts, request, now).await
            }
            None => self.insert_independently(by, drafts, now).await,
        }
    }

    fn build(
        &self,
        draft: &AdmittedLink,
        by: LinkCreator,
        key: SuppliedKey,
        now: UnixMillis,
    ) -> Link {
        Link {
            id: LinkId::new(self.settings.domain, key.key),
            target: draft.target.clone(),
            owner: by.owner,
            made_with: by.made_with,
            state: LinkState::Active,
            revision: Revision::FIRST,
            origin: key.origin,
            created_at: now,
            updated_at: now,
            expires_at: draft.expires_at,
            valid_since: draft.valid_since,
            max_clicks: draft.access.max_clicks,
            visibility: draft.access.visibility,
            password_hash: draft.access.password_hash.clone(),
            status: draft.access.status,
            forward_query: draft.forward_query,
            title: draft.title.clone(),
            tags: draft.tags.clone(),
        }
    }

    /// The draft's alias, which was checked at admission, or a key whose link is written in the own region, where there are
    /// regions, and by a node that answers, where there are several. Keys of the supply that belong elsewhere go back to it;
    /// with too many of them a key is made on the spot.
    async fn take_key(&self, draft: &AdmittedLink, owner: OwnerId, attempt: usize) -> SuppliedKey {
        let taken = self.take_any_key(draft, owner, attempt).await;
        let Some(homes) = &self.ports.homes else {
            return taken;
        };
        let domain = self.settings.domain;
        let is_home = |key: &Key| homes.is_home(&LinkId::new(domain, key.clone()));
        let is_movable = |key: &SuppliedKey| !is_fixed(key.origin) && !is_home(&key.key);
        let (mut taken, mut elsewhere) = (taken, Vec::new());
        while is_movable(&taken) && elsewhere.len() < HOME_TRIES_MAX {
            elsewhere.push(taken);
            taken = self.take_any_key(draft, owner, attempt).await;
        }
        if is_movable(&taken) {
            elsewhere.push(taken);
            taken = self.supply.make_where(HOME_MADE_MAX, |key| {
                let is_fit = self.settings.keys.check(key.as_str(), KeyOrigin::Random);
                is_home(key) && is_fit.is_ok()
            });
        }
        for key in elsewhere {
            self.supply.set_aside(key);
        }
        taken
    }

    /// Whether a link that its node refused, unchanged, would do with another key: its own is generated, and belongs to a
    /// node that does not answer.
    fn would_fit_elsewhere(&self, failure: &PortError, id: &LinkId, origin: KeyOrigin) -> bool {
        let homes = self.ports.homes.as_ref();
        failure.kind == ErrorKind::Unavailable
            && !is_fixed(origin)
            && homes.is_some_and(|homes| !homes.is_home(id))
    }

    /// The draft's alias, which was checked at admission, or a key from the supply that passes the same check.
    async fn take_any_key(
        &self,
        draft: &AdmittedLink,
        owner: OwnerId,
        attempt: usize,
    ) -> SuppliedKey {
        if let Some(alias) = &draft.alias {
            return SuppliedKey {
                key: alias.clone(),
                origin: KeyOrigin::Alias,
            };
        }
        let mut attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        loop {
            let hint = KeyRequest {
                target: &draft.target,
                owner,
                attempt,
            };
            let key = self.supply.take(&hint).await;
            if self.accept_key(&key) {
                return key;
            }
            // After some tries the supply makes a key on the spot, by the same rules: this ends.
            attempt = attempt.saturating_add(1);
        }
    }

    /// The one check where a key is given to a link, whatever made it. One that is refused is counted, and gone.
    fn accept_key(&self, key: &SuppliedKey) -> bool {
        let checked = self.settings.keys.check(key.key.as_str(), key.origin);
        if let Err(refusal) = checked {
            self.supply.refused(key, refusal);
        }
        checked.is_ok()
    }

    /// Inserts links; one outcome for each, in order.
    async fn insert_links(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> Vec<PortResult<Inserted>> {
        let count = links.len();
        let insert = self.write_and_invalidate(
            |inserted| outcome_of_inserts(inserted),
            |store| async move {
                let changes = links.iter().map(LinkChange::of).collect();
                (changes, store.insert_each(links, token).await)
            },
        );
        let failure = match insert.await {
            Ok(inserted) if inserted.len() == count => return inserted,
            Ok(inserted) => {
                let detail = format!("{} answers to {count} inserts", inserted.len());
                PortError::new(ErrorKind::Bug, "links", "insert links", detail)
            }
            Err(failure) => failure,
        };
        vec![Err(failure); count]
    }

    async fn claim(&self, links: Vec<Link>) -> PortResult<Vec<Link>> {
        let Some(seeded) = self.ports.seeded.clone() else {
            return Ok(Vec::new());
        };
        self.write_and_invalidate(
            |_| WriteOutcome::Created,
            |_| async move {
                let reply = seeded.claim(links).await;
                let claimed = reply.iter().flatten().map(LinkChange::of).collect();
                (claimed, reply)
            },
        )
        .await
    }

    /// What has each of the aliases that `owner` wanted, in order. Costs a look-up only where an alias was taken; without
    /// an answer from the store nothing is told.
    async fn alias_holders(
        &self,
        owner: OwnerId,
        ids: &[LinkId],
        now: UnixMillis,
    ) -> Vec<AliasHolder> {
        let unknown = vec![AliasHolder::Another; ids.len()];
        if ids.is_empty() || owner == OwnerId::ANONYMOUS {
            return unknown;
        }
        let Ok(found) = self.ports.store.get_many(ids).await else {
            return unknown;
        };
        let holder = |link: Option<Link>| match link.filter(|link| link.owner == owner) {
            None => AliasHolder::Another,
            Some(link) => match link.effective_state(now) {
                Some(state) => AliasHolder::Own(state),
                None => AliasHolder::OwnPurged,
            },
        };
        found.into_iter().map(holder).collect()
    }

    fn count_created(&self, link: Link) -> Outcome {
        self.metrics.created(link.origin).inc();
        Ok(Created {
            link,
            replayed: false,
        })
    }
}

/// What others are told of links that were inserted so: any that failed may yet be.
fn outcome_of_inserts<'a>(
    inserted: impl IntoIterator<Item = &'a PortResult<Inserted>>,
) -> WriteOutcome {
    match inserted.into_iter().all(Result::is_ok) {
        true => WriteOutcome::Created,
        false => WriteOutcome::Unknown,
    }
}

/// Whether a key of this origin is what it is: aliases were asked for, and hashes must be found again by the same target.
fn is_fixed(origin: KeyOrigin) -> bool {
    matches!(origin, KeyOrigin::Alias | KeyOrigin::Hash)
}

fn supplied_key(link: &Link) -> SuppliedKey {
    SuppliedKey {
        key: link.id.key.clone(),
        origin: link.origin,
    }
}
