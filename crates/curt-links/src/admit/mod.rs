//! Admission: what may become a link. Everything behind it is valid by type.
//!
//! A request is looked at as a whole, so that a person who made three mistakes hears of three.

mod access;
mod alias;
mod own_host;
mod target;
mod text;
mod times;

use curt_core::clock::UnixMillis;
use curt_core::{FieldError, FieldErrors, Key, Link, OwnerId, RedirectStatus, Target, Visibility};

use self::access::Access;
pub use self::own_host::{OwnHost, OwnHostError};
pub(crate) use self::text::parse_tags;
use crate::blocklist::Blocklist;
use crate::settings::LinkSettings;

/// When a link is to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// After the configured time.
    #[default]
    Default,
    Never,
    At(UnixMillis),
}

/// What a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewLink {
    pub target: String,
    pub alias: Option<String>,
    pub title: Option<String>,
    pub tags: Vec<String>,
    pub expires_at: Expiry,
    pub valid_since: Option<UnixMillis>,
    pub status: Option<RedirectStatus>,
    pub forward_query: Option<bool>,
    pub visibility: Option<Visibility>,
    /// Hashed already: passwords do not come this far.
    pub password_hash: Option<Box<str>>,
    pub max_clicks: Option<u64>,
}

/// What a client wants changed: `None` leaves a field as it is, `Some(None)` empties it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditLink {
    pub target: Option<String>,
    pub title: Option<Option<String>>,
    pub tags: Option<Vec<String>>,
    pub expires_at: Option<Expiry>,
    pub valid_since: Option<Option<UnixMillis>>,
    pub status: Option<RedirectStatus>,
    pub forward_query: Option<bool>,
    /// Another visibility than `Password` drops the link's password.
    pub visibility: Option<Visibility>,
    pub password_hash: Option<Option<Box<str>>>,
    /// Visits that were taken stay taken: a raised limit leaves the difference.
    pub max_clicks: Option<Option<u64>>,
}

/// A link that was admitted and has no key yet.
#[derive(Clone, Debug)]
pub(crate) struct AdmittedLink {
    pub(crate) target: Target,
    pub(crate) alias: Option<Key>,
    pub(crate) title: Option<Box<str>>,
    pub(crate) tags: Vec<Box<str>>,
    pub(crate) expires_at: Option<UnixMillis>,
    pub(crate) valid_since: Option<UnixMillis>,
    pub(crate) access: Access,
    pub(crate) forward_query: bool,
}

/// What requests are judged by.
pub(crate) struct AdmissionRules<'a> {
    pub(crate) settings: &'a LinkSettings,
    pub(crate) blocklist: &'a Blocklist,
    /// Where this server listens, once it does.
    pub(crate) listener: Option<&'a OwnHost>,
    pub(crate) now: UnixMillis,
}

pub(crate) fn new_link(
    rules: &AdmissionRules<'_>,
    owner: OwnerId,
    new: NewLink,
) -> Result<AdmittedLink, Vec<FieldError>> {
    let AdmissionRules { settings, now, .. } = *rules;
    let mut mistakes = FieldErrors::default();
    let alias = |text| alias::admit(text, &settings.keys);
    let target = mistakes.note(target::admit(rules, &new.target));
    let alias = mistakes.note(new.alias.as_deref().map(alias).transpose());
    let title = mistakes.note(new.title.as_deref().map(text::parse_title).transpose());
    let tags = mistakes.note_all(text::parse_tags(&new.tags));
    let valid_since = mistakes.note(times::valid_since(new.valid_since));
    let expires_at = mistakes.note(times::expiry(
        settings,
        new.expires_at,
        valid_since.flatten(),
        now,
    ));
    if let (Some(valid_since), Some(expires_at)) = (valid_since, expires_at) {
        mistakes.note(times::in_order(valid_since, expires_at));
    }
    let access = mistakes.note_all(access::admit(new_access(settings, &new), owner));
    match (target, alias, title, tags, valid_since, expires_at, access) {
        (
            Some(target),
            Some(alias),
            Some(title),
            Some(tags),
            Some(valid_since),
            Some(expires_at),
            Some(access),
        ) if mistakes.is_empty() => Ok(AdmittedLink {
            target,
            alias,
            title: title.flatten(),
            tags,
            expires_at,
            valid_since,
            access,
            forward_query: new.forward_query.unwrap_or(settings.default_forward_query),
        }),
        _ => Err(mistakes.into_vec()),
    }
}

fn new_access(settings: &LinkSettings, new: &NewLink) -> Access {
    let mut access = Access {
        visibility: new.visibility.unwrap_or_default(),
        password_hash: new.password_hash.clone(),
        max_clicks: new.max_clicks,
        status: settings.default_status,
    };
    access.status = new
        .status
        .unwrap_or_else(|| access.default_status(settings.default_status));
    access
}

/// The link as it would be after the edit.
pub(crate) fn edit(
    rules: &AdmissionRules<'_>,
    current: &Link,
    edit: &EditLink,
) -> Result<Link, Vec<FieldError>> {
    let mut link = current.clone();
    let mut mistakes = FieldErrors::default();
    if let Some(text) = &edit.target
        && let Some(target) = mistakes.note(target::admit(rules, text))
    {
        link.target = target;
    }
    if let Some(title) = &edit.title
        && let Some(title) = mistakes.note(title.as_deref().map(text::parse_title).transpose())
    {
        link.title = title.flatten();
    }
    if let Some(tags) = &edit.tags
        && let Some(tags) = mistakes.note_all(text::parse_tags(tags))
    {
        link.tags = tags;
    }
    edit_times(rules, &mut link, edit, &mut mistakes);
    edit_access(&mut link, edit, &mut mistakes);
    link.forward_query = edit.forward_query.unwrap_or(link.forward_query);
    link.updated_at = rules.now;
    if mistakes.is_empty() {
        Ok(link)
    } else {
        Err(mistakes.into_vec())
    }
}

fn edit_times(
    rules: &AdmissionRules<'_>,
    link: &mut Link,
    edit: &EditLink,
    mistakes: &mut FieldErrors,
) {
    let AdmissionRules { settings, now, .. } = *rules;
    if let Some(at) = edit.valid_since
        && let Some(at) = mistakes.note(times::valid_since(at))
    {
        link.valid_since = at;
    }
    if let Some(expiry) = edit.expires_at
        && let Some(at) = mistakes.note(times::expiry(settings, expiry, link.valid_since, now))
    {
        link.expires_at = at;
    }
    if edit.valid_since.is_some() || edit.expires_at.is_some() {
        mistakes.note(times::in_order(link.valid_since, link.expires_at));
    }
}

fn edit_access(link: &mut Link, edit: &EditLink, mistakes: &mut FieldErrors) {
    let visibility = edit.visibility.unwrap_or(link.visibility);
    let held = link
        .password_hash
        .take()
        .filter(|_| visibility == Visibility::Password);
    let wanted = Access {
        visibility,
        password_hash: edit.password_hash.clone().unwrap_or(held),
        max_clicks: edit.max_clicks.unwrap_or(link.max_clicks),
        status: edit.status.unwrap_or(link.status),
    };
    if let Some(access) = mistakes.note_all(access::admit(wanted, link.owner)) {
        link.visibility = access.visibility;
        link.password_hash = access.password_hash;
        link.max_clicks = access.max_clicks;
        link.status = access.status;
    }
}
