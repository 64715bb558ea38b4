//! A link as a row of the table `links`.

use std::collections::BTreeMap;

use curt_core::account::ApiKeyNumber;
use curt_core::ports::{LinkChange, RequestToken};
use curt_core::{
    DomainId, Key, KeyOrigin, Link, LinkId, LinkState, OwnerId, PortResult, RedirectStatus,
    Revision, Target, UnixMillis, Visibility,
};
use scylla::value::MaybeUnset;
use scylla::{DeserializeRow, SerializeRow};

use crate::failure::corrupt;

/// The state of a row whose link was released: its generation is all that is left of it.
pub(super) const RELEASED: i8 = 100;

/// The key under which a row has the generation of the link before, beside its released links, where that does not follow
/// from its own; 0: there was none.
pub(super) const FORMER: i8 = -1;

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
    released: Option<BTreeMap<i8, i64>>,
}

/// A stored link with what is kept beside it.
#[derive(Clone, Debug)]
pub(super) struct StoredLink {
    pub(super) link: Link,
    /// Whether it ever had a permanent status: browsers may remember its answer for good.
    pub(super) was_permanent: bool,
    pub(super) spent: u64,
    pub(super) token: Option<Vec<u8>>,
    pub(super) change_mark: Option<Vec<u8>>,
    pub(super) spend_mark: Option<Vec<u8>>,
    /// Links that had the key before and were released, by origin.
    pub(super) released: BTreeMap<i8, i64>,
}

/// What a key's row says.
#[derive(Clone, Debug)]
pub(super) enum Stored {
    Link(Box<StoredLink>),
    /// The last link was released; the next one has a higher generation.
    Released {
        generation: u32,
        /// The call that released it.
        by: Option<Mark>,
        /// Links that had the key and were released, by origin.
        released: BTreeMap<i8, i64>,
    },
}

/// A random number that says which call wrote a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(pub(super) [u8; 16]);

impl Mark {
    pub(super) fn random() -> Self {
        Self(rand::random())
    }
}

impl StoredLink {
    pub(super) fn has_token(&self, token: RequestToken) -> bool {
        self.token.as_deref() == Some(&token.0)
    }

    /// Whether the latest change was made by the call with this mark.
    pub(super) fn was_changed_by(&self, mark: Mark) -> bool {
        self.change_mark.as_deref() == Some(&mark.0)
    }

    /// Whether the latest click was taken by the call with this mark.
    pub(super) fn was_spent_by(&self, mark: Mark) -> bool {
        self.spend_mark.as_deref() == Some(&mark.0)
    }

    pub(super) fn change(&self) -> LinkChange {
        LinkChange::of(&self.link)
    }

    pub(super) fn is_releasable(&self) -> bool {
        is_releasable(&self.link, self.was_permanent)
    }
}

/// Whether a link is a tombstone whose key may be used again. A permanent answer is remembered by browsers for good.
pub(super) fn is_releasable(link: &Link, was_permanent: bool) -> bool {
    link.state == LinkState::Tombstone && link.origin != KeyOrigin::Alias && !was_permanent
}

impl LinkRow {
    pub(super) fn into_stored(self, op: &'static str) -> PortResult<Stored> {
        if self.state == RELEASED {
            let generation = small(op, self.generation)?;
            let by = self.change_mark.and_then(|mark| mark.try_into().ok());
            return Ok(Stored::Released {
                generation,
                by: by.map(Mark),
                released: self.released.unwrap_or_default(),
            });
        }
        Ok(Stored::Link(Box::new(StoredLink {
            was_permanent: self.was_permanent.unwrap_or(false),
            spent: self.spent.unwrap_or(0).cast_unsigned(),
            token: self.request_token.clone(),
            change_mark: self.change_mark.clone(),
            spend_mark: self.spend_mark.clone(),
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
    pub(super) was_permanent: bool,
    forward_query: bool,
    title: MaybeUnset<Option<&'a str>>,
    tags: MaybeUnset<Option<Vec<&'a str>>>,
    pub(super) spent: i64,
    request_token: MaybeUnset<Option<&'a [u8]>>,
    change_mark: &'a [u8],
}

impl<'a> LinkWrite<'a> {
    /// The row of a link that is new under its key; `is_over_released` when the key has a row already.
    pub(super) fn new(
        namespace: &'a str,
        link: &'a Link,
        token: Option<&'a RequestToken>,
        mark: &'a Mark,
        is_over_released: bool,
    ) -> Self {
        fn maybe<T>(value: Option<T>, is_cleared: bool) -> MaybeUnset<Option<T>> {
            match (value, is_cleared) {
                (None, false) => MaybeUnset::Unset,
                (value, _) => MaybeUnset::Set(value),
            }
        }
        let tags: Vec<&str> = link.tags.iter().map(|tag| &**tag).collect();
        let status = link.status.code().cast_signed();
        let is_unusual = link.status != RedirectStatus::default();
        Self {
            namespace,
            domain: link.id.domain.0.into(),
            key: link.id.key.as_str(),
            target: link.target.as_str(),
            owner: link.owner.0.cast_signed(),
            made_with: maybe(
                link.made_with.map(|number| number.0.into()),
                is_over_released,
            ),
            state: link.state as i8,
            origin: link.origin as i8,
            generation: link.revision.generation.into(),
            version: link.revision.version.into(),
            created_at: link.created_at.0,
            updated_at: link.updated_at.0,
            expires_at: maybe(link.expires_at.map(|at| at.0), is_over_released),
            valid_since: maybe(link.valid_since.map(|at| at.0), is_over_released),
            max_clicks: maybe(link.max_clicks.map(u64::cast_signed), is_over_released),
            visibility: link.visibility as i8,
            password_hash: maybe(link.password_hash.as_deref(), is_over_released),
            status: maybe(is_unusual.then_some(status), is_over_released),
            was_permanent: link.status.is_permanent(),
            forward_query: link.forward_query,
            title: maybe(link.title.as_deref(), is_over_released),
            tags: maybe((!tags.is_empty()).then_some(tags), is_over_released),
            spent: 0,
            request_token: maybe(token.map(|token| &token.0[..]), is_over_released),
            change_mark: &mark.0,
        }
    }
}

/// The same in the row of a released link, if that has this generation.
#[derive(Debug, SerializeRow)]
pub(super) struct Rebirth<'a> {
    #[scylla(flatten)]
    pub(super) link: LinkWrite<'a>,
    pub(super) former_generation: i64,
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
