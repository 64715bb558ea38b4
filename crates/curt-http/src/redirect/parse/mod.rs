//! Telling a plain redirect request from everything else, without an allocation.

mod head;
#[cfg(test)]
mod tests;

use std::ops::Range;

use axum::body::Body;
use bytes::Bytes;
use curt_core::key;
use curt_core::limits::{HTTP_HEADERS_MAX, HTTP_URI_BYTES_MAX};
use http::{HeaderName, HeaderValue, Request, Uri};

pub(crate) use self::head::{BodyFraming, Persistence, Refusal, Visitor};
use self::head::{Head, Unfit};
use crate::redirect::encode_query;

/// Longest request target that is answered on the redirect path. With every byte of it percent-encoded it still fits
/// the limit, so that the router, which gets it encoded, gives the same answer.
const PLAIN_TARGET_BYTES_MAX: usize = HTTP_URI_BYTES_MAX / 3;

/// What the first request in a buffer is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedRequest<'a> {
    /// A `GET` or `HEAD` of something that can be a key, without a body or any wish beyond.
    Plain(PlainGet<'a>),
    /// Well-formed, and not for the redirect path.
    Other,
    /// The head is not complete yet.
    Partial,
    /// Nothing that may follow can make this a request.
    Refused(Refusal),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlainGet<'a> {
    pub(crate) key: &'a str,
    /// Without the `?`.
    pub(crate) query: Option<&'a str>,
    pub(crate) persistence: Persistence,
    pub(crate) visitor: Visitor<'a>,
    /// Bytes that the request takes up in the buffer.
    pub(crate) bytes: usize,
}

impl PlainGet<'_> {
    pub(crate) fn frame(&self) -> GetFrame {
        GetFrame {
            bytes: self.bytes,
            persistence: self.persistence,
            is_head: self.visitor.head,
        }
    }
}

/// What is left to know of a [`PlainGet`] once its response is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GetFrame {
    pub(crate) bytes: usize,
    pub(crate) persistence: Persistence,
    pub(crate) is_head: bool,
}

/// The first request in a buffer, as bytes: for whoever passes it on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Framed {
    Complete(RequestFrame),
    Partial,
    Refused(Refusal),
}

/// Where the parts of a request are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestFrame {
    /// Bytes of the head.
    pub(crate) bytes: usize,
    /// The request target within the head.
    pub(crate) target: Range<usize>,
    pub(crate) body: BodyFraming,
}

/// Looks at the first request in `bytes`. The verdict depends on the bytes alone, never on how they arrived: nothing
/// past the limit is looked at, so a head that is too large is refused whether it came in one piece or in many.
pub(crate) fn read_request(bytes: &[u8]) -> ParsedRequest<'_> {
    let head = match Head::read(bytes) {
        Ok(head) => head,
        Err(Unfit::Partial) => return ParsedRequest::Partial,
        Err(Unfit::Refused(refusal)) => return ParsedRequest::Refused(refusal),
    };
    let header_fields = head.header_fields;
    let mut visitor = header_fields.visitor;
    visitor.head = head.method == "HEAD";
    if header_fields.beyond_redirect
        || !matches!(head.method, "GET" | "HEAD")
        || head.target.len() > PLAIN_TARGET_BYTES_MAX
    {
        return ParsedRequest::Other;
    }
    let Some((key, query)) = key_and_query(head.target) else {
        return ParsedRequest::Other;
    };
    ParsedRequest::Plain(PlainGet {
        key,
        query,
        persistence: header_fields.persistence,
        visitor,
        bytes: head.bytes,
    })
}

/// Builds the router's request from the head of a [`PlainGet`]; `None` if the router's types cannot express it.
pub(crate) fn build_request(head: &[u8]) -> Option<Request<Body>> {
    let mut fields = [httparse::EMPTY_HEADER; HTTP_HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    parsed.parse(head).ok()?;
    let target = parsed.path?.as_bytes();
    let target = encode_query(target).unwrap_or_else(|| target.to_vec());
    let mut request = Request::new(Body::empty());
    *request.method_mut() = parsed.method?.parse().ok()?;
    *request.uri_mut() = Uri::from_maybe_shared(Bytes::from(target)).ok()?;
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let value = HeaderValue::from_bytes(field.value).ok()?;
        request.headers_mut().append(name, value);
    }
    Some(request)
}

/// Finds the first request in `bytes` by the rules of [`read_request`], whatever it asks for.
pub(crate) fn frame_request(bytes: &[u8]) -> Framed {
    match Head::read(bytes) {
        Ok(head) => {
            // A slice of the same buffer: the difference is its place in it.
            let start = head.target.as_ptr() as usize - bytes.as_ptr() as usize;
            Framed::Complete(RequestFrame {
                bytes: head.bytes,
                target: start..start + head.target.len(),
                body: head.header_fields.body,
            })
        }
        Err(Unfit::Partial) => Framed::Partial,
        Err(Unfit::Refused(refusal)) => Framed::Refused(refusal),
    }
}

/// The key and the query of a request target in origin form or absolute form; `None` when it names no key.
fn key_and_query(target: &str) -> Option<(&str, Option<&str>)> {
    let path = match target.strip_prefix('/') {
        Some(path) => path,
        None => after_authority(target)?,
    };
    let question = path.bytes().position(|byte| byte == b'?');
    let (key, query) = match question {
        Some(at) => (&path[..at], Some(&path[at + 1..])),
        None => (path, None),
    };
    key::check(key.as_bytes()).ok()?;
    Some((key, query))
}

/// What follows the slash behind the authority of `http://host/…`.
fn after_authority(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let (authority, path) = rest.split_once('/')?;
    is_plain_authority(authority).then_some(path)
}

/// Whether it is a name with or without a port, written as everybody would; the router reads what is not.
fn is_plain_authority(authority: &str) -> bool {
    let (name, port) = match authority.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (authority, None),
    };
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_port = |port: &str| {
        (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    !name.is_empty() && name.bytes().all(is_of_name) && port.is_none_or(is_port)
}
