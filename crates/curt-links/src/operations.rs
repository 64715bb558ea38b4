//! What callers ask for, whatever interface they came by: quota, password hashing, the change itself, its audit entry.

use std::fmt;
use std::net::IpAddr;

use curt_accounts::{AccountServices, CallerId, Decision, Origin, Place, Principal};
use curt_core::limits::{BULK_CHANGES_MAX, BULK_LINKS_MAX, PASSWORD_BYTES_MAX};
use curt_core::names::audit;
use curt_core::{ErrorKind, Field, FieldError, Link, LinkState, OwnerId, PortError, Revision};

use crate::Links;
use crate::admit::{EditLink, Expiry, NewLink};
use crate::create::{Created, IdempotencyKey, LinkCreator};
use crate::error::LinkError;
use crate::manage::{LinksChange, TagReplacement, Who};

/// Most links with a password in a bulk request: each is hard work.
const BULK_PASSWORDS_MAX: usize = 20;

/// Who asks.
#[derive(Clone, Copy)]
pub struct LinkCaller<'a> {
    /// `None`: without credentials.
    pub principal: Option<&'a Principal>,
    pub address: IpAddr,
}

/// A password as a client sent it. Its `Debug` form hides it.
pub struct NewPassword(pub String);

impl fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewPassword(…)")
    }
}

/// A link to be created, with its password not hashed yet.
#[derive(Debug, Default)]
pub struct LinkDraft {
    pub link: NewLink,
    pub password: Option<NewPassword>,
}

/// Changes to a link, with its new password not hashed yet; `Some(None)` removes the password.
#[derive(Debug, Default)]
pub struct LinkEdit {
    pub link: EditLink,
    pub password: Option<Option<NewPassword>>,
}

/// What callers do with links.
#[derive(Clone, Copy)]
pub struct LinkOperations<'a> {
    pub links: &'a Links,
    pub accounts: &'a AccountServices,
}

