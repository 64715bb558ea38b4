//! Telling a plain redirect request from everything else, without an allocation.

use std::mem::MaybeUninit;
use std::ops::Range;

use curt_core::key;
use curt_core::limits::{HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX, HTTP_URI_BYTES_MAX};

/// Longest request target that is answered on the redirect path. With every byte of it percent-encoded it still fits
/// the limit, so that the router, which gets it encoded, gives the same answer.
const PLAIN_TARGET_BYTES_MAX: usize = HTTP_URI_BYTES_MAX / 3;
/// Lines of `X-Forwarded-For` that are read here; requests with more go to the router.
const FORWARDED_LINES_MAX: usize = 3;
/// Longest body that a request may announce. No body is that long; it only keeps sums from overflowing.
const CONTENT_LENGTH_MAX: u64 = u64::MAX / 4;

/// What the first request in a buffer is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked<'a> {
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
    lines: [&'a [u8]; FORWARDED_LINES_MAX],
    count: usize,
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

/// Looks at the first request in `bytes`. The verdict depends on the bytes alone, never on how they arrived: nothing
/// past the limit is looked at, so a head that is too large is refused whether it came in one piece or in many.
pub(crate) fn read_request(bytes: &[u8]) -> Asked<'_> {
    let head = match Head::read(bytes) {
        Ok(head) => head,
        Err(Unfit::Partial) => return Asked::Partial,
        Err(Unfit::Refused(refusal)) => return Asked::Refused(refusal),
    };
    let wishes = head.wishes;
    let mut visitor = wishes.visitor;
    visitor.head = head.method == "HEAD";
    if wishes.beyond_redirect
        || !matches!(head.method, "GET" | "HEAD")
        || head.target.len() > PLAIN_TARGET_BYTES_MAX
    {
        return Asked::Other;
    }
    let Some((key, query)) = key_and_query(head.target) else {
        return Asked::Other;
    };
    Asked::Plain(PlainGet {
        key,
        query,
        persistence: wishes.persistence,
        visitor,
        bytes: head.bytes,
    })
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
                body: head.wishes.body,
            })
        }
        Err(Unfit::Partial) => Framed::Partial,
        Err(Unfit::Refused(refusal)) => Framed::Refused(refusal),
    }
}

/// A complete head that keeps the rules.
struct Head<'a> {
    method: &'a str,
    target: &'a str,
    wishes: Wishes<'a>,
    bytes: usize,
}

enum Unfit {
    Partial,
    Refused(Refusal),
}

impl<'a> Head<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Unfit> {
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
            wishes: Wishes::of(request.headers, version).map_err(Unfit::Refused)?,
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
struct Wishes<'a> {
    persistence: Persistence,
    visitor: Visitor<'a>,
    body: BodyFraming,
    /// A body, an upgrade or an expectation: not for the redirect path.
    beyond_redirect: bool,
}

impl<'a> Wishes<'a> {
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
fn is_host(value: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Asked<'_> {
        read_request(text.as_bytes())
    }

