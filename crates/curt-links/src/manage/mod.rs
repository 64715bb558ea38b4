//! What people do with links that exist: read, list, edit, delete, restore, and for administrators switch off and on.
//! Somebody else's link is answered like one that is not there.

mod leaving;
mod many;
mod tags;

use curt_accounts::Principal;
use curt_core::limits::{PAGE_LINKS_MAX, SEARCH_BYTES_MAX};
use curt_core::ports::{ChangeReply, LinkChange, ListPage, ListQuery};
use curt_core::{
    EffectiveState, ErrorKind, Field, FieldError, Link, LinkId, LinkRef, LinkState, OwnerId,
    PortResult, Revision, Scope, UnixMillis,
};

use crate::Links;
use crate::admit::{self, EditLink, Expiry};
use crate::error::LinkError;
use crate::invalidate::WriteOutcome;

pub use self::leaving::LinksOfLeaver;
pub use self::many::LinksChange;
pub use self::tags::{TagChange, TagCounts, TagReplacement};

/// How often a change without a named revision is tried against others' changes.
const CHANGE_TRIES_MAX: usize = 16;

/// Whose links a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// This owner's alone.
    Owner(OwnerId),
    /// Anybody's: only for administrators.
    Anybody,
}

impl Who {
    /// Returns whose links an operation of `principal` on one link may touch.
    #[must_use]
    pub fn reachable_by(principal: &Principal) -> Self {
        if principal.may(Scope::Admin) {
            Self::Anybody
        } else {
            Self::Owner(principal.user)
        }
    }

    /// Links made without credentials belong to nobody who could show any.
    fn is_nobody(self) -> bool {
        self == Self::Owner(OwnerId::ANONYMOUS)
    }

    fn owns(self, link: &Link) -> bool {
        match self {
            Self::Owner(owner) => link.owner == owner && !self.is_nobody(),
            Self::Anybody => true,
        }
    }
}

/// What is to be done with a link, decided by what it is like now.
enum Change {
    Update(Box<Link>),
    /// Turn it into a tombstone.
    Erase,
    /// It is already as wanted.
    Nothing,
}

impl Links {
    pub async fn get(&self, who: Who, key: &str) -> Result<Link, LinkError> {
        let id = self.parse_id(key)?;
        self.get_owned(who, &id).await
    }

    /// Those of the keys that name a link of theirs, in order.
    pub async fn get_many(&self, who: Who, keys: &[String]) -> Result<Vec<Link>, LinkError> {
        let ids: Vec<LinkId> = keys
            .iter()
            .filter_map(|key| self.parse_id(key).ok())
            .collect();
        let found = self.ports.store.get_many(&ids).await?;
        let is_theirs = |link: &Link| link.state.is_kept() && who.owns(link);
        Ok(found.into_iter().flatten().filter(is_theirs).collect())
    }

    /// One page. What `query` says about the owner counts only for [`Who::Anybody`].
    pub async fn list(&self, who: Who, mut query: ListQuery) -> Result<ListPage, LinkError> {
        if query
            .search
            .as_ref()
            .is_some_and(|text| text.len() > SEARCH_BYTES_MAX)
        {
            return Err(invalid(
                Field::Search,
                "search_too_long",
                format!("A search has at most {SEARCH_BYTES_MAX} bytes."),
            ));
        }
        if who.is_nobody() {
            return Ok(ListPage::default());
        }
        if let Who::Owner(owner) = who {
            query.owner = Some(owner);
        }
        query.limit = query.limit.clamp(1, PAGE_LINKS_MAX);
        query.now = self.clock.now();
        let has_cursor = query.cursor.is_some();
        match self.ports.index.list(&query).await {
            Ok(page) => Ok(page),
            Err(failure) if has_cursor && failure.kind == ErrorKind::Invalid => Err(invalid(
                Field::Cursor,
                "cursor_invalid",
                "The cursor is not one of this list: start from the first page.".into(),
            )),
            Err(failure) => Err(failure.into()),
        }
    }

