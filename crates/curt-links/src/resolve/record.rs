//! The form in which a link is held in memory: one allocation, ready to be sent.
//!
//! ```text
//! header   expiry, load, flags, length of the key, length of the numbers
//! begin    only where the link begins later
//! numbers  varints: domain, generation, version, owner
//! key
//! target   as it goes into the `Location` field
//! tags     only where the link has any: packed, and then their length in two bytes
//! ```
//! One allocation per link instead of a struct of boxes is what keeps a cached link under 200 bytes; the key is in it
//! because the cache itself only knows a hash (see [`live`](super::live)), owner and tags because a click counts for
//! those that the link had when it was followed. Most links have small numbers and no tags, which so take no room.

use std::fmt;
use std::sync::Arc;

use curt_core::clock::UnixMillis;
use curt_core::link::Standing;
use curt_core::{
    Attribution, DomainId, Link, LinkId, LinkRef, OwnerId, PackedTags, RedirectStatus, Revision,
};

// Times take six bytes: milliseconds until the year 10889.
const EXPIRES_AT: usize = 0;
const LOADED_AT: usize = 6;
const FLAGS: usize = 12;
const KEY_LEN: usize = 13;
const NUMBERS_LEN: usize = 14;
const HEADER_LEN: usize = 15;
/// Only there when [`BEGINS_LATER`] is set: few links have it, and sizes of memory blocks go in steps.
const VALID_SINCE: usize = HEADER_LEN;
const TIME_LEN: usize = 6;

const STATUS_MASK: u8 = 0b0000_0011;
const FORWARD_QUERY: u8 = 0b0000_0100;
const BEGINS_LATER: u8 = 0b0000_1000;
const TAGGED: u8 = 0b0001_0000;

/// Bytes behind the tags that say how long they are.
const TAGS_LEN: usize = 2;
const _: () = assert!(PackedTags::BYTES_MAX <= u16::MAX as usize);

/// The expiry of a link that never does.
const NEVER: i64 = (1 << 48) - 1;

/// A link that redirects. A clone costs one reference count.
#[derive(Clone, PartialEq, Eq)]
pub struct Hit(Arc<[u8]>);

impl Hit {
    /// The target, serialised: safe to send as it is.
    #[must_use]
    pub fn location(&self) -> &str {
        // The bytes came out of a `Target`, which is ASCII; checking again is a few nanoseconds.
        std::str::from_utf8(self.location_bytes()).unwrap_or_default()
    }

    /// [`location`](Self::location) without the check that it is text: for the hot path.
    #[must_use]
    pub fn location_bytes(&self) -> &[u8] {
        let end = self.0.len() - self.tags_room();
        &self.0[self.key_start() + self.key_len()..end]
    }

    #[must_use]
    pub fn status(&self) -> RedirectStatus {
        RedirectStatus::ALL[usize::from(self.0[FLAGS] & STATUS_MASK)]
    }

    #[must_use]
    pub fn forward_query(&self) -> bool {
        self.0[FLAGS] & FORWARD_QUERY != 0
    }

    #[must_use]
    pub fn revision(&self) -> Revision {
        let Numbers {
            generation,
            version,
            ..
        } = self.numbers();
        Revision {
            generation,
            version,
        }
    }

    /// The link's generation, and whom a click counts for now.
    #[must_use]
    pub fn attribution(&self) -> (u32, Attribution<'_>) {
        let Numbers {
            generation, owner, ..
        } = self.numbers();
        let tags = self.tags();
        (generation, Attribution { owner, tags })
    }

    /// When the link stops redirecting: a permanent redirect must not be kept longer than this.
    #[must_use]
    pub fn expires_at(&self) -> Option<UnixMillis> {
        let at = self.time(EXPIRES_AT);
        (at != NEVER).then_some(UnixMillis(at))
    }

