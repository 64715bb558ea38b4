//! The door: what may become a link. Everything behind it is valid by type.
//!
//! A request is looked at as a whole, so that a person who made three mistakes hears of three.

mod alias;
mod target;
mod text;
mod times;

use curt_core::clock::UnixMillis;
use curt_core::{Key, Link, RedirectStatus, Target};

pub use self::target::{OwnHost, OwnHostError};
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
}

/// One mistake in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field as the request names it.
    pub field: &'static str,
    /// Stable, for programs.
    pub code: &'static str,
    /// One sentence, for people.
    pub message: String,
}

impl FieldError {
    pub(crate) fn new(field: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            field,
            code,
            message: message.into(),
        }
    }
}

/// A link that passed the door and has no key yet.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) target: Target,
    pub(crate) alias: Option<Key>,
    pub(crate) title: Option<Box<str>>,
    pub(crate) tags: Vec<Box<str>>,
    pub(crate) expires_at: Option<UnixMillis>,
    pub(crate) valid_since: Option<UnixMillis>,
    pub(crate) status: RedirectStatus,
    pub(crate) forward_query: bool,
}

pub(crate) fn new_link(
    settings: &LinkSettings,
    new: NewLink,
    now: UnixMillis,
) -> Result<Draft, Vec<FieldError>> {
    let mut mistakes = Mistakes::default();
    let target = mistakes.note(target::admit(settings, &new.target));
    let alias = mistakes.note(new.alias.as_deref().map(alias::admit).transpose());
    let title = mistakes.note(new.title.as_deref().map(text::title).transpose());
    let tags = mistakes.note_all(text::tags(&new.tags));
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
    match (target, alias, title, tags, valid_since, expires_at) {
        (
            Some(target),
            Some(alias),
            Some(title),
            Some(tags),
            Some(valid_since),
            Some(expires_at),
        ) if mistakes.0.is_empty() => Ok(Draft {
            target,
            alias,
            title: title.flatten(),
            tags,
            expires_at,
            valid_since,
            status: new.status.unwrap_or(settings.default_status),
            forward_query: new.forward_query.unwrap_or(settings.default_forward_query),
        }),
        _ => Err(mistakes.0),
    }
}

/// The link as it would be after the edit.
pub(crate) fn edit(
    settings: &LinkSettings,
    current: &Link,
    edit: &EditLink,
    now: UnixMillis,
) -> Result<Link, Vec<FieldError>> {
    let mut link = current.clone();
    let mut mistakes = Mistakes::default();
    if let Some(text) = &edit.target
        && let Some(target) = mistakes.note(target::admit(settings, text))
    {
        link.target = target;
    }
    if let Some(title) = &edit.title
        && let Some(title) = mistakes.note(title.as_deref().map(text::title).transpose())
    {
        link.title = title.flatten();
    }
    if let Some(tags) = &edit.tags
        && let Some(tags) = mistakes.note_all(text::tags(tags))
    {
        link.tags = tags;
    }
    edit_times(settings, &mut link, edit, now, &mut mistakes);
    link.status = edit.status.unwrap_or(link.status);
    link.forward_query = edit.forward_query.unwrap_or(link.forward_query);
    link.updated_at = now;
    if mistakes.0.is_empty() {
        Ok(link)
    } else {
        Err(mistakes.0)
    }
}

fn edit_times(
    settings: &LinkSettings,
    link: &mut Link,
    edit: &EditLink,
    now: UnixMillis,
    mistakes: &mut Mistakes,
) {
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

/// Collects mistakes while the look goes on.
#[derive(Default)]
struct Mistakes(Vec<FieldError>);

impl Mistakes {
    fn note<T>(&mut self, looked_at: Result<T, FieldError>) -> Option<T> {
        looked_at.map_err(|mistake| self.0.push(mistake)).ok()
    }

    fn note_all<T>(&mut self, looked_at: Result<T, Vec<FieldError>>) -> Option<T> {
        looked_at.map_err(|mistakes| self.0.extend(mistakes)).ok()
    }
}
