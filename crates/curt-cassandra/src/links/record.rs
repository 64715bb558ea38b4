//! A link as a row of the table `links`.

use curt_adapter_kit::wide_column::Mark;
use curt_adapter_kit::wide_column::links::{
    LinkPut, PutLink, RELEASED, ReleasedCounts, Stored, StoredLink,
};
use curt_core::account::ApiKeyNumber;
use curt_core::ports::RequestToken;
use curt_core::{
    DomainId, Key, KeyOrigin, Link, LinkId, LinkState, OwnerId, PortResult, RedirectStatus,
    Revision, Target, UnixMillis, Visibility,
};
use scylla::value::MaybeUnset;
use scylla::{DeserializeRow, SerializeRow};

use crate::failure::corrupt;

/// A row as it is read.
#[derive(Clone, Debug, DeserializeRow)]
pub(super) struct LinkRow {
    domain: i64,
    key: String,
    target: Option<String>,
    owner: Option<i64>,
    made_with: Option<i64>,
    pub(super) state: i8,
    origin: Option<i8>,
    generation: i64,
    version: i64,
    created_at: Option<i64>,
    updated_at: Option<i64>,
    expires_at: Option<i64>,
    valid_since: Option<i64>,
    max_clicks: Option<i64>,
    visibility: Option<i8>,
    password_hash: Option<String>,
    status: Option<i16>,
    was_permanent: Option<bool>,
    forward_query: Option<bool>,
    title: Option<String>,
    tags: Option<Vec<String>>,
    spent: Option<i64>,
    request_token: Option<Vec<u8>>,
    change_mark: Option<Vec<u8>>,
    spend_mark: Option<Vec<u8>>,
    released: Option<ReleasedCounts>,
}

impl LinkRow {
    pub(super) fn into_stored(self, op: &'static str) -> PortResult<Stored> {
        if self.state == RELEASED {
            return Ok(Stored::Released {
                generation: small(op, self.generation)?,
                by: mark_of(self.change_mark),
                released: self.released.unwrap_or_default(),
            });
        }
        Ok(Stored::Link(Box::new(StoredLink {
            was_permanent: self.was_permanent.unwrap_or(false),
            spent: self.spent.unwrap_or(0).cast_unsigned(),
            token: mark_of(self.request_token.clone()).map(|mark| RequestToken(mark.0)),
            changed_by: mark_of(self.change_mark.clone()),
            spent_by: mark_of(self.spend_mark.clone()),
            released: self.released.clone().unwrap_or_default(),
            link: self.into_link(op)?,
        })))
    }

    fn into_link(self, op: &'static str) -> PortResult<Link> {
        let created_at = UnixMillis(required(op, self.created_at, "created_at")?);
        let target = required(op, self.target, "target")?;
        let key = Key::parse(&self.key).map_err(|error| corrupt(op, error))?;
        let status = self.status.map(i16::cast_unsigned);
        Ok(Link {
            id: LinkId::new(DomainId(small(op, self.domain)?), key),
            target: Target::from_serialised(target).map_err(|error| corrupt(op, error))?,
            owner: OwnerId(required(op, self.owner, "owner")?.cast_unsigned()),
            made_with: match self.made_with {
                Some(number) => Some(ApiKeyNumber(small(op, number)?)),
                None => None,
            },
            state: word(op, Some(self.state), LinkState::from_stored)?,
            revision: Revision {
                generation: small(op, self.generation)?,
                version: small(op, self.version)?,
            },
            origin: word(op, self.origin, KeyOrigin::from_stored)?,
            created_at,
            updated_at: self.updated_at.map_or(created_at, UnixMillis),
            expires_at: self.expires_at.map(UnixMillis),
            valid_since: self.valid_since.map(UnixMillis),
            max_clicks: self.max_clicks.map(i64::cast_unsigned),
            visibility: word(op, self.visibility, Visibility::from_stored)?,
            password_hash: self.password_hash.map(Into::into),
            status: match status {
                None => RedirectStatus::default(),
                Some(code) => RedirectStatus::from_code(code).ok_or_else(|| corrupt(op, code))?,
            },
            forward_query: self.forward_query.unwrap_or(false),
            title: self.title.map(Into::into),
            tags: self
                .tags
                .unwrap_or_default()
                .into_iter()
                .map(Into::into)
                .collect(),
        })
    }
}

