//! One click, as the redirect path sees it. Parsing it further is the consumer's work.

mod code;
mod json;

use std::net::IpAddr;

pub use code::{RecordBuffers, RecordError, decode, encode};
pub use json::{IpForm, RecordId, decode_any, encode_json};

use curt_core::limits::KEY_BYTES_MAX;
use curt_core::{Attribution, DomainId, PackedTags, UnixMillis};

/// Longest texts that a record keeps, in bytes; what is longer is cut. Enough for any honest browser, and a stranger
/// cannot fill the spool with a few requests.
pub const AGENT_BYTES_MAX: usize = 512;
pub const REFERRER_BYTES_MAX: usize = 512;
pub const LANGUAGE_BYTES_MAX: usize = 64;
/// Of the `utm_` parameters together.
pub const UTM_BYTES_MAX: usize = 256;

/// No encoded click is longer: two bytes of version and flags, four numbers, an address, five texts and the tags with
/// their lengths.
pub const RECORD_BYTES_MAX: usize = 2
    + 10
    + 5
    + 5
    + 10
    + 16
    + 6 * 2
    + KEY_BYTES_MAX
    + AGENT_BYTES_MAX
    + REFERRER_BYTES_MAX
    + LANGUAGE_BYTES_MAX
    + UTM_BYTES_MAX
    + PackedTags::BYTES_MAX;

/// A click with borrowed texts, to be encoded or just decoded. Texts may be cut at their bounds and need not be UTF-8:
/// they come from strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClickRecord<'a> {
    pub at: UnixMillis,
    pub domain: DomainId,
    /// The key asked for; empty for the base URL.
    pub key: &'a [u8],
    /// Of the link's generation that redirected; 0 when there was none.
    pub generation: u32,
    pub outcome: Outcome,
    pub method: Method,
    /// Whether the browser said that it only fetches ahead (`Sec-Purpose: prefetch`, `Purpose`, `X-Moz`).
    pub prefetch: bool,
    pub address: IpAddr,
    pub agent: &'a [u8],
    pub referrer: &'a [u8],
    /// `Accept-Language`.
    pub language: &'a [u8],
    /// Of the address that the visitor is sent to.
    pub utm: UtmText<'a>,
    /// Of the link as it was then, empty for orphans.
    pub attribution: Attribution<'a>,
}

/// Text of a query from its first `utm_` parameter on, in two parts that follow each other: the target's own and the
/// visitor's that is forwarded. It may hold other parameters; reading it is the consumer's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UtmText<'a> {
    target: &'a [u8],
    forwarded: &'a [u8],
}

impl<'a> UtmText<'a> {
    /// Of a target's address and the query that is added to it. Costs one search in each query, and nothing is copied.
    #[must_use]
    pub fn find(target: &'a [u8], forwarded: Option<&'a str>) -> Self {
        // What stands behind a `#` is no query, even with a `?` in it.
        let query = match memchr::memchr2(b'?', b'#', target) {
            Some(mark) if target[mark] == b'?' => &target[mark + 1..],
            _ => &[],
        };
        Self {
            target: without_fragment(from_utm(query)),
            forwarded: from_utm(forwarded.unwrap_or_default().as_bytes()),
        }
    }

    /// Reads what [`bytes`](Self::bytes) gave.
    #[must_use]
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Self {
        Self {
            target: bytes,
            forwarded: &[],
        }
    }

    #[must_use]
    pub(crate) fn is_empty(self) -> bool {
        self.target.is_empty() && self.forwarded.is_empty()
    }

    /// Both parts with an `&` between them, cut at [`UTM_BYTES_MAX`].
    pub(crate) fn bytes(self) -> impl Iterator<Item = u8> + 'a {
        let between = !self.target.is_empty() && !self.forwarded.is_empty();
        let parts = self.target.iter().chain(between.then_some(&b'&'));
        parts.chain(self.forwarded).copied().take(UTM_BYTES_MAX)
    }
}

fn from_utm(query: &[u8]) -> &[u8] {
    // Most targets have no query at all.
    if query.is_empty() {
        return query;
    }
    memchr::memmem::find(query, b"utm_").map_or(&[], |start| &query[start..])
}

fn without_fragment(query: &[u8]) -> &[u8] {
    memchr::memchr(b'#', query).map_or(query, |mark| &query[..mark])
}

/// What the visitor got. The stored number of each is part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    Redirected = 0,
    /// An orphan click: no such key, or a link that is gone.
    Absent = 1,
    /// An orphan click of the base URL.
    Base = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Method {
    Get = 0,
    Head = 1,
    /// Another one, such as the POST of a link's password.
    Other = 2,
}