impl LinkOperations<'_> {
    /// Creates a link. Returns what is left of the caller's quota, too.
    pub async fn create_link(
        self,
        caller: LinkCaller<'_>,
        draft: LinkDraft,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<(Created, Option<Decision>), LinkError> {
        let quota = self.take_quota(caller, 1).await?;
        let passwords = usize::from(draft.password.is_some());
        let place = self.admit_passwords(caller, passwords).await?;
        let new = self.hash_draft(place.as_ref(), draft).await?;
        let created = self
            .links
            .create(caller.creator(), new, idempotency)
            .await?;
        Ok((created, quota))
    }

    /// Creates up to [`BULK_LINKS_MAX`] links. One outcome per draft, in order; an error only when nothing was done.
    pub async fn create_links(
        self,
        caller: LinkCaller<'_>,
        drafts: Vec<LinkDraft>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<(Vec<Result<Created, LinkError>>, Option<Decision>), LinkError> {
        if drafts.is_empty() || drafts.len() > BULK_LINKS_MAX {
            let message = format!("A bulk request makes 1 to {BULK_LINKS_MAX} links.");
            return Err(invalid(Field::Links, "count", message));
        }
        let quota = self.take_quota(caller, drafts.len() as u64).await?;
        let with_password = drafts.iter().filter(|draft| draft.password.is_some());
        let passwords = with_password.count();
        if passwords > BULK_PASSWORDS_MAX {
            let message =
                format!("A bulk request makes at most {BULK_PASSWORDS_MAX} links with a password.");
            return Err(invalid(Field::Links, "password_count", message));
        }
        let place = self.admit_passwords(caller, passwords).await?;
        let mut new = Vec::with_capacity(drafts.len());
        for (at, draft) in drafts.into_iter().enumerate() {
            let hashed = self.hash_draft(place.as_ref(), draft).await;
            new.push(hashed.map_err(|error| match error {
                LinkError::Invalid(mistakes) => LinkError::InvalidItem { at, mistakes },
                other => other,
            })?);
        }
        let creating = self.links.create_many(caller.creator(), new, idempotency);
        Ok((creating.await?, quota))
    }

    /// Changes a link of the caller's, as [`Links::edit`].
    pub async fn edit_link(
        self,
        caller: LinkCaller<'_>,
        who: Who,
        key: &str,
        seen: Option<Revision>,
        edit: LinkEdit,
    ) -> Result<Link, LinkError> {
        let changes_access = edit.link.visibility.is_some() || edit.password.is_some();
        let password_hash = match edit.password {
            Some(Some(password)) => {
                let place = self.admit_passwords(caller, 1).await?;
                Some(Some(self.hash(place.as_ref(), &password).await?))
            }
            Some(None) => Some(None),
            None => None,
        };
        let edit = EditLink {
            password_hash,
            ..edit.link
        };
        let link = self.links.edit(who, key, seen, edit).await?;
        if changes_access {
            let subject = format!("{key} {}", link.visibility.name());
            self.record(caller, audit::VISIBILITY_CHANGED, &subject)
                .await;
        }
        Ok(link)
    }

    /// Switches a link off or on, whoever owns it: for administrators.
    pub async fn switch_link(
        self,
        caller: LinkCaller<'_>,
        key: &str,
        state: LinkState,
    ) -> Result<Link, LinkError> {
        let (link, action) = if state == LinkState::Disabled {
            (self.links.disable(key).await?, audit::LINK_DISABLED)
        } else {
            (self.links.enable(key).await?, audit::LINK_ENABLED)
        };
        self.record(caller, action, key).await;
        Ok(link)
    }

    /// Changes up to [`BULK_CHANGES_MAX`] links of the caller's. One outcome per key, in order; an error only when nothing
    /// was done. Switching links is for administrators: the caller of this checks that.
    pub async fn change_links(
        self,
        caller: LinkCaller<'_>,
        who: Who,
        keys: &[String],
        change: &LinksChange,
    ) -> Result<Vec<Result<(), LinkError>>, LinkError> {
        if keys.is_empty() || keys.len() > BULK_CHANGES_MAX {
            let message = format!("A bulk request changes 1 to {BULK_CHANGES_MAX} links.");
            return Err(invalid(Field::Links, "count", message));
        }
        let outcomes = self.links.change_many(who, keys, change).await;
        let done = keys.iter().zip(&outcomes);
        let done: Vec<&str> = done
            .filter(|(_, outcome)| outcome.is_ok())
            .map(|(key, _)| key.as_str())
            .collect();
        if !done.is_empty() {
            self.record_change(caller, change, &done).await;
        }
        Ok(outcomes)
    }

    /// Deletes a link of the caller's, as [`Links::delete`].
    pub async fn delete_link(
        self,
        caller: LinkCaller<'_>,
        who: Who,
        key: &str,
        seen: Option<Revision>,
    ) -> Result<(), LinkError> {
        self.links.delete(who, key, seen).await?;
        self.record_change(caller, &LinksChange::Delete, &[key])
            .await;
        Ok(())
    }

    /// Restores a link of the caller's, as [`Links::restore`].
    pub async fn restore_link(
        self,
        caller: LinkCaller<'_>,
        who: Who,
        key: &str,
        seen: Option<Revision>,
        expires_at: Option<Expiry>,
    ) -> Result<Link, LinkError> {
        let link = self.links.restore(who, key, seen, expires_at).await?;
        self.record_change(caller, &LinksChange::Restore, &[key])
            .await;
        Ok(link)
    }

    /// Tells the audit log, in the same words whether one link was changed or many.
    async fn record_change(self, caller: LinkCaller<'_>, change: &LinksChange, keys: &[&str]) {
        let (action, what) = match change {
            LinksChange::Delete => (audit::LINKS_DELETED, "deleted"),
            LinksChange::Tag(_) => (audit::LINKS_CHANGED, "tagged"),
            LinksChange::Expire(_) => (audit::LINKS_CHANGED, "given an end"),
            LinksChange::Restore => (audit::LINKS_CHANGED, "restored"),
            LinksChange::Switch(LinkState::Disabled) => (audit::LINK_DISABLED, "switched off"),
            LinksChange::Switch(_) => (audit::LINK_ENABLED, "switched on"),
        };
        let subject = format!("{} {what}: {}", keys.len(), keys.join(" "));
        self.record(caller, action, &subject).await;
    }

    /// Renames, merges or removes a tag of the caller's links, as [`Links::replace_tag`].
    pub async fn replace_tag(
        self,
        caller: LinkCaller<'_>,
        owner: OwnerId,
        tag: &str,
        with: Option<&str>,
    ) -> Result<TagReplacement, LinkError> {
        let done = self.links.replace_tag(owner, tag, with).await?;
        if done.changed > 0 {
            let subject = format!("{tag} → {} ({} links)", with.unwrap_or("–"), done.changed);
            self.record(caller, audit::TAG_REPLACED, &subject).await;
        }
        Ok(done)
    }

    async fn take_quota(
        self,
        caller: LinkCaller<'_>,
        count: u64,
    ) -> Result<Option<Decision>, LinkError> {
        let limits = &self.accounts.limits;
        grant(
            limits
                .creations(caller.principal, caller.address, count)
                .await?,
        )
    }

    /// Counts so many passwords towards what the caller may set, before any of them is hashed. A request that finds no
    /// place costs nothing of it.
    async fn admit_passwords(
        self,
        caller: LinkCaller<'_>,
        count: usize,
    ) -> Result<Option<Place>, LinkError> {
        if count == 0 {
            return Ok(None);
        }
        let LinkCaller { principal, address } = caller;
        let caller = CallerId::of(principal, address);
        let place = self.accounts.link_passwords.admit(caller)?;
        let limits = &self.accounts.limits;
        grant(
            limits
                .password_links(principal, address, count as u64)
                .await?,
        )?;
        Ok(Some(place))
    }

    async fn hash_draft(
        self,
        place: Option<&Place>,
        draft: LinkDraft,
    ) -> Result<NewLink, LinkError> {
        let password_hash = match &draft.password {
            Some(password) => Some(self.hash(place, password).await?),
            None => None,
        };
        Ok(NewLink {
            password_hash,
            ..draft.link
        })
    }

    async fn hash(
        self,
        place: Option<&Place>,
        NewPassword(password): &NewPassword,
    ) -> Result<Box<str>, LinkError> {
        if !(1..=PASSWORD_BYTES_MAX).contains(&password.len()) {
            let message = format!("A link's password has 1 to {PASSWORD_BYTES_MAX} bytes.");
            return Err(invalid(Field::Password, "length", message));
        }
        let Some(place) = place else {
            let detail = "a password was not counted before it was hashed";
            return Err(PortError::new(ErrorKind::Bug, "links", "hash a password", detail).into());
        };
        Ok(self
            .accounts
            .link_passwords
            .hash_in(place, password)
            .await?)
    }

    async fn record(self, caller: LinkCaller<'_>, action: &'static str, subject: &str) {
        let origin = Origin {
            actor: caller.principal.map(|principal| principal.user),
            address: Some(caller.address),
        };
        self.accounts.audit.record(origin, action, subject).await;
    }
}

impl LinkCaller<'_> {
    /// Returns what a new link remembers of its creator.
    fn creator(self) -> LinkCreator {
        LinkCreator {
            owner: self
                .principal
                .map_or(OwnerId::ANONYMOUS, |known| known.user),
            made_with: self.principal.and_then(Principal::made_with),
        }
    }
}

/// Returns what is left of a limit, or the refusal.
fn grant(decision: Option<Decision>) -> Result<Option<Decision>, LinkError> {
    match decision {
        Some(decision) if !decision.granted => Err(LinkError::QuotaExceeded(decision)),
        decision => Ok(decision),
    }
}

fn invalid(field: Field, code: &'static str, message: String) -> LinkError {
    LinkError::Invalid(vec![FieldError::new(field, code, message)])
}
