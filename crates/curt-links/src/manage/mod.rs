//! What an owner does with links: read, list, edit, delete. Somebody else's link is answered like one that is not
//! there.

use curt_core::limits::{PAGE_LINKS_MAX, SEARCH_BYTES_MAX};
use curt_core::ports::{ChangeReply, ListPage, ListQuery};
use curt_core::{ErrorKind, Link, LinkId, LinkRef, LinkState, OwnerId, Revision};

use crate::Links;
use crate::admit::{self, EditLink, FieldError};
use crate::error::LinkError;

/// How often a change without a named revision is tried against others' changes.
const CHANGE_TRIES_MAX: usize = 16;

impl Links {
    pub async fn get(&self, owner: OwnerId, key: &str) -> Result<Link, LinkError> {
        let id = self.id(key)?;
        self.own(owner, &id).await
    }

    pub async fn list(&self, mut query: ListQuery) -> Result<ListPage, LinkError> {
        if query
            .search
            .as_ref()
            .is_some_and(|text| text.len() > SEARCH_BYTES_MAX)
        {
            return Err(invalid(
                "search",
                "search_too_long",
                format!("A search has at most {SEARCH_BYTES_MAX} bytes."),
            ));
        }
        query.limit = query.limit.clamp(1, PAGE_LINKS_MAX);
        let has_cursor = query.cursor.is_some();
        match self.store.list(&query).await {
            Ok(page) => Ok(page),
            Err(failure) if has_cursor && failure.kind == ErrorKind::Invalid => Err(invalid(
                "cursor",
                "cursor_invalid",
                "The cursor is not one of this list: start from the first page.".into(),
            )),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Changes the link. With `seen`, only if it is still at that revision.
    pub async fn edit(
        &self,
        owner: OwnerId,
        key: &str,
        seen: Option<Revision>,
        edit: EditLink,
    ) -> Result<Link, LinkError> {
        let id = self.id(key)?;
        let mut last = Revision::default();
        for _ in 0..CHANGE_TRIES_MAX {
            let current = self.own_at(owner, &id, seen).await?;
            let wanted = admit::edit(&self.settings, &current, &edit, self.clock.now())
                .map_err(LinkError::Invalid)?;
            let changed = vec![id.clone()];
            let reply = self
                .written(
                    |store| async move { (changed, store.update(wanted, current.revision).await) },
                )
                .await;
            match reply? {
                ChangeReply::Changed(link) => {
                    self.metrics.edited.inc();
                    return Ok(*link);
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

    /// Turns the link into a tombstone. With `seen`, only if it is still at that revision.
    pub async fn delete(
        &self,
        owner: OwnerId,
        key: &str,
        seen: Option<Revision>,
    ) -> Result<(), LinkError> {
        let id = self.id(key)?;
        let mut last = Revision::default();
        for _ in 0..CHANGE_TRIES_MAX {
            // By the revision that was judged: the key may have got another owner since.
            let current = self.own_at(owner, &id, seen).await?;
            let (gone, now) = (id.clone(), self.clock.now());
            let reply = self
                .written(|store| async move {
                    let reply = store.delete(&gone, Some(current.revision), now).await;
                    (vec![gone], reply)
                })
                .await;
            match reply? {
                ChangeReply::Changed(_) => {
                    self.metrics.deleted.inc();
                    return Ok(());
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

    fn id(&self, key: &str) -> Result<LinkId, LinkError> {
        let link = LinkRef {
            domain: self.settings.domain,
            key,
        };
        link.to_id().ok_or(LinkError::NotFound)
    }

    async fn own(&self, owner: OwnerId, id: &LinkId) -> Result<Link, LinkError> {
        // Links made without credentials belong to nobody who could show any.
        if owner == OwnerId::ANONYMOUS {
            return Err(LinkError::NotFound);
        }
        let link = self.store.get(id).await?.ok_or(LinkError::NotFound)?;
        let is_shown = matches!(link.state, LinkState::Active | LinkState::Disabled);
        if is_shown && link.owner == owner {
            Ok(link)
        } else {
            Err(LinkError::NotFound)
        }
    }

    async fn own_at(
        &self,
        owner: OwnerId,
        id: &LinkId,
        seen: Option<Revision>,
    ) -> Result<Link, LinkError> {
        let link = self.own(owner, id).await?;
        match seen {
            Some(seen) if seen != link.revision => Err(LinkError::Stale(link.revision)),
            _ => Ok(link),
        }
    }
}

fn invalid(field: &'static str, code: &'static str, message: String) -> LinkError {
    LinkError::Invalid(vec![FieldError::new(field, code, message)])
}