    /// What each link is to its owner now, in order. Reads spent clicks of links that have a limit.
    pub async fn effective_states(&self, links: &[Link]) -> PortResult<Vec<EffectiveState>> {
        let now = self.clock.now();
        // A tombstone is never handed out; were one to slip through, it could not be restored.
        let state = |link: &Link| link.effective_state(now).unwrap_or(EffectiveState::Deleted);
        let mut states: Vec<EffectiveState> = links.iter().map(state).collect();
        let is_limited = |at: &usize| states[*at].asks_clicks() && links[*at].max_clicks.is_some();
        let limited: Vec<usize> = (0..links.len()).filter(is_limited).collect();
        if limited.is_empty() {
            return Ok(states);
        }
        let ids: Vec<LinkId> = limited.iter().map(|at| links[*at].id.clone()).collect();
        let spent = self.ports.store.clicks_spent_many(&ids).await?;
        for (at, spent) in limited.into_iter().zip(spent) {
            states[at] = states[at].with_clicks(links[at].max_clicks, spent);
        }
        Ok(states)
    }

    /// Changes the link. With `seen`, only if it is still at that revision. A link that is switched off stays so; one
    /// that is deleted has to be [restored](Self::restore) first.
    pub async fn edit(
        &self,
        who: Who,
        key: &str,
        seen: Option<Revision>,
        edit: EditLink,
    ) -> Result<Link, LinkError> {
        let blocklist = self.policy.blocklist();
        let decide = |current: &Link, now| {
            refuse_deleted(current)?;
            let rules = self.admission_rules(&blocklist, now);
            let wanted = admit::edit(&rules, current, &edit).map_err(LinkError::Invalid)?;
            Ok(Change::Update(Box::new(wanted)))
        };
        let link = self.change(who, key, seen, decide).await?;
        self.metrics.edited.inc();
        Ok(link)
    }

    /// Deletes the link, which its owner can [restore](Self::restore) for the grace period. With `seen`, only if it is
    /// still at that revision.
    pub async fn delete(
        &self,
        who: Who,
        key: &str,
        seen: Option<Revision>,
    ) -> Result<(), LinkError> {
        let decide = |current: &Link, now| {
            refuse_deleted(current)?;
            if self.settings.grace.is_zero() {
                return Ok(Change::Erase);
            }
            Ok(Change::Update(Box::new(Link {
                state: current.state.deleted(),
                updated_at: now,
                ..current.clone()
            })))
        };
        self.change(who, key, seen, decide).await?;
        self.metrics.deleted.inc();
        Ok(())
    }

    /// Brings a deleted or expired link back, with the expiry that is asked for. Without one, a link that has expired
    /// gets the default life from now on. A link that was switched off stays so. Nothing to bring back: nothing happens.
    pub async fn restore(
        &self,
        who: Who,
        key: &str,
        seen: Option<Revision>,
        expires_at: Option<Expiry>,
    ) -> Result<Link, LinkError> {
        let blocklist = self.policy.blocklist();
        let decide = |current: &Link, now| {
            let has_expired = current.expires_at.is_some_and(|at| at <= now);
            if expires_at.is_none() && !has_expired && !current.state.is_deleted() {
                return Ok(Change::Nothing);
            }
            let restored = Link {
                state: current.state.restored(),
                ..current.clone()
            };
            let edit = EditLink {
                expires_at: expires_at.or(has_expired.then_some(Expiry::Default)),
                ..EditLink::default()
            };
            let rules = self.admission_rules(&blocklist, now);
            let wanted = admit::edit(&rules, &restored, &edit).map_err(LinkError::Invalid)?;
            Ok(Change::Update(Box::new(wanted)))
        };
        let link = self.change(who, key, seen, decide).await?;
        self.metrics.edited.inc();
        Ok(link)
    }

    /// Switches the link off, whoever owns it: for administrators. Done already: nothing happens.
    pub async fn disable(&self, key: &str) -> Result<Link, LinkError> {
        self.switch(key, LinkState::Disabled).await
    }

    /// Switches the link on again: for administrators. Done already: nothing happens.
    pub async fn enable(&self, key: &str) -> Result<Link, LinkError> {
        self.switch(key, LinkState::Active).await
    }

