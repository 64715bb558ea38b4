//! Independent items: what is created stays created, what met a conflict, or a node that is away, tries again with
//! another key. An alias of such a node is refused alone.

use curt_core::clock::UnixMillis;
use curt_core::limits::KEY_TRIES_MAX;
use curt_core::ports::Inserted;
use curt_core::{ErrorKind, Key, KeyOrigin, Link, LinkId, OwnerId, PortError, PortResult};
use curt_keys::SuppliedKey;

use super::{LinkCreator, Outcome, supplied_key};
use crate::Links;
use crate::admit::AdmittedLink;
use crate::error::{AliasHolder, LinkError};

/// How often links whose node turns out to be away get keys of another one. Each such node is found out once, and is left
/// out by the keys that are taken then.
const ELSEWHERE_TRIES_MAX: usize = 2;

/// A draft that has no outcome yet, with its place in the request.
struct Pending {
    place: usize,
    draft: AdmittedLink,
}

impl Links {
    pub(super) async fn insert_independently(
        &self,
        by: LinkCreator,
        drafts: Vec<AdmittedLink>,
        now: UnixMillis,
    ) -> Result<Vec<Outcome>, LinkError> {
        let mut outcomes: Vec<Option<Outcome>> = drafts.iter().map(|_| None).collect();
        let mut pending: Vec<Pending> = drafts
            .into_iter()
            .enumerate()
            .map(|(place, draft)| Pending { place, draft })
            .collect();
        if let Err(failure) = self
            .insert_pending(by, &mut pending, &mut outcomes, now)
            .await
        {
            if outcomes.iter().all(Option::is_none) {
                return Err(failure.into());
            }
            // Some links exist already, and their creator must learn of them.
            for left in pending {
                outcomes[left.place] = Some(Err(failure.clone().into()));
            }
        }
        let outcomes = outcomes.into_iter();
        let outcomes = outcomes.map(|outcome| outcome.unwrap_or(Err(LinkError::KeysExhausted)));
        let mut outcomes: Vec<Outcome> = outcomes.collect();
        let is_store_failure = |outcome: &Outcome| matches!(outcome, Err(LinkError::Store(_)));
        match outcomes
            .iter()
            .all(is_store_failure)
            .then(|| outcomes.pop())
        {
            // Nothing was done.
            Some(Some(Err(failure))) => Err(failure),
            _ => Ok(outcomes),
        }
    }

    /// Gives outcomes to the pending drafts until there are none left or the tries are used up.
    async fn insert_pending(
        &self,
        by: LinkCreator,
        pending: &mut Vec<Pending>,
        outcomes: &mut [Option<Outcome>],
        now: UnixMillis,
    ) -> PortResult<()> {
        if self.supply.claims_rows() {
            self.claim_pending(by, pending, outcomes, now).await?;
        }
        let mut taken = Vec::new();
        for attempt in 0..KEY_TRIES_MAX {
            if pending.is_empty() {
                break;
            }
            let mut links = Vec::with_capacity(pending.len());
            for Pending { draft, .. } in pending.iter() {
                let key = self.take_key(draft, by.owner, attempt).await;
                links.push(self.build(draft, by, key, now));
            }
            let inserted = self.insert_links(links.clone(), None).await;
            let mut left = Vec::new();
            for ((item, link), inserted) in pending.drain(..).zip(links).zip(inserted) {
                match inserted {
                    Ok(Inserted::Created(change)) => {
                        let revision = change.revision;
                        let link = Link { revision, ..link };
                        outcomes[item.place] = Some(self.count_created(link));
                    }
                    Ok(Inserted::Conflict) if link.origin == KeyOrigin::Alias => {
                        outcomes[item.place] =
                            Some(Err(LinkError::AliasTaken(AliasHolder::Another)));
                        taken.push((item.place, link.id));
                    }
                    Ok(Inserted::Conflict | Inserted::CreatedBefore(_)) => {
                        self.supply.conflicted(&supplied_key(&link));
                        left.push(item);
                    }
                    Err(failure) => {
                        self.put_back_after(&failure, &link);
                        let fits = self.would_fit_elsewhere(&failure, &link.id, link.origin);
                        match fits && attempt < ELSEWHERE_TRIES_MAX {
                            true => left.push(item),
                            false => outcomes[item.place] = Some(Err(failure.into())),
                        }
                    }
                }
            }
            *pending = left;
        }
        self.name_holders(by.owner, outcomes, taken, now).await;
        Ok(())
    }

    /// Serves drafts without an alias from seeded rows, as far as those reach.
    async fn claim_pending(
        &self,
        by: LinkCreator,
        pending: &mut Vec<Pending>,
        outcomes: &mut [Option<Outcome>],
        now: UnixMillis,
    ) -> PortResult<()> {
        let (generated, mut left): (Vec<Pending>, Vec<Pending>) = pending
            .drain(..)
            .partition(|item| item.draft.alias.is_none());
        let mut links = Vec::with_capacity(generated.len());
        for item in &generated {
            links.push(self.build(&item.draft, by, placeholder_key()?, now));
        }
        if !links.is_empty() {
            let mut claimed = self.claim(links).await?.into_iter();
            for item in generated {
                match claimed.next() {
                    Some(link) if self.accept_key(&supplied_key(&link)) => {
                        outcomes[item.place] = Some(self.count_created(link));
                    }
                    Some(link) => {
                        self.undo_claim(link, now).await?;
                        left.push(item);
                    }
                    None => left.push(item),
                }
            }
        }
        *pending = left;
        Ok(())
    }
}

impl Links {
    /// Says of the creator's own links which one has the alias. Where that cannot be told, the plain answer stays.
    async fn name_holders(
        &self,
        owner: OwnerId,
        outcomes: &mut [Option<Outcome>],
        taken: Vec<(usize, LinkId)>,
        now: UnixMillis,
    ) {
        let (places, ids): (Vec<usize>, Vec<LinkId>) = taken.into_iter().unzip();
        let holders = self.alias_holders(owner, &ids, now).await;
        for (place, holder) in places.into_iter().zip(holders) {
            outcomes[place] = Some(Err(LinkError::AliasTaken(holder)));
        }
    }

    /// Takes a link away again that no caller has heard of: its row was seeded before its key was refused. It leaves a
    /// tombstone, so that the key does not come back with the next row.
    async fn undo_claim(&self, link: Link, now: UnixMillis) -> PortResult<()> {
        self.delete_at(link.id, link.revision, now).await.map(drop)
    }

    /// Returns the key of an insert that was clearly refused. After any other failure it may have happened, and then a
    /// key would be handed out that is on a link.
    fn put_back_after(&self, failure: &PortError, link: &Link) {
        if failure.kind.is_without_effect() && link.origin != KeyOrigin::Alias {
            self.supply.put_back(supplied_key(link));
        }
    }
}

/// The key of a link that is about to get that of a seeded row: the store does not look at it.
fn placeholder_key() -> PortResult<SuppliedKey> {
    match Key::parse("-") {
        Ok(key) => Ok(SuppliedKey {
            key,
            origin: KeyOrigin::Claim,
        }),
        Err(reason) => Err(unexpected_reply("name a row to claim", &reason)),
    }
}

fn unexpected_reply(op: &'static str, reply: &impl std::fmt::Debug) -> PortError {
    PortError::new(
        ErrorKind::Bug,
        "links",
        op,
        format!("the store answered what it must not: {reply:?}"),
    )
}
