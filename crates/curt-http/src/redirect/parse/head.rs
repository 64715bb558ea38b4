//! The rules that a request's head has to keep, wherever it is read.

use std::mem::MaybeUninit;

use curt_core::limits::{HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX};

/// Lines of `X-Forwarded-For` that are read on the redirect path; requests with more go to the router.
pub(super) const FORWARDED_LINES_MAX: usize = 3;
/// Longest body that a request may announce. No body is that long; it only keeps sums from overflowing.
const CONTENT_LENGTH_MAX: u64 = u64::MAX / 4;

/// What a request tells about whoever sent it, as it stands there. Of a field that is there twice, the last counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Visitor<'a> {
    pub(crate) agent: &'a [u8],
    pub(crate) referrer: &'a [u8],
    pub(crate) language: &'a [u8],
    pub(crate) forwarded_for: ForwardedFor<'a>,
    /// Whether the browser only fetches ahead of a click that may never come.
    pub(crate) prefetch: bool,
    pub(crate) head: bool,
}

/// The lines of `X-Forwarded-For`, in the order in which they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForwardedFor<'a> {
    pub(super) lines: [&'a [u8]; FORWARDED_LINES_MAX],
    pub(super) count: usize,
}

impl<'a> ForwardedFor<'a> {
    /// Returns false when there is no room for another line.
    fn add(&mut self, line: &'a [u8]) -> bool {
        let Some(place) = self.lines.get_mut(self.count) else {
            return false;
        };
        *place = line;
        self.count += 1;
        true
    }

    /// Returns the last line first: the nearest proxy wrote it.
    pub(crate) fn last_first(&self) -> impl Iterator<Item = &'a [u8]> {
        self.lines[..self.count].iter().rev().copied()
    }
}

/// How the end of a request's body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    None,
    Length(u64),
    Chunked,
}

/// Whether the connection stays open after the answer, and whether the answer has to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// HTTP/1.1 stays open unless told otherwise.
    Implied,
    /// HTTP/1.0 stays open only where both sides say so.
    Stated,
    Close,
}

/// Why the bytes are answered with an error and the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Not HTTP, or not well-formed.
    Malformed,
    /// HTTP/1.1 asks for exactly one `Host` field; two of them are how requests are smuggled.
    Host,
    /// Two readers could disagree about where the body ends, which is the other way to smuggle a request.
    Framing,
    /// The request line alone is over the limit.
    UriTooLong,
    HeadTooLarge,
    TooManyHeaders,
    Version,
}

/// A complete head that keeps the rules.
pub(super) struct Head<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) header_fields: HeaderFields<'a>,
    pub(super) bytes: usize,
}

pub(super) enum Unfit {
    Partial,
    Refused(Refusal),
}

impl<'a> Head<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Unfit> {
        let within = &bytes[..bytes.len().min(HTTP_HEAD_BYTES_MAX)];
        let mut fields = [const { MaybeUninit::uninit() }; HTTP_HEADERS_MAX];
        let mut request = httparse::Request::new(&mut []);
        let bytes = match request.parse_with_uninit_headers(within, &mut fields) {
            Ok(httparse::Status::Complete(bytes)) => bytes,
            Ok(httparse::Status::Partial) if within.len() < HTTP_HEAD_BYTES_MAX => {
                return Err(Unfit::Partial);
            }
            Ok(httparse::Status::Partial) => return Err(Unfit::Refused(too_large(within))),
            Err(httparse::Error::Version) => return Err(Unfit::Refused(Refusal::Version)),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Unfit::Refused(Refusal::TooManyHeaders));
            }
            Err(_) => return Err(Unfit::Refused(Refusal::Malformed)),
        };
        let (Some(method), Some(target), Some(version)) =
            (request.method, request.path, request.version)
        else {
            return Err(Unfit::Refused(Refusal::Malformed));
        };
        Ok(Self {
            method,
            target,
            header_fields: HeaderFields::of(request.headers, version).map_err(Unfit::Refused)?,
            bytes,
        })
    }
}

fn too_large(head: &[u8]) -> Refusal {
    let request = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    match request.map(|start| head[start..].contains(&b'\n')) {
        Some(true) => Refusal::HeadTooLarge,
        _ => Refusal::UriTooLong,
    }
}

/// What the header fields ask for, as far as it matters here.
pub(super) struct HeaderFields<'a> {
    pub(super) persistence: Persistence,
    pub(super) visitor: Visitor<'a>,
    pub(super) body: BodyFraming,
    /// A body, an upgrade or an expectation: not for the redirect path.
    pub(super) beyond_redirect: bool,
}

