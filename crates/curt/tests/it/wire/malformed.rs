//! Requests that are not understood: bad JSON, bad headers, too much of something, not HTTP at all.

use serde_json::json;

use super::raw::{RawAnswer, ask, exchange, request, split};
use super::{no_server_errors, problem};
use crate::site::Site;

fn send(site: &Site, method: &str, path: &str, fields: &str, body: &[u8]) -> RawAnswer {
    let authorization = format!("Authorization: Bearer {}\r\n", site.token());
    let mut bytes = request(method, path, &format!("{authorization}{fields}"), "");
    if !body.is_empty() {
        bytes.truncate(bytes.len() - 2);
        bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
        bytes.extend(body);
    }
    ask(site.http(), &bytes)
}

const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn a_body_that_is_not_what_it_says_is_a_4xx() {
    let site = Site::start(&[]);
    let deep = vec![b'['; 10_000];
    let cases: [(&str, &[u8], u16, &str); 9] = [
        (JSON, b"", 400, "malformed-json"),
        (JSON, b"{", 400, "malformed-json"),
        (JSON, b"{}}", 400, "malformed-json"),
        (JSON, b"{'target':1}", 400, "malformed-json"),
        (JSON, b"{\"\xff\xfe\":1}", 400, "malformed-json"),
        (JSON, &deep, 400, "malformed-json"),
        (
            "",
            b"{\"target\":\"https://example.com/\"}",
            415,
            "unsupported-media-type",
        ),
        (
            "Content-Type: text/plain\r\n",
            b"{}",
            415,
            "unsupported-media-type",
        ),
        (
            "Content-Type: application/xml\r\n",
            b"<a/>",
            415,
            "unsupported-media-type",
        ),
    ];
    for path in ["/api/v1/links", "/api/v1/links/bulk"] {
        for (fields, body, status, code) in cases {
            let context = format!("{path} {fields}{:.60}", String::from_utf8_lossy(body));
            let answer = send(&site, "POST", path, fields, body);
            let said = problem(&answer, &context);
            // What has the wrong shape before its syntax breaks may be told so first.
            let named_first = answer.status == 422 && said == "invalid-input";
            assert!(
                (answer.status, said.as_str()) == (status, code) || named_first,
                "{context}: {answer}"
            );
        }
    }
    for (path, bytes) in [
        ("/api/v1/links", 64 * 1_024),
        ("/api/v1/links/bulk", 4 * 1_024 * 1_024),
    ] {
        let body = vec![b' '; bytes + 1];
        let answer = send(&site, "POST", path, JSON, &body);
        assert_eq!(
            (answer.status, problem(&answer, path).as_str()),
            (413, "body-too-large")
        );
    }
    no_server_errors(&site.metrics());
}

#[test]
fn a_header_that_cannot_be_read_is_a_4xx() {
    let site = Site::start(&[]);
    let link = json!({ "target": "https://example.com/", "alias": "mine" }).to_string();
    let made = send(&site, "POST", "/api/v1/links", JSON, link.as_bytes());
    assert_eq!(made.status, 201, "{made}");
    let long = format!("Idempotency-Key: {}\r\n", "k".repeat(256));
    for (method, path, fields, status, code) in [
        (
            "PATCH",
            "/api/v1/links/mine",
            "If-Match: 1.1\r\n",
            400,
            "malformed-request",
        ),
        (
            "PATCH",
            "/api/v1/links/mine",
            "If-Match: \"9.9\"\r\n",
            412,
            "stale-revision",
        ),
        (
            "DELETE",
            "/api/v1/links/mine",
            "If-Match: \"9.9\"\r\n",
            412,
            "stale-revision",
        ),
        (
            "POST",
            "/api/v1/links",
            long.as_str(),
            400,
            "malformed-request",
        ),
        (
            "POST",
            "/api/v1/links",
            "Idempotency-Key: \r\n",
            400,
            "malformed-request",
        ),
        (
            "POST",
            "/api/v1/links",
            "Idempotency-Key: a b\r\n",
            400,
            "malformed-request",
        ),
    ] {
        let body: &[u8] = match method {
            "DELETE" => b"",
            _ => b"{\"target\":\"https://example.com/2\"}",
        };
        let answer = send(&site, method, path, &format!("{JSON}{fields}"), body);
        let context = format!("{method} {path} {fields}");
        assert_eq!(answer.status, status, "{context}: {answer}");
        assert_eq!(problem(&answer, &context), code);
    }
    let followed = site.api().follow("mine").unwrap();
    assert_eq!(followed.header("location"), Some("https://example.com/"));
}

