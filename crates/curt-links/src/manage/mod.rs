//! What people do with links that exist: read, list, edit, delete, and for administrators switch off and on. Somebody
//! else's link is answered like one that is not there.

mod leaving;

use curt_accounts::Principal;
use curt_core::limits::{PAGE_LINKS_MAX, SEARCH_BYTES_MAX};
use curt_core::ports::{ChangeReply, LinkChange, ListPage, ListQuery};
use curt_core::{
    ErrorKind, Field, FieldError, Link, LinkId, LinkRef, LinkState, OwnerId, PortResult, Revision,
    Scope, UnixMillis,
};

use crate::Links;
use crate::admit::{self, EditLink};
use crate::error::LinkError;

pub use self::leaving::LinksOfLeaver;

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
    Delete,
    /// It is already as wanted.
    Nothing,
}

impl Links {
    pub async fn get(&self, who: Who, key: &str) -> Result<Link, LinkError> {
        let id = self.parse_id(key)?;
        self.get_owned(who, &id).await
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

    /// Changes the link. With `seen`, only if it is still at that revision. A link that is switched off stays so.
    pub async fn edit(
        &self,
        who: Who,
        key: &str,
        seen: Option<Revision>,
        edit: EditLink,
    ) -> Result<Link, LinkError> {
        let blocklist = self.policy.blocklist();
        let decide = |current: &Link, now| {
            let rules = self.admission_rules(&blocklist, now);
            let wanted = admit::edit(&rules, current, &edit).map_err(LinkError::Invalid)?;
            Ok(Change::Update(Box::new(wanted)))
        };
        let link = self.change(who, key, seen, decide).await?;
        self.metrics.edited.inc();
        Ok(link)
    }

    /// Turns the link into a tombstone. With `seen`, only if it is still at that revision.
    pub async fn delete(
        &self,
        who: Who,
        key: &str,
        seen: Option<Revision>,
    ) -> Result<(), LinkError> {
        self.change(who, key, seen, |_, _| Ok(Change::Delete))
            .await?;
        self.metrics.deleted.inc();
        Ok(())
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
            if current.state == state {
                return Ok(Change::Nothing);
            }
            Ok(Change::Update(Box::new(Link {
                state,
                updated_at: now,
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
                Change::Delete => (current, self.delete_at(id.clone(), seen_now, now).await?),
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
        self.write_and_invalidate(|store| async move {
            let change = change_after(&wanted.id, seen);
            (vec![change], store.update_at(wanted, seen).await)
        })
        .await
    }

    pub(crate) async fn delete_at(
        &self,
        id: LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        self.write_and_invalidate(|store| async move {
            let reply = store.delete_at(&id, seen, now).await;
            (vec![change_after(&id, seen)], reply)
        })
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
        let is_shown = matches!(link.state, LinkState::Active | LinkState::Disabled);
        if is_shown && who.owns(&link) {
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

fn invalid(field: Field, code: &'static str, message: String) -> LinkError {
    LinkError::Invalid(vec![FieldError::new(field, code, message)])
}
