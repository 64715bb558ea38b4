//! The form of a link that redirects are served from: one allocation, ready to be sent, the same in the memory of a
//! process and in a shared cache. It has what resolving needs and no more: no password hash, no title.
//!
//! ```text
//! version   1 byte
//! flags     1 byte: status (bits 0, 1), forward query (2), begins later (3), tagged (4)
//! access    1 byte: state (bits 0, 1), visibility (2, 3), limited clicks (4)
//! expiry    6 bytes, all ones: never
//! load      6 bytes: when it began
//! lengths   1 byte for the key, 1 byte for the numbers
//! begin     6 bytes, only where the link begins after the load
//! numbers   varints: domain, generation, version, owner, number of the API key plus one
//! key
//! target    as it goes into the `Location` field
//! tags      only where the link has any: packed, and then their length in 2 bytes
//! ```
//! One allocation per link instead of a struct of boxes keeps a cached link under 200 bytes. The key is in it because
//! caches may only know a hash of it, owner and tags because a click counts for those that the link had when it was
//! followed. Most links have small numbers and no tags, which so take no room.

use std::fmt;
use std::sync::Arc;

use crate::account::ApiKeyNumber;
use crate::attribution::{Attribution, PackedTags};
use crate::clock::UnixMillis;
use crate::key::{DomainId, LinkId, LinkRef, check};
use crate::link::{Availability, Link, LinkState, RedirectStatus, Revision, Visibility};
use crate::owner::OwnerId;
use crate::target::check_serialised;
use crate::varint;

const VERSION: u8 = 1;

const FLAGS: usize = 1;
const ACCESS: usize = 2;
const EXPIRES_AT: usize = 3;
const LOADED_AT: usize = 9;
const KEY_LEN: usize = 15;
const NUMBERS_LEN: usize = 16;
const HEADER_LEN: usize = 17;
/// Only there when [`BEGINS_LATER`] is set: few links have it, and sizes of memory blocks go in steps.
const VALID_SINCE: usize = HEADER_LEN;
/// Milliseconds until the year 10889.
const TIME_LEN: usize = 6;
/// Bytes behind the tags that say how long they are.
const TAGS_LEN: usize = 2;
const _: () = assert!(PackedTags::BYTES_MAX <= u16::MAX as usize);

const TWO_BITS: u8 = 0b11;
const FORWARD_QUERY: u8 = 1 << 2;
const BEGINS_LATER: u8 = 1 << 3;
const TAGGED: u8 = 1 << 4;
const VISIBILITY_SHIFT: u8 = 2;
const LIMITED: u8 = 1 << 4;
const UNUSED_BITS: u8 = 0b1110_0000;

/// The expiry of a link that never does.
const NEVER: i64 = (1 << 48) - 1;

/// A link as it is served, and when its load began. A clone costs one reference count.
#[derive(Clone, PartialEq, Eq)]
pub struct ServedLink(Arc<[u8]>);

/// The bytes are not exactly what [`ServedLink::as_bytes`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are no served link")]
pub struct InvalidServedLink;

impl ServedLink {
    /// Builds the form of a link that was read by a load which began at `loaded_at`.
    #[must_use]
    pub fn new(link: &Link, loaded_at: UnixMillis) -> Self {
        let key = link.id.key.as_bytes();
        let target = link.target.as_str().as_bytes();
        let begins = link.valid_since.filter(|at| *at > loaded_at);
        let numbers = Numbers::of(link).encode();
        let mut tags = Vec::new();
        PackedTags::pack(link.tags.iter().map(|tag| &**tag), &mut tags);
        let fixed = HEADER_LEN + TIME_LEN + numbers.len() + TAGS_LEN;
        let mut bytes = Vec::with_capacity(fixed + key.len() + target.len() + tags.len());
        bytes.push(VERSION);
        bytes.push(flags(link, begins.is_some(), !tags.is_empty()));
        bytes.push(access(link));
        push_time(&mut bytes, link.expires_at.map_or(NEVER, |at| at.0));
        push_time(&mut bytes, loaded_at.0);
        // A key has at most 64 bytes, and the numbers have 30.
        bytes.push(u8::try_from(key.len()).unwrap_or(u8::MAX));
        bytes.push(u8::try_from(numbers.len()).unwrap_or(u8::MAX));
        if let Some(begins) = begins {
            push_time(&mut bytes, begins.0);
        }
        bytes.extend(numbers);
        bytes.extend(key);
        bytes.extend(target);
        if !tags.is_empty() {
            bytes.extend(&tags);
            let length = u16::try_from(tags.len()).unwrap_or(u16::MAX);
            bytes.extend(length.to_le_bytes());
        }
        Self(bytes.into())
    }