    /// Of an active public link; everything else has no business here.
    pub(super) fn of(link: &Link, loaded_at: UnixMillis) -> Self {
        let key = link.id.key.as_bytes();
        let target = link.target.as_str().as_bytes();
        let begins = link.valid_since.filter(|at| *at > loaded_at);
        let numbers = Numbers::of(link).encode();
        let mut tags = Vec::new();
        PackedTags::pack(link.tags.iter().map(|tag| &**tag), &mut tags);
        let fixed = HEADER_LEN + TIME_LEN + numbers.len() + TAGS_LEN;
        let mut bytes = Vec::with_capacity(fixed + key.len() + target.len() + tags.len());
        push_time(&mut bytes, link.expires_at.map_or(NEVER, |at| at.0));
        push_time(&mut bytes, loaded_at.0);
        bytes.push(flags(link, begins.is_some(), !tags.is_empty()));
        // A key has at most 64 bytes, and four numbers have 25.
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
            bytes.extend((tags.len() as u16).to_le_bytes());
        }
        Self(bytes.into())
    }

    pub(super) fn is_of(&self, link: LinkRef<'_>) -> bool {
        self.key_bytes() == link.key.as_bytes() && self.domain() == link.domain
    }

    pub(super) fn is_same_copy(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn standing(&self, now: UnixMillis) -> Standing {
        if self.time(EXPIRES_AT) <= now.0 {
            Standing::Gone
        } else if self.begins_later() && self.time(VALID_SINCE) > now.0 {
            Standing::Absent
        } else {
            Standing::Live
        }
    }

    pub(super) fn loaded_at(&self) -> UnixMillis {
        UnixMillis(self.time(LOADED_AT))
    }

    pub(super) fn id(&self) -> Option<LinkId> {
        let key = std::str::from_utf8(self.key_bytes()).ok()?;
        LinkRef {
            domain: self.domain(),
            key,
        }
        .to_id()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn begins_later(&self) -> bool {
        self.0[FLAGS] & BEGINS_LATER != 0
    }

    fn domain(&self) -> DomainId {
        DomainId(read_number(&mut self.number_bytes()) as u32)
    }

    fn number_bytes(&self) -> &[u8] {
        let end = self.key_start();
        &self.0[end - usize::from(self.0[NUMBERS_LEN])..end]
    }

    fn numbers(&self) -> Numbers {
        let mut rest = self.number_bytes();
        Numbers {
            domain: DomainId(read_number(&mut rest) as u32),
            generation: read_number(&mut rest) as u32,
            version: read_number(&mut rest) as u32,
            owner: OwnerId(read_number(&mut rest)),
        }
    }

    fn tags(&self) -> PackedTags<'_> {
        let Some(end) = self.0.len().checked_sub(TAGS_LEN) else {
            return PackedTags::default();
        };
        match self.tags_room() {
            0 => PackedTags::default(),
            room => PackedTags::from_packed(&self.0[end + TAGS_LEN - room..end]),
        }
    }

    /// What stands behind the target.
    fn tags_room(&self) -> usize {
        if self.0[FLAGS] & TAGGED == 0 {
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
        let begin = if self.begins_later() { TIME_LEN } else { 0 };
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
struct Numbers {
    domain: DomainId,
    generation: u32,
    version: u32,
    owner: OwnerId,
}

impl Numbers {
    fn of(link: &Link) -> Self {
        Self {
            domain: link.id.domain,
            generation: link.revision.generation,
            version: link.revision.version,
            owner: link.owner,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let small = [self.domain.0, self.generation, self.version].map(u64::from);
        for mut number in small.into_iter().chain([self.owner.0]) {
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
        }
        bytes
    }
}

/// Takes a varint off the start; seven bits per byte, the lowest first.
fn read_number(rest: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let Some((&byte, after)) = rest.split_first() else {
            break;
        };
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

impl fmt::Debug for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hit")
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
    let mut flags = u8::try_from(status.unwrap_or(1)).unwrap_or(1) & STATUS_MASK;
    if link.forward_query {
        flags |= FORWARD_QUERY;
    }
    if begins_later {
        flags |= BEGINS_LATER;
    }
    if tagged {
        flags |= TAGGED;
    }
    flags
}

#[cfg(test)]
mod tests {
    use curt_core::{KeyOrigin, LinkState, OwnerId, Target, Visibility};

    use super::*;

    fn link(key: &str) -> Link {
        let id = LinkRef {
            domain: DomainId(7),
            key,
        };
        Link {
            id: id.to_id().unwrap(),
            target: Target::from_serialised("https://example.com/").unwrap(),
            owner: OwnerId(1),
            made_with: None,
            state: LinkState::Active,
            revision: Revision {
                generation: u32::MAX,
                version: 3,
            },
            origin: KeyOrigin::Random,
            created_at: UnixMillis(0),
            updated_at: UnixMillis(0),
            expires_at: None,
            valid_since: None,
            max_clicks: None,
            visibility: Visibility::Public,
            password_hash: None,
            status: RedirectStatus::Found,
            forward_query: false,
            title: None,
            tags: Vec::new(),
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let loaded_at = UnixMillis(1_800_000_000_000);
        let later = UnixMillis(loaded_at.0 + 1);
        for key in ["a", "1234567", &"x".repeat(64)] {
            for (expires_at, valid_since) in [
                (None, None),
                (Some(UnixMillis::MAX), None),
                (Some(later), Some(UnixMillis(5))),
                (None, Some(later)),
                (Some(UnixMillis::MAX), Some(later)),
            ] {
                let link = Link {
                    expires_at,
                    valid_since,
                    ..link(key)
                };
                let hit = Hit::of(&link, loaded_at);
                assert!(hit.is_of(link.id.as_ref()));
                assert_eq!(hit.id().as_ref(), Some(&link.id));
                assert_eq!(hit.location(), "https://example.com/");
                assert_eq!(hit.revision(), link.revision);
                let (generation, attribution) = hit.attribution();
                assert_eq!(generation, link.revision.generation);
                assert_eq!(
                    (attribution.owner, attribution.tags),
                    (link.owner, PackedTags::default())
                );
                assert_eq!(hit.expires_at(), expires_at);
                assert_eq!(hit.loaded_at(), loaded_at);
                for now in [loaded_at, later, UnixMillis::MAX, UnixMillis(i64::MAX - 1)] {
                    if expires_at.is_some() || now <= UnixMillis::MAX {
                        assert_eq!(hit.standing(now), link.standing(now), "{link:?} at {now}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_copy_is_only_of_its_own_link() {
        let hit = Hit::of(&link("abc"), UnixMillis(0));
        for key in ["ab", "abcd", "ABC", "abd", ""] {
            let other = LinkRef {
                domain: DomainId(7),
                key,
            };
            assert!(!hit.is_of(other), "{key}");
        }
        let elsewhere = LinkRef {
            domain: DomainId(8),
            key: "abc",
        };
        assert!(!hit.is_of(elsewhere));
    }

    #[test]
    fn the_fixed_part_is_small() {
        let link = Link {
            id: LinkRef {
                domain: DomainId::DEFAULT,
                key: "1234567",
            }
            .to_id()
            .unwrap(),
            // As users are numbered in 2026: 63 bits at most.
            owner: OwnerId(1 << 60),
            revision: Revision::FIRST,
            ..link("1234567")
        };
        let hit = Hit::of(&link, UnixMillis(0));
        assert_eq!(hit.len(), 27 + 7 + link.target.as_str().len());
    }

    #[test]
    fn owner_and_tags_are_those_of_the_link() {
        let later = UnixMillis(1);
        for owner in [0, 1, 127, 128, u64::MAX].map(OwnerId) {
            for tags in [&[][..], &["a"], &["Red", "red", "größe"], &["x"; 32]] {
                for valid_since in [None, Some(later)] {
                    let link = Link {
                        owner,
                        tags: tags.iter().map(|tag| (*tag).into()).collect(),
                        valid_since,
                        ..link("abc")
                    };
                    let hit = Hit::of(&link, UnixMillis(0));
                    let (generation, attribution) = hit.attribution();
                    assert_eq!((generation, attribution.owner), (u32::MAX, owner));
                    assert_eq!(attribution.tags.iter().collect::<Vec<_>>(), tags);
                    assert_eq!(hit.location(), "https://example.com/");
                    assert!(hit.is_of(link.id.as_ref()));
                }
            }
        }
    }
}