    async fn switch(&self, key: &str, state: LinkState) -> Result<Link, LinkError> {
        let decide = |current: &Link, now| {
            // Restored, a deleted link is as it was switched last; until when it can be is not touched.
            let (wanted, updated_at) = match current.state.is_deleted() {
                true => (state.deleted(), current.updated_at),
                false => (state, now),
            };
            if current.state == wanted {
                return Ok(Change::Nothing);
            }
            Ok(Change::Update(Box::new(Link {
                state: wanted,
                updated_at,
                ..current.clone()
            })))
        };
        self.change(Who::Anybody, key, None, decide).await
    }

    /// Decides by the link as it is and does it at that revision: everything about it, its owner too, may be another
    /// by then.
    async fn change(
        &self,
        who: Who,
        key: &str,
        seen: Option<Revision>,
        decide: impl Fn(&Link, UnixMillis) -> Result<Change, LinkError>,
    ) -> Result<Link, LinkError> {
        let id = self.parse_id(key)?;
        let mut last = Revision::default();
        for _ in 0..CHANGE_TRIES_MAX {
            let current = self.get_owned_at(who, &id, seen).await?;
            let now = self.clock.now();
            let seen_now = current.revision;
            let (link, reply) = match decide(&current, now)? {
                Change::Update(wanted) => {
                    let reply = self.update_at(Link::clone(&wanted), seen_now).await?;
                    (*wanted, reply)
                }
                Change::Erase => (current, self.delete_at(id.clone(), seen_now, now).await?),
                Change::Nothing => return Ok(current),
            };
            match reply {
                ChangeReply::Changed(change) => {
                    let revision = change.revision;
                    return Ok(Link { revision, ..link });
                }
                ChangeReply::Stale(revision) if seen.is_some() => {
                    return Err(LinkError::Stale(revision));
                }
                ChangeReply::Stale(revision) => last = revision,
                ChangeReply::Absent => return Err(LinkError::NotFound),
            }
        }
        Err(LinkError::Stale(last))
    }

    async fn update_at(&self, wanted: Link, seen: Revision) -> PortResult<ChangeReply> {
        self.write_and_invalidate(
            |_| WriteOutcome::Changed,
            |store| async move {
                let change = change_after(&wanted.id, seen);
                (vec![change], store.update_at(wanted, seen).await)
            },
        )
        .await
    }

    pub(crate) async fn delete_at(
        &self,
        id: LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        self.write_and_invalidate(
            |_| WriteOutcome::Changed,
            |store| async move {
                let reply = store.delete_at(&id, seen, now).await;
                (vec![change_after(&id, seen)], reply)
            },
        )
        .await
    }

    fn parse_id(&self, key: &str) -> Result<LinkId, LinkError> {
        let link = LinkRef {
            domain: self.settings.domain,
            key,
        };
        link.to_id().ok_or(LinkError::NotFound)
    }

    async fn get_owned(&self, who: Who, id: &LinkId) -> Result<Link, LinkError> {
        let link = self.ports.store.get(id).await?.ok_or(LinkError::NotFound)?;
        if link.state.is_kept() && who.owns(&link) {
            Ok(link)
        } else {
            Err(LinkError::NotFound)
        }
    }

    async fn get_owned_at(
        &self,
        who: Who,
        id: &LinkId,
        seen: Option<Revision>,
    ) -> Result<Link, LinkError> {
        let link = self.get_owned(who, id).await?;
        match seen {
            Some(seen) if seen != link.revision => Err(LinkError::Stale(link.revision)),
            _ => Ok(link),
        }
    }
}

/// What a write at this revision leaves, if it happens.
fn change_after(id: &LinkId, seen: Revision) -> LinkChange {
    LinkChange {
        id: id.clone(),
        revision: seen.edited(),
    }
}

fn refuse_deleted(link: &Link) -> Result<(), LinkError> {
    match link.state.is_deleted() {
        true => Err(LinkError::Deleted),
        false => Ok(()),
    }
}

fn invalid(field: Field, code: &'static str, message: String) -> LinkError {
    LinkError::Invalid(vec![FieldError::new(field, code, message)])
}