#[test]
fn a_repeated_create_with_the_same_idempotency_key_makes_one_link() {
    let site = Site::start(&[]);
    let fields = format!("{JSON}Idempotency-Key: order-66\r\n");
    let body = b"{\"target\":\"https://example.com/once\"}";
    let first = send(&site, "POST", "/api/v1/links", &fields, body);
    let again = send(&site, "POST", "/api/v1/links", &fields, body);
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(first.header("location"), again.header("location"));
    let other = b"{\"target\":\"https://example.com/other\"}";
    let other = send(&site, "POST", "/api/v1/links", &fields, other);
    assert_eq!(other.status, 422, "{other}");
    assert_eq!(problem(&other, "another body"), "idempotency-mismatch");
    let page = site.api().get("/api/v1/links").unwrap().json();
    assert_eq!(page["links"].as_array().unwrap().len(), 1);
}

#[test]
fn bytes_that_are_not_a_request_are_answered_once_and_the_connection_closed() {
    let site = Site::start(&[]);
    let long_line = format!("GET /{} HTTP/1.1\r\nHost: t\r\n\r\n", "a".repeat(17_000));
    let long_head = format!(
        "GET /a HTTP/1.1\r\nHost: t\r\nX: {}\r\n\r\n",
        "a".repeat(17_000)
    );
    let long_query = format!(
        "GET /api?{} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n",
        "a".repeat(13_000)
    );
    let many = format!(
        "GET /a HTTP/1.1\r\nHost: t\r\n{}\r\n",
        "X: y\r\n".repeat(64)
    );
    for (bytes, status, code) in [
        ("\0\0\0\0\r\n\r\n", 400, "malformed-request"),
        (
            "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\r\n\r\n",
            400,
            "malformed-request",
        ),
        ("GET /a\r\n\r\n", 400, "malformed-request"),
        ("GET /a HTTP/1.1\r\n\r\n", 400, "malformed-request"),
        (
            "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            400,
            "malformed-request",
        ),
        (
            "GET /a HTTP/1.1\r\nHost : a\r\n\r\n",
            400,
            "malformed-request",
        ),
        (
            "GET /a HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            400,
            "malformed-request",
        ),
        (
            "GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n",
            400,
            "malformed-request",
        ),
        (long_line.as_str(), 414, "uri-too-long"),
        (long_query.as_str(), 414, "uri-too-long"),
        (long_head.as_str(), 431, "head-too-large"),
        (many.as_str(), 431, "head-too-large"),
        // The one answer above 499: the protocol has no other word for a version that is not spoken.
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            505,
            "version-not-supported",
        ),
    ] {
        let context = format!("{bytes:.80?}");
        let answer = ask(site.http(), bytes.as_bytes());
        assert_eq!(answer.status, status, "{context}: {answer}");
        assert_eq!(problem(&answer, &context), code, "{context}");
    }
    no_server_errors(&site.metrics());
}

#[test]
fn a_request_cannot_be_smuggled_behind_another() {
    let site = Site::start(&[]);
    let secret = "GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n";
    for framing in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: 4, 5\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
    ] {
        let bytes = format!(
            "POST /api/v1/links HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{framing}\r\n0\r\n\r\n{secret}"
        );
        let answers = split(&exchange(site.http(), bytes.as_bytes()), &[]);
        assert_eq!(answers.len(), 1, "{framing} let a second request through");
        assert_eq!(answers[0].status, 400, "{framing}: {}", answers[0]);
        problem(&answers[0], framing);
        // The same behind a request that hyper has served already.
        let behind = format!("GET /health/live HTTP/1.1\r\nHost: t\r\n\r\n{bytes}");
        let answers = split(&exchange(site.http(), behind.as_bytes()), &[]);
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert!(
            matches!(statuses.as_slice(), [200, 400 | 401]),
            "{framing} let a second request through: {statuses:?}"
        );
    }
    no_server_errors(&site.metrics());
}
