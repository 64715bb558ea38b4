//! The form in which a link is held in memory: one allocation, ready to be sent.
//!
//! A fixed header, the key, and the target as it goes into the `Location` field. One allocation per link instead of
//! a struct of boxes is what keeps a cached link under 200 bytes; the key is in it because the cache itself only
//! knows a hash (see [`live`](super::live)).

use std::fmt;
use std::sync::Arc;

use curt_core::clock::UnixMillis;
use curt_core::link::Standing;
use curt_core::{DomainId, Link, LinkId, LinkRef, RedirectStatus, Revision};

const EXPIRES_AT: usize = 0;
const VALID_SINCE: usize = 8;
const LOADED_AT: usize = 16;
const GENERATION: usize = 24;
const VERSION: usize = 28;
const DOMAIN: usize = 32;
const FLAGS: usize = 36;
const KEY_LEN: usize = 37;
const HEADER_LEN: usize = 38;

const STATUS_MASK: u8 = 0b0000_0011;
const FORWARD_QUERY: u8 = 0b0000_0100;

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
        &self.0[HEADER_LEN + self.key_len()..]
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
        Revision {
            generation: u32::from_le_bytes(self.field(GENERATION)),
            version: u32::from_le_bytes(self.field(VERSION)),
        }
    }

    /// When the link stops redirecting: a permanent redirect must not be kept longer than this.
    #[must_use]
    pub fn expires_at(&self) -> Option<UnixMillis> {
        let at = self.expiry();
        (at != i64::MAX).then_some(UnixMillis(at))
    }

    /// Of an active public link; everything else has no business here.
    pub(super) fn of(link: &Link, loaded_at: UnixMillis) -> Self {
        let key = link.id.key.as_bytes();
        let target = link.target.as_str().as_bytes();
        let mut bytes = Vec::with_capacity(HEADER_LEN + key.len() + target.len());
        bytes.extend(link.expires_at.map_or(i64::MAX, |at| at.0).to_le_bytes());
        bytes.extend(link.valid_since.map_or(i64::MIN, |at| at.0).to_le_bytes());
        bytes.extend(loaded_at.0.to_le_bytes());
        bytes.extend(link.revision.generation.to_le_bytes());
        bytes.extend(link.revision.version.to_le_bytes());
        bytes.extend(link.id.domain.0.to_le_bytes());
        bytes.push(status_bits(link.status) | if link.forward_query { FORWARD_QUERY } else { 0 });
        // A key has at most 64 bytes.
        bytes.push(u8::try_from(key.len()).unwrap_or(u8::MAX));
        bytes.extend(key);
        bytes.extend(target);
        Self(bytes.into())
    }

    pub(super) fn is_of(&self, link: LinkRef<'_>) -> bool {
        self.key_bytes() == link.key.as_bytes() && self.domain() == link.domain
    }

    pub(super) fn is_same_copy(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn standing(&self, now: UnixMillis) -> Standing {
        if self.expiry() <= now.0 {
            Standing::Gone
        } else if i64::from_le_bytes(self.field(VALID_SINCE)) > now.0 {
            Standing::Absent
        } else {
            Standing::Live
        }
    }

    pub(super) fn loaded_at(&self) -> UnixMillis {
        UnixMillis(i64::from_le_bytes(self.field(LOADED_AT)))
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

    fn expiry(&self) -> i64 {
        i64::from_le_bytes(self.field(EXPIRES_AT))
    }

    fn domain(&self) -> DomainId {
        DomainId(u32::from_le_bytes(self.field(DOMAIN)))
    }

    fn key_len(&self) -> usize {
        usize::from(self.0[KEY_LEN])
    }

    fn key_bytes(&self) -> &[u8] {
        &self.0[HEADER_LEN..HEADER_LEN + self.key_len()]
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.0[at..at + N]);
        field
    }
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

fn status_bits(status: RedirectStatus) -> u8 {
    let place = RedirectStatus::ALL
        .iter()
        .position(|listed| *listed == status);
    u8::try_from(place.unwrap_or(1)).unwrap_or(1) & STATUS_MASK
}
