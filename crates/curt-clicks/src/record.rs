//! One visit, as the redirect path sees it. Parsing it further is the consumer's work.

use std::net::IpAddr;

use curt_core::{DomainId, UnixMillis};

/// A visit with borrowed texts, to be encoded or just decoded. Texts may be cut at their bounds and need not be UTF-8:
/// they come from strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit<'a> {
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
}

/// What the visitor got. The stored number of each is part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    Redirected = 0,
    /// An orphan visit: no such key, or a link that is gone.
    Absent = 1,
    /// An orphan visit of the base URL.
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