    /// Reads bytes from outside. Whatever differs from what [`new`](Self::new) builds is refused, other versions too: a
    /// cache entry that cannot be read is loaded again.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidServedLink> {
        let is_version = bytes.len() >= HEADER_LEN && bytes[0] == VERSION;
        if !is_version || (bytes[FLAGS] | bytes[ACCESS]) & UNUSED_BITS != 0 {
            return Err(InvalidServedLink);
        }
        let served = Self(bytes.into());
        if served.has_valid_lengths() && served.has_valid_fields() {
            Ok(served)
        } else {
            Err(InvalidServedLink)
        }
    }

    /// Returns the form as it is stored outside.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the target, serialised: safe to send as it is.
    #[must_use]
    pub fn location(&self) -> &str {
        // The bytes came out of a `Target`, which is ASCII; checking again is a few nanoseconds.
        std::str::from_utf8(self.location_bytes()).unwrap_or_default()
    }

    /// Returns the [`location`](Self::location) without the check that it is text: for the hot path.
    #[must_use]
    pub fn location_bytes(&self) -> &[u8] {
        let end = self.0.len() - self.tags_room();
        &self.0[self.key_start() + self.key_len()..end]
    }

    #[must_use]
    pub fn status(&self) -> RedirectStatus {
        RedirectStatus::ALL[usize::from(self.0[FLAGS] & TWO_BITS)]
    }

    #[must_use]
    pub fn forward_query(&self) -> bool {
        self.has_flag(FORWARD_QUERY)
    }

    #[must_use]
    pub fn revision(&self) -> Revision {
        self.numbers().unwrap_or_default().revision
    }

    /// Returns the link's generation, and whom a click counts for now.
    #[must_use]
    pub fn attribution(&self) -> (u32, Attribution<'_>) {
        let numbers = self.numbers().unwrap_or_default();
        let attribution = Attribution {
            owner: numbers.owner,
            tags: PackedTags::from_packed(self.tag_bytes()),
        };
        (numbers.revision.generation, attribution)
    }

    /// Returns the API key that made the link.
    #[must_use]
    pub fn made_with(&self) -> Option<ApiKeyNumber> {
        self.numbers().unwrap_or_default().made_with
    }

    /// Returns when the link stops redirecting: a permanent redirect must not be kept longer than this.
    #[must_use]
    pub fn expires_at(&self) -> Option<UnixMillis> {
        let at = self.time(EXPIRES_AT);
        (at != NEVER).then_some(UnixMillis(at))
    }

    /// Returns the same link as one whose load began at another time: it was confirmed then.
    #[must_use]
    pub fn loaded_again_at(&self, began: UnixMillis) -> Self {
        let mut bytes = self.0.to_vec();
        let mut time = Vec::with_capacity(TIME_LEN);
        push_time(&mut time, began.0);
        bytes[LOADED_AT..LOADED_AT + TIME_LEN].copy_from_slice(&time);
        Self(bytes.into())
    }

    /// Returns when the load began: the form may be no younger than this.
    #[must_use]
    pub fn loaded_at(&self) -> UnixMillis {
        UnixMillis(self.time(LOADED_AT))
    }

    #[must_use]
    pub fn state(&self) -> LinkState {
        LinkState::from_stored(self.0[ACCESS] & TWO_BITS).unwrap_or(LinkState::Disabled)
    }

    #[must_use]
    pub fn visibility(&self) -> Visibility {
        // What is unknown is shown to nobody.
        self.stored_visibility().unwrap_or(Visibility::Private)
    }

    /// Returns whether the link has a `max_clicks`.
    #[must_use]
    pub fn has_limited_clicks(&self) -> bool {
        self.0[ACCESS] & LIMITED != 0
    }

    /// Returns what a visitor gets at `now`, by state and time alone.
    #[must_use]
    pub fn availability(&self, now: UnixMillis) -> Availability {
        let (expires_at, valid_since) = (self.expires_at(), self.valid_since());
        Availability::at(now, self.state(), expires_at, valid_since)
    }

    #[must_use]
    pub fn is_of(&self, link: LinkRef<'_>) -> bool {
        self.key_bytes() == link.key.as_bytes() && self.domain() == Some(link.domain)
    }

    /// Returns whether both are clones of one.
    #[must_use]
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    #[must_use]
    pub fn id(&self) -> Option<LinkId> {
        let key = std::str::from_utf8(self.key_bytes()).ok()?;
        let domain = self.domain()?;
        LinkRef { domain, key }.to_id()
    }

    fn has_valid_lengths(&self) -> bool {
        // Each step reads only what the steps before it found to be there.
        let target_start = self.key_start() + self.key_len();
        let len = self.0.len();
        let tags_fit = !self.has_flag(TAGGED) || target_start + TAGS_LEN < len;
        tags_fit && target_start + self.tags_room() < len
    }

    fn has_valid_fields(&self) -> bool {
        let numbers = self.numbers();
        let tags = self.tag_bytes();
        numbers.is_some_and(|numbers| numbers.encode() == self.number_bytes())
            && check(self.key_bytes()).is_ok()
            && check_serialised(self.location_bytes()).is_ok()
            && PackedTags::from_bytes(tags).is_ok()
            && tags.is_empty() != self.has_flag(TAGGED)
            && self.stored_visibility().is_some()
            && self.valid_since().is_none_or(|at| at > self.loaded_at())
    }

    fn has_flag(&self, flag: u8) -> bool {
        self.0[FLAGS] & flag != 0
    }

    fn stored_visibility(&self) -> Option<Visibility> {
        Visibility::from_stored(self.0[ACCESS] >> VISIBILITY_SHIFT & TWO_BITS)
    }

    /// Returns when the link begins to redirect, if that is after the load.
    #[must_use]
    pub fn valid_since(&self) -> Option<UnixMillis> {
        self.has_flag(BEGINS_LATER)
            .then(|| UnixMillis(self.time(VALID_SINCE)))
    }

    fn domain(&self) -> Option<DomainId> {
        take_small(&mut self.number_bytes()).map(DomainId)
    }

    fn number_bytes(&self) -> &[u8] {
        let end = self.key_start();
        &self.0[end - usize::from(self.0[NUMBERS_LEN])..end]
    }

    /// `None` only of bytes that [`from_bytes`](Self::from_bytes) refuses.
    fn numbers(&self) -> Option<Numbers> {
        Numbers::decode(self.number_bytes())
    }

    fn tag_bytes(&self) -> &[u8] {
        let room = self.tags_room();
        let start = self.0.len() - room;
        &self.0[start..start + room.saturating_sub(TAGS_LEN)]
    }

    /// Bytes behind the target.
    fn tags_room(&self) -> usize {
        if !self.has_flag(TAGGED) {
            return 0;
        }
        let length = self.field::<TAGS_LEN>(self.0.len() - TAGS_LEN);
        usize::from(u16::from_le_bytes(length)) + TAGS_LEN
    }

    fn key_len(&self) -> usize {
        usize::from(self.0[KEY_LEN])
    }

    fn key_bytes(&self) -> &[u8] {
        let start = self.key_start();
        &self.0[start..start + self.key_len()]
    }

    fn key_start(&self) -> usize {
        let begin = if self.has_flag(BEGINS_LATER) {
            TIME_LEN
        } else {
            0
        };
        HEADER_LEN + begin + usize::from(self.0[NUMBERS_LEN])
    }

    fn time(&self, at: usize) -> i64 {
        let [a, b, c, d, e, f] = self.field::<TIME_LEN>(at);
        i64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.0[at..at + N]);
        field
    }
}