/// A row as it is written. `Unset` columns stay as they are: a new row needs no tombstones for what it does not have.
#[derive(Debug, SerializeRow)]
pub(super) struct LinkWrite<'a> {
    namespace: &'a str,
    domain: i64,
    key: &'a str,
    target: &'a str,
    owner: i64,
    made_with: MaybeUnset<Option<i64>>,
    state: i8,
    origin: i8,
    generation: i64,
    version: i64,
    created_at: i64,
    updated_at: i64,
    expires_at: MaybeUnset<Option<i64>>,
    valid_since: MaybeUnset<Option<i64>>,
    max_clicks: MaybeUnset<Option<i64>>,
    visibility: i8,
    password_hash: MaybeUnset<Option<&'a str>>,
    status: MaybeUnset<Option<i16>>,
    was_permanent: bool,
    forward_query: bool,
    title: MaybeUnset<Option<&'a str>>,
    tags: MaybeUnset<Option<Vec<&'a str>>>,
    spent: i64,
    request_token: MaybeUnset<Option<&'a [u8]>>,
    change_mark: &'a [u8],
    released: MaybeUnset<Option<&'a ReleasedCounts>>,
}

impl<'a> LinkWrite<'a> {
    /// `is_over`: the key has a row already, of which nothing may be left.
    pub(super) fn new(
        namespace: &'a str,
        new: &'a LinkPut<'_>,
        put: &'a PutLink<'_>,
        is_over: bool,
    ) -> Self {
        let link = put.link;
        let tags: Vec<&str> = link.tags.iter().map(|tag| &**tag).collect();
        let status = link.status.code().cast_signed();
        let is_unusual = link.status != RedirectStatus::default();
        Self {
            namespace,
            domain: link.id.domain.0.into(),
            key: link.id.key.as_str(),
            target: link.target.as_str(),
            owner: link.owner.0.cast_signed(),
            made_with: maybe(link.made_with.map(|number| number.0.into()), is_over),
            state: link.state as i8,
            origin: link.origin as i8,
            generation: link.revision.generation.into(),
            version: link.revision.version.into(),
            created_at: link.created_at.0,
            updated_at: link.updated_at.0,
            expires_at: maybe(link.expires_at.map(|at| at.0), is_over),
            valid_since: maybe(link.valid_since.map(|at| at.0), is_over),
            max_clicks: maybe(link.max_clicks.map(u64::cast_signed), is_over),
            visibility: link.visibility as i8,
            password_hash: maybe(link.password_hash.as_deref(), is_over),
            status: maybe(is_unusual.then_some(status), is_over),
            was_permanent: put.was_permanent,
            forward_query: link.forward_query,
            title: maybe(link.title.as_deref(), is_over),
            tags: maybe((!tags.is_empty()).then_some(tags), is_over),
            spent: put.spent.cast_signed(),
            request_token: maybe(put.token.as_ref().map(|token| &token.0[..]), is_over),
            change_mark: &new.mark.0,
            released: maybe(Some(&new.released).filter(|all| !all.is_empty()), is_over),
        }
    }
}

/// The same in the place of a row, if that was left by these calls.
#[derive(Debug, SerializeRow)]
pub(super) struct LinkReplacement<'a> {
    #[scylla(flatten)]
    link: LinkWrite<'a>,
    seen_change: Option<&'a [u8]>,
    seen_spend: Option<&'a [u8]>,
}

impl<'a> LinkReplacement<'a> {
    pub(super) fn new(link: LinkWrite<'a>, writers: &'a LastWriters) -> Self {
        let (seen_change, seen_spend) = mark_columns(writers);
        Self {
            link,
            seen_change,
            seen_spend,
        }
    }
}

/// The row of a key whose link was released.
#[derive(Debug, SerializeRow)]
pub(super) struct ReleasedWrite<'a> {
    namespace: &'a str,
    domain: i64,
    key: &'a str,
    generation: i64,
    change_mark: &'a [u8],
    released: &'a ReleasedCounts,
}

impl<'a> ReleasedWrite<'a> {
    pub(super) fn new(namespace: &'a str, new: &'a LinkPut<'_>, generation: u32) -> Self {
        Self {
            namespace,
            domain: new.id.domain.0.into(),
            key: new.id.key.as_str(),
            generation: generation.into(),
            change_mark: &new.mark.0,
            released: &new.released,
        }
    }
}

/// The same in the place of a row, if that was left by these calls.
#[derive(Debug, SerializeRow)]
pub(super) struct ReleasedReplacement<'a> {
    #[scylla(flatten)]
    row: ReleasedWrite<'a>,
    seen_change: Option<&'a [u8]>,
    seen_spend: Option<&'a [u8]>,
}

