mod fuzz;

use curt_core::limits::{HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX};

use super::head::{FORWARDED_LINES_MAX, ForwardedFor, is_host};
use super::*;

fn asked(text: &str) -> ParsedRequest<'_> {
    read_request(text.as_bytes())
}

fn plain(text: &str) -> PlainGet<'_> {
    match asked(text) {
        ParsedRequest::Plain(plain) => plain,
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
    assert_eq!(asked(&with(FORWARDED_LINES_MAX + 1)), ParsedRequest::Other);
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
        "a b", "a/b", "a@b", "h:x", "h:1:2", "[]", "[::1", "[::1]x", "[g]", "a\"b", "a<b", "a\\b",
        "é", "a?b", "a#b",
    ] {
        assert!(!is_host(host.as_bytes()), "{host}");
        let text = format!("GET /abc HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(
            asked(&text),
            ParsedRequest::Refused(Refusal::Host),
            "{host}"
        );
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
        assert_eq!(asked(&text), ParsedRequest::Other, "{line} {fields}");
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
        assert_eq!(asked(text), ParsedRequest::Refused(refusal), "{:.60}", text);
    }
}

#[test]
fn the_largest_head_is_accepted_and_one_byte_more_is_not() {
    let frame = "GET /abc HTTP/1.1\r\nHost: h\r\nx: \r\n\r\n";
    let fill = "a".repeat(HTTP_HEAD_BYTES_MAX - frame.len());
    let largest = format!("GET /abc HTTP/1.1\r\nHost: h\r\nx: {fill}\r\n\r\n");
    assert_eq!(plain(&largest).bytes, HTTP_HEAD_BYTES_MAX);
    let larger = format!("GET /abc HTTP/1.1\r\nHost: h\r\nx: {fill}a\r\n\r\n");
    assert_eq!(
        asked(&larger),
        ParsedRequest::Refused(Refusal::HeadTooLarge)
    );
}

#[test]
fn a_bare_line_feed_ends_a_line() {
    assert_eq!(plain("GET /abc HTTP/1.1\nHost: h\n\n").key, "abc");
}

#[test]
fn every_cut_of_a_request_is_partial() {
    let text = "\r\nGET /abc?x HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n";
    for cut in 0..text.len() {
        assert_eq!(asked(&text[..cut]), ParsedRequest::Partial, "{cut}");
    }
    assert_eq!(plain(text).bytes, text.len());
}
