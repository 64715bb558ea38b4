//! `GET /{key}`, from the bytes of the request to those of the response.
//!
//! | folder | holds |
//! |---|---|
//! | `parse` | requests: which of them are plain, and what they tell |
//! | `wire` | responses: header fields, `Location` |
//! | `fast` | the workers, which write bytes: live links |
//! | `slow` | the router's handler, which builds an [`http::Response`]: everything else about a key |
//! | `clicks` | what is recorded of either |
//!
//! Both ways take the header fields from [`RedirectFields`] and the target from [`write_location`], so that a visitor can
//! tell them apart by nothing but the router's `X-Request-Id`.

pub(crate) mod clicks;
pub(crate) mod fast;
mod parse;
pub(crate) mod slow;
mod wire;

use curt_accounts::ConstantTime;
use curt_core::PortResult;
use curt_links::Resolution;

pub(crate) use self::parse::{
    BodyFraming, Framed, GetFrame, ParsedRequest, Persistence, PlainGet, Refusal, RequestFrame,
    Visitor, build_request, frame_request, read_request,
};
pub use self::wire::{FORWARDED_QUERY_BYTES_MAX, RedirectFields, write_location};
pub(crate) use self::wire::{
    ResponseHeads, SECURE_ONLY, ToTarget, encode_query, finish, http_date,
};

/// What a worker found before it passed a request on: an extension of the request, so that its handler does not look the
/// link up again.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) resolution: PortResult<Resolution>,
    /// When the look-up began.
    pub(crate) begun: ConstantTime,
}