impl<'a> ReleasedReplacement<'a> {
    pub(super) fn new(row: ReleasedWrite<'a>, writers: &'a LastWriters) -> Self {
        let (seen_change, seen_spend) = mark_columns(writers);
        Self {
            row,
            seen_change,
            seen_spend,
        }
    }
}

/// What a released row keeps, and what must be there for it.
#[derive(Debug, SerializeRow)]
pub(super) struct Release<'a> {
    pub(super) namespace: &'a str,
    pub(super) domain: i64,
    pub(super) key: &'a str,
    pub(super) released: &'a ReleasedCounts,
    pub(super) change_mark: &'a [u8],
    pub(super) seen_generation: i64,
    pub(super) seen_version: i64,
}

/// What an edit replaces, and what must be there for it.
#[derive(Debug, SerializeRow)]
pub(super) struct LinkEdit<'a> {
    namespace: &'a str,
    domain: i64,
    key: &'a str,
    target: &'a str,
    owner: i64,
    state: i8,
    version: i64,
    updated_at: i64,
    expires_at: Option<i64>,
    valid_since: Option<i64>,
    max_clicks: Option<i64>,
    visibility: i8,
    password_hash: Option<&'a str>,
    status: Option<i16>,
    was_permanent: bool,
    forward_query: bool,
    title: Option<&'a str>,
    tags: Option<Vec<&'a str>>,
    change_mark: &'a [u8],
    seen_generation: i64,
    seen_version: i64,
}

impl<'a> LinkEdit<'a> {
    /// From `before` to `after`, which has the next revision.
    pub(super) fn new(
        namespace: &'a str,
        before: &StoredLink,
        after: &'a Link,
        mark: &'a Mark,
    ) -> Self {
        let tags: Vec<&str> = after.tags.iter().map(|tag| &**tag).collect();
        let is_unusual = after.status != RedirectStatus::default();
        let seen = before.link.revision;
        Self {
            namespace,
            domain: after.id.domain.0.into(),
            key: after.id.key.as_str(),
            target: after.target.as_str(),
            owner: after.owner.0.cast_signed(),
            state: after.state as i8,
            version: after.revision.version.into(),
            updated_at: after.updated_at.0,
            expires_at: after.expires_at.map(|at| at.0),
            valid_since: after.valid_since.map(|at| at.0),
            max_clicks: after.max_clicks.map(u64::cast_signed),
            visibility: after.visibility as i8,
            password_hash: after.password_hash.as_deref(),
            status: is_unusual.then_some(after.status.code().cast_signed()),
            was_permanent: before.was_permanent || after.status.is_permanent(),
            forward_query: after.forward_query,
            title: after.title.as_deref(),
            tags: (!tags.is_empty()).then_some(tags),
            change_mark: &mark.0,
            seen_generation: seen.generation.into(),
            seen_version: seen.version.into(),
        }
    }
}

/// The calls that changed a row and took a click from it last.
type LastWriters = (Option<Mark>, Option<Mark>);

fn mark_columns((change, spend): &LastWriters) -> (Option<&[u8]>, Option<&[u8]>) {
    fn column(mark: &Mark) -> &[u8] {
        &mark.0
    }
    (change.as_ref().map(column), spend.as_ref().map(column))
}

/// A column that is left alone where it has no value, or cleared.
pub(super) fn maybe<T>(value: Option<T>, is_cleared: bool) -> MaybeUnset<Option<T>> {
    match (value, is_cleared) {
        (None, false) => MaybeUnset::Unset,
        (value, _) => MaybeUnset::Set(value),
    }
}

fn mark_of(bytes: Option<Vec<u8>>) -> Option<Mark> {
    bytes?.try_into().ok().map(Mark)
}

fn required<T>(op: &'static str, value: Option<T>, column: &'static str) -> PortResult<T> {
    value.ok_or_else(|| corrupt(op, format!("no {column}")))
}

pub(super) fn small(op: &'static str, number: i64) -> PortResult<u32> {
    u32::try_from(number).map_err(|_| corrupt(op, number))
}

fn word<T>(op: &'static str, number: Option<i8>, read: impl Fn(u8) -> Option<T>) -> PortResult<T> {
    let number = required(op, number, "number of a word")?;
    read(number.cast_unsigned()).ok_or_else(|| corrupt(op, number))
}