    fn plain(text: &str) -> PlainGet<'_> {
        match asked(text) {
            Asked::Plain(plain) => plain,
            other => panic!("{text:?} is {other:?}"),
        }
    }

    #[test]
    fn a_plain_request_is_recognised_in_every_form() {
        for (line, key, query) in [
            ("GET /abc HTTP/1.1", "abc", None),
            ("HEAD /abc HTTP/1.1", "abc", None),
            ("GET /abc?x=1 HTTP/1.1", "abc", Some("x=1")),
            ("GET /abc? HTTP/1.1", "abc", Some("")),
            ("GET /A-z_0.9 HTTP/1.0", "A-z_0.9", None),
            ("GET http://host:80/abc HTTP/1.1", "abc", None),
            ("GET HTTPS://host/abc?q HTTP/1.1", "abc", Some("q")),
        ] {
            let text = format!("{line}\r\nHost: h\r\n\r\n");
            let plain = plain(&text);
            assert_eq!((plain.key, plain.query), (key, query), "{line}");
            assert_eq!(plain.bytes, text.len());
        }
    }

    #[test]
    fn what_tells_about_the_visitor_is_found() {
        let text = "HEAD /abc HTTP/1.1\r\nHost: h\r\nUSER-AGENT: Mozilla/5.0 (x)\r\nReferer: https://a.example/b\r\n\
            Accept-Language: de-CH, en\r\nX-Forwarded-For: 1.2.3.4, 10.0.0.1\r\nSec-Purpose: prefetch;prerender\r\n\r\n";
        let visitor = Visitor {
            agent: b"Mozilla/5.0 (x)",
            referrer: b"https://a.example/b",
            language: b"de-CH, en",
            forwarded_for: ForwardedFor {
                lines: [b"1.2.3.4, 10.0.0.1", b"", b""],
                count: 1,
            },
            prefetch: true,
            head: true,
        };
        assert_eq!(plain(text).visitor, visitor);
        assert_eq!(
            plain("GET /abc HTTP/1.1\r\nHost: h\r\n\r\n").visitor,
            Visitor::default()
        );
        for (field, prefetch) in [
            ("Purpose: prefetch", true),
            ("X-Moz: prefetch", true),
            ("purpose: Preview", true),
            ("Purpose: prefetching", false),
            ("Sec-Purpose: ", false),
        ] {
            let text = format!("GET /abc HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\n");
            assert_eq!(plain(&text).visitor.prefetch, prefetch, "{field}");
        }
    }

    #[test]
    fn every_line_of_x_forwarded_for_counts() {
        let with = |lines: usize| {
            let fields: String = (0..lines)
                .map(|n| format!("x-forwarded-for: {n}\r\n"))
                .collect();
            format!("GET /abc HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
        };
        let text = with(FORWARDED_LINES_MAX);
        let lines: Vec<_> = plain(&text).visitor.forwarded_for.last_first().collect();
        assert_eq!(lines, [b"2", b"1", b"0"]);
        assert_eq!(asked(&with(FORWARDED_LINES_MAX + 1)), Asked::Other);
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        for host in [
            "",
            "h",
            "go.example.com",
            "a_b.example",
            "127.0.0.1:80",
            "h:",
            "[::1]",
            "[::1]:8080",
            "xn--p1ai.",
            "a%41",
        ] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "a b", "a/b", "a@b", "h:x", "h:1:2", "[]", "[::1", "[::1]x", "[g]", "a\"b", "a<b",
            "a\\b", "é", "a?b", "a#b",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
            let text = format!("GET /abc HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(asked(&text), Asked::Refused(Refusal::Host), "{host}");
        }
    }

    #[test]
    fn a_frame_says_where_target_and_body_are() {
        for (fields, body) in [
            ("", BodyFraming::None),
            ("Content-Length: 12\r\n", BodyFraming::Length(12)),
            ("Transfer-Encoding: Chunked\r\n", BodyFraming::Chunked),
        ] {
            let text = format!("\r\nPOST /a/b?c HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            let Framed::Complete(frame) = frame_request(format!("{text}rest").as_bytes()) else {
                panic!("{text}");
            };
            assert_eq!((frame.bytes, frame.body), (text.len(), body));
            assert_eq!(&text[frame.target], "/a/b?c");
        }
    }

    #[test]
    fn everything_else_goes_to_the_router() {
        for (line, fields) in [
            ("GET / HTTP/1.1", ""),
            ("GET /a/b HTTP/1.1", ""),
            ("GET /a%41 HTTP/1.1", ""),
            ("GET /. HTTP/1.1", ""),
            ("GET ftp://h/abc HTTP/1.1", ""),
            ("GET http:///abc HTTP/1.1", ""),
            ("GET http://h?/abc HTTP/1.1", ""),
            ("GET http://h:/abc HTTP/1.1", ""),
            ("GET http://u@h/abc HTTP/1.1", ""),
            ("GET http://[::1]/abc HTTP/1.1", ""),
            ("OPTIONS * HTTP/1.1", ""),
            ("POST /abc HTTP/1.1", ""),
            ("get /abc HTTP/1.1", ""),
            ("GET /abc HTTP/1.1", "Content-Length: 0\r\n"),
            ("GET /abc HTTP/1.1", "transfer-encoding: chunked\r\n"),
            ("GET /abc HTTP/1.1", "EXPECT: 100-continue\r\n"),
            ("GET /abc HTTP/1.1", "Upgrade: h2c\r\n"),
        ] {
            let text = format!("{line}\r\nHost: h\r\n{fields}\r\n");
            assert_eq!(asked(&text), Asked::Other, "{line} {fields}");
        }
    }

    #[test]
    fn persistence_follows_version_and_connection_field() {
        for (version, field, expected) in [
            ("1.1", "", Persistence::Implied),
            ("1.1", "Connection: keep-alive\r\n", Persistence::Implied),
            ("1.1", "Connection: close\r\n", Persistence::Close),
            ("1.1", "Connection: TE, Close\r\n", Persistence::Close),
            ("1.0", "", Persistence::Close),
            ("1.0", "connection: Keep-Alive\r\n", Persistence::Stated),
            (
                "1.0",
                "Connection: keep-alive, close\r\n",
                Persistence::Close,
            ),
        ] {
            let text = format!("GET /abc HTTP/{version}\r\nHost: h\r\n{field}\r\n");
            assert_eq!(plain(&text).persistence, expected, "{version} {field}");
        }
    }

    #[test]
    fn what_cannot_become_a_request_is_refused() {
        let many = format!(
            "GET /abc HTTP/1.1\r\nHost: h\r\n{}\r\n",
            "a: b\r\n".repeat(HTTP_HEADERS_MAX)
        );
        let long_line = format!("GET /{}", "a".repeat(HTTP_HEAD_BYTES_MAX));
        let long_head = format!(
            "GET /abc HTTP/1.1\r\nx: {}",
            "a".repeat(HTTP_HEAD_BYTES_MAX)
        );
        for (text, refusal) in [
            ("\0", Refusal::Malformed),
            ("GET /a\0bc HTTP/1.1\r\n", Refusal::Malformed),
            (
                "GET /abc HTTP/1.1\r\nHost: h\r\nx: a\0b\r\n\r\n",
                Refusal::Malformed,
            ),
            (
                "GET /abc HTTP/1.1\r\nHost: h\r\nx: a\rb\r\n\r\n",
                Refusal::Malformed,
            ),
            (
                "GET /abc HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
                Refusal::Malformed,
            ),
            ("GET /abc HTTP/1.1\r\nHost : h\r\n\r\n", Refusal::Malformed),
            ("GET /abc\r\n\r\n", Refusal::Malformed),
            (
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
                Refusal::Framing,
            ),
            (
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n",
                Refusal::Framing,
            ),
            (
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +4\r\n\r\n",
                Refusal::Framing,
            ),
            (
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \r\n\r\n",
                Refusal::Framing,
            ),
            (
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n",
                Refusal::Framing,
            ),
            (
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n",
                Refusal::Framing,
            ),
            (
                "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
                Refusal::Framing,
            ),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Refusal::Version),
            ("GET /abc HTTP/1.1\r\n\r\n", Refusal::Host),
            (
                "GET /abc HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
                Refusal::Host,
            ),
            (many.as_str(), Refusal::TooManyHeaders),
            (long_line.as_str(), Refusal::UriTooLong),
            (long_head.as_str(), Refusal::HeadTooLarge),
        ] {
            assert_eq!(asked(text), Asked::Refused(refusal), "{:.60}", text);
        }
    }

    #[test]
    fn the_largest_head_is_accepted_and_one_byte_more_is_not() {
        let frame = "GET /abc HTTP/1.1\r\nHost: h\r\nx: \r\n\r\n";
        let fill = "a".repeat(HTTP_HEAD_BYTES_MAX - frame.len());
        let largest = format!("GET /abc HTTP/1.1\r\nHost: h\r\nx: {fill}\r\n\r\n");
        assert_eq!(plain(&largest).bytes, HTTP_HEAD_BYTES_MAX);
        let larger = format!("GET /abc HTTP/1.1\r\nHost: h\r\nx: {fill}a\r\n\r\n");
        assert_eq!(asked(&larger), Asked::Refused(Refusal::HeadTooLarge));
    }

    #[test]
    fn a_bare_line_feed_ends_a_line() {
        assert_eq!(plain("GET /abc HTTP/1.1\nHost: h\n\n").key, "abc");
    }

    #[test]
    fn every_cut_of_a_request_is_partial() {
        let text = "\r\nGET /abc?x HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n";
        for cut in 0..text.len() {
            assert_eq!(asked(&text[..cut]), Asked::Partial, "{cut}");
        }
        assert_eq!(plain(text).bytes, text.len());
    }
}