impl<'a> HeaderFields<'a> {
    fn of(fields: &[httparse::Header<'a>], version: u8) -> Result<Self, Refusal> {
        let (mut hosts, mut lengths, mut codings) = (0, 0, 0);
        let (mut named, mut framed) = (true, true);
        let mut body = BodyFraming::None;
        let mut beyond_redirect = false;
        let (mut close, mut keep_alive) = (false, false);
        let mut visitor = Visitor::default();
        for field in fields {
            // The length alone rules out nearly every field of a browser's request.
            match field.name.len() {
                4 if field.name.eq_ignore_ascii_case("host") => {
                    hosts += 1;
                    named &= is_host(field.value);
                }
                5 if field.name.eq_ignore_ascii_case("x-moz") => visitor.note_purpose(field.value),
                6 if field.name.eq_ignore_ascii_case("expect") => beyond_redirect = true,
                7 if field.name.eq_ignore_ascii_case("upgrade") => beyond_redirect = true,
                7 if field.name.eq_ignore_ascii_case("referer") => visitor.referrer = field.value,
                7 if field.name.eq_ignore_ascii_case("purpose") => {
                    visitor.note_purpose(field.value);
                }
                10 if field.name.eq_ignore_ascii_case("user-agent") => visitor.agent = field.value,
                10 if field.name.eq_ignore_ascii_case("connection") => {
                    for option in field.value.split(|byte| *byte == b',') {
                        let option = option.trim_ascii();
                        close |= option.eq_ignore_ascii_case(b"close");
                        keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                11 if field.name.eq_ignore_ascii_case("sec-purpose") => {
                    visitor.note_purpose(field.value);
                }
                14 if field.name.eq_ignore_ascii_case("content-length") => {
                    lengths += 1;
                    match content_length(field.value) {
                        Some(length) => body = BodyFraming::Length(length),
                        None => framed = false,
                    }
                }
                15 if field.name.eq_ignore_ascii_case("accept-language") => {
                    visitor.language = field.value;
                }
                15 if field.name.eq_ignore_ascii_case("x-forwarded-for") => {
                    beyond_redirect |= !visitor.forwarded_for.add(field.value);
                }
                17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                    codings += 1;
                    body = BodyFraming::Chunked;
                    framed &= version == 1 && field.value.eq_ignore_ascii_case(b"chunked");
                }
                _ => {}
            }
        }
        if !named || hosts > 1 || (hosts == 0 && version == 1) {
            return Err(Refusal::Host);
        }
        if !framed || lengths + codings > 1 {
            return Err(Refusal::Framing);
        }
        beyond_redirect |= lengths + codings > 0;
        let persistence = match (version, close, keep_alive) {
            (1, false, _) => Persistence::Implied,
            (_, false, true) => Persistence::Stated,
            _ => Persistence::Close,
        };
        Ok(Self {
            persistence,
            visitor,
            body,
            beyond_redirect,
        })
    }
}

impl Visitor<'_> {
    /// `prefetch` or `prefetch;prerender` of today's browsers, `preview` of older ones.
    pub(crate) fn note_purpose(&mut self, value: &[u8]) {
        let first = value.split(|byte| *byte == b';').next().unwrap_or_default();
        let first = first.trim_ascii();
        self.prefetch |=
            first.eq_ignore_ascii_case(b"prefetch") || first.eq_ignore_ascii_case(b"preview");
    }
}

/// Digits alone: no sign, no list, nothing around them.
fn content_length(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length = std::str::from_utf8(value).ok()?.parse().ok()?;
    (length <= CONTENT_LENGTH_MAX).then_some(length)
}

/// Whether the value of `Host` is a name or an address, and perhaps a port. It may be empty: RFC 9112 asks for that
/// where the target has no host.
pub(super) fn is_host(value: &[u8]) -> bool {
    let port = match value {
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|byte| *byte == b']') else {
                return false;
            };
            let is_address = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
            if end == 0 || !rest[..end].iter().all(is_address) {
                return false;
            }
            &rest[end + 1..]
        }
        _ => {
            let end = value.iter().position(|byte| *byte == b':');
            let (name, port) = value.split_at(end.unwrap_or(value.len()));
            if !name.iter().all(|byte| is_of_name(*byte)) {
                return false;
            }
            port
        }
    };
    match port {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// What a registered name is written with (RFC 3986).
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}
