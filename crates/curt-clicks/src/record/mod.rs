//! One click, as the redirect path sees it. Parsing it further is the consumer's work.

mod code;

use std::net::IpAddr;

pub use code::{RecordError, decode, encode};

use curt_core::limits::KEY_BYTES_MAX;
use curt_core::{Attribution, DomainId, PackedTags, UnixMillis};

/// Longest texts that a record keeps, in bytes; what is longer is cut. Enough for any honest browser, and a stranger
/// cannot fill the spool with a few requests.
pub const AGENT_BYTES_MAX: usize = 512;
pub const REFERRER_BYTES_MAX: usize = 512;
pub const LANGUAGE_BYTES_MAX: usize = 64;

/// No encoded click is longer: two bytes of version and flags, four numbers, an address, four texts and the tags with
/// their lengths.
pub const RECORD_BYTES_MAX: usize = 2
    + 10
    + 5
    + 5
    + 10
    + 16
    + 5 * 2
    + KEY_BYTES_MAX
    + AGENT_BYTES_MAX
    + REFERRER_BYTES_MAX
    + LANGUAGE_BYTES_MAX
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
    /// Of the link as it was then, empty for orphans.
    pub attribution: Attribution<'a>,
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