/// What is small for most links.
#[derive(Default)]
struct Numbers {
    domain: DomainId,
    revision: Revision,
    owner: OwnerId,
    made_with: Option<ApiKeyNumber>,
}

impl Numbers {
    fn of(link: &Link) -> Self {
        Self {
            domain: link.id.domain,
            revision: link.revision,
            owner: link.owner,
            made_with: link.made_with,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Revision {
            generation,
            version,
        } = self.revision;
        for number in [self.domain.0, generation, version].map(u64::from) {
            varint::push(&mut bytes, number);
        }
        varint::push(&mut bytes, self.owner.0);
        let made_with = self.made_with.map_or(0, |key| u64::from(key.0) + 1);
        varint::push(&mut bytes, made_with);
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(Self {
            domain: DomainId(take_small(rest)?),
            revision: Revision {
                generation: take_small(rest)?,
                version: take_small(rest)?,
            },
            owner: OwnerId(varint::take(rest)?),
            made_with: match varint::take(rest)?.checked_sub(1) {
                Some(number) => Some(ApiKeyNumber(u32::try_from(number).ok()?)),
                None => None,
            },
        })
    }
}

fn take_small(bytes: &mut &[u8]) -> Option<u32> {
    u32::try_from(varint::take(bytes)?).ok()
}

impl fmt::Debug for ServedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedLink")
            .field("location", &self.location())
            .field("status", &self.status())
            .field("forward_query", &self.forward_query())
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

fn push_time(bytes: &mut Vec<u8>, millis: i64) {
    let millis = millis.clamp(0, NEVER).to_le_bytes();
    bytes.extend(&millis[..TIME_LEN]);
}

fn flags(link: &Link, begins_later: bool, tagged: bool) -> u8 {
    let mut statuses = RedirectStatus::ALL.iter();
    let status = statuses.position(|status| *status == link.status);
    let mut flags = u8::try_from(status.unwrap_or(1)).unwrap_or(1) & TWO_BITS;
    for (is_set, flag) in [
        (link.forward_query, FORWARD_QUERY),
        (begins_later, BEGINS_LATER),
        (tagged, TAGGED),
    ] {
        if is_set {
            flags |= flag;
        }
    }
    flags
}

fn access(link: &Link) -> u8 {
    let limited = if link.max_clicks.is_some() {
        LIMITED
    } else {
        0
    };
    // To visitors a link that can be restored is as gone as one that cannot.
    let state = match link.state {
        LinkState::Deleted | LinkState::DeletedDisabled => LinkState::Tombstone,
        state => state,
    };
    state as u8 | (link.visibility as u8) << VISIBILITY_SHIFT | limited
}
