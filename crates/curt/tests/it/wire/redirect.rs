//! The redirect, byte by byte.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::raw::{RawAnswer, ask, exchange, request, split};
use super::{no_server_errors, problem};
use crate::site::Site;

const TARGET: &str = "https://example.com/a?b=c#d";

fn with_link(fields: &Value) -> (Site, String) {
    let site = Site::start(&[]);
    let key = new_link(&site, fields);
    (site, key)
}

fn new_link(site: &Site, fields: &Value) -> String {
    let mut link = json!({ "target": TARGET });
    link.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let answer = site.api().post("/api/v1/links", &link).unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["key"].as_str().unwrap().to_owned()
}

/// The head without the value of the date, which must be one.
fn lines_of(answer: &RawAnswer) -> Vec<String> {
    assert!(answer.body.is_empty(), "{answer}");
    answer
        .head
        .iter()
        .map(|line| match line.strip_prefix("date: ") {
            Some(date) => {
                assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
                "date".to_owned()
            }
            None => line.clone(),
        })
        .collect()
}

fn expected(status: &str, cache: &str, location: &str, last: Option<&str>) -> Vec<String> {
    let cache = format!("cache-control: private, {cache}");
    let location = format!("location: {location}");
    let mut lines = vec![
        status,
        "date",
        &cache,
        "x-robots-tag: noindex",
        "referrer-policy: strict-origin-when-cross-origin",
        "content-length: 0",
        &location,
    ];
    lines.extend(last);
    lines.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_head_holds_exactly_these_lines() {
    let site = Site::start(&[]);
    for (code, reason, cache) in [
        (301, "Moved Permanently", "max-age=30"),
        (302, "Found", "no-store"),
        (307, "Temporary Redirect", "no-store"),
        (308, "Permanent Redirect", "max-age=30"),
    ] {
        let key = new_link(&site, &json!({ "redirect_status": code }));
        let status = format!("HTTP/1.1 {code} {reason}");
        let closing = expected(&status, cache, TARGET, Some("connection: close"));
        for method in ["GET", "HEAD", "GET"] {
            let answer = ask(site.http(), &request(method, &format!("/{key}"), "", ""));
            assert_eq!(lines_of(&answer), closing, "{method}");
        }
    }
    no_server_errors(&site.metrics());
}

#[test]
fn a_link_after_a_restart_is_answered_alike_cold_and_warm() {
    let (mut site, key) = with_link(&json!({}));
    assert!(site.terminate().success());
    site.restart();
    let head = expected(
        "HTTP/1.1 302 Found",
        "no-store",
        TARGET,
        Some("connection: close"),
    );
    for state in ["cold", "warm"] {
        let answer = ask(site.http(), &request("GET", &format!("/{key}"), "", ""));
        assert_eq!(lines_of(&answer), head, "{state}");
    }
}

#[test]
fn a_query_cannot_inject_a_header_or_move_the_visitor() {
    let (site, key) = with_link(&json!({ "forward_query": true }));
    let silent = new_link(&site, &json!({ "forward_query": false }));
    for (query, forwarded) in [
        ("x=1", "x=1"),
        ("x=%0d%0aSet-Cookie:%20a=b", "x=%0d%0aSet-Cookie:%20a=b"),
        ("x=%0D%0A%0D%0A<html>", "x=%0D%0A%0D%0A%3Chtml%3E"),
        ("\u{e9}=\"", "%C3%A9=%22"),
        ("@evil.example/", "@evil.example/"),
        ("a#b", "a"),
    ] {
        let answer = ask(
            site.http(),
            &request("GET", &format!("/{key}?{query}"), "", ""),
        );
        if answer.status == 400 {
            // A fragment or a raw byte has no place in a request target; refusing is right as well.
            problem(&answer, query);
            continue;
        }
        let location = answer.header("location").unwrap();
        let whole = format!("https://example.com/a?b=c&{forwarded}#d");
        let encoded = whole.replace("&a#d", "&a%23b#d");
        assert!(
            location == whole || location == encoded,
            "{query}: {location}"
        );
        assert_eq!(answer.head.len(), 8, "{query}: {answer}");
        assert!(answer.header("set-cookie").is_none());
        let plain = ask(
            site.http(),
            &request("GET", &format!("/{silent}?{query}"), "", ""),
        );
        assert_eq!(plain.header("location"), Some(TARGET), "{query}");
    }
    for bytes in [
        format!("GET /{key}?x=\rSet-Cookie:a=b HTTP/1.1\r\nHost: t\r\n\r\n"),
        format!("GET /{key}?x=\0 HTTP/1.1\r\nHost: t\r\n\r\n"),
    ] {
        let answer = ask(site.http(), bytes.as_bytes());
        assert_eq!(answer.status, 400, "{bytes:?}: {answer}");
        problem(&answer, &bytes);
    }
    // A line end in the query ends the request line; what follows is a header of the request, not of the answer.
    let split_line = format!(
        "GET /{key}?x= HTTP/1.1\r\nSet-Cookie: a=b\r\nHost: t\r\nConnection: close\r\n\r\n"
    );
    let answer = ask(site.http(), split_line.as_bytes());
    assert!(answer.header("set-cookie").is_none(), "{answer}");
    no_server_errors(&site.metrics());
}

#[test]
fn http_1_0_is_answered_and_closed_unless_it_asks_to_stay() {
    let (site, key) = with_link(&json!({}));
    let plain = format!("GET /{key} HTTP/1.0\r\n\r\n");
    let answer = ask(site.http(), plain.as_bytes());
    let close = Some("connection: close");
    assert_eq!(
        lines_of(&answer),
        expected("HTTP/1.1 302 Found", "no-store", TARGET, close)
    );
    let staying = format!("GET /{key} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n{plain}");
    let answers = split(&exchange(site.http(), staying.as_bytes()), &[]);
    assert_eq!(answers.len(), 2);
    let stated = Some("connection: keep-alive");
    assert_eq!(
        lines_of(&answers[0]),
        expected("HTTP/1.1 302 Found", "no-store", TARGET, stated)
    );
}

#[test]
fn pipelined_requests_are_answered_in_order_across_both_paths() {
    let (site, key) = with_link(&json!({}));
    let other = new_link(&site, &json!({ "target": "https://example.com/other" }));
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n");
    let bytes = [
        get(&format!("/{key}")),
        get(&format!("/{other}")),
        format!("HEAD /{key} HTTP/1.1\r\nHost: t\r\n\r\n"),
        get("/nosuchkey"),
        get(&format!("http://t/{other}")),
        get("/api/v1/links"),
        String::from_utf8(request("GET", &format!("/{key}"), "", "")).unwrap(),
    ]
    .concat();
    // In one piece, and byte by byte.
    for pieces in [bytes.len(), 1] {
        let answers = split(&in_pieces(site.http(), bytes.as_bytes(), pieces), &[]);
        let seen: Vec<(u16, Option<&str>)> = answers
            .iter()
            .map(|answer| (answer.status, answer.header("location")))
            .collect();
        let second = Some("https://example.com/other");
        assert_eq!(
            seen,
            [
                (302, Some(TARGET)),
                (302, second),
                (302, Some(TARGET)),
                (404, None),
                (302, second),
                (401, None),
                (302, Some(TARGET)),
            ]
        );
    }
}

fn in_pieces(addr: SocketAddr, bytes: &[u8], size: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    for piece in bytes.chunks(size) {
        stream.write_all(piece).unwrap();
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn every_spelling_of_a_request_finds_the_link() {
    let (site, _) = with_link(&json!({ "alias": "abc" }));
    for target in [
        "/abc",
        "/abc/",
        "/abc?",
        "/%61bc",
        "/ab%63?x=1",
        "http://anything.example/abc",
        "HTTP://anything.example:80/abc?x=1",
    ] {
        let answer = ask(site.http(), &request("GET", target, "", ""));
        assert_eq!(
            (answer.status, answer.header("location")),
            (302, Some(TARGET)),
            "{target}: {answer}"
        );
    }
    for (target, status) in [
        ("/ABC", 404),
        ("/abd", 404),
        ("/abc%00", 404),
        ("/abc%2f", 404),
        ("/%ff%fe", 404),
        ("//abc", 404),
        ("/../abc", 404),
        ("/abc/def", 404),
        ("/a%", 404),
    ] {
        let answer = ask(site.http(), &request("GET", target, "", ""));
        assert!(
            answer.status == status || answer.status == 400,
            "{target}: {answer}"
        );
        problem(&answer, target);
    }
    no_server_errors(&site.metrics());
}

#[test]
fn a_browser_gets_a_page_and_a_program_a_document() {
    let (site, key) = with_link(&json!({}));
    assert_eq!(site.api().delete(&key).unwrap().status, 204);
    for (path, status, code) in [
        ("/nosuchkey".to_owned(), 404, "link-not-found"),
        (format!("/{key}"), 410, "link-gone"),
    ] {
        let answer = ask(site.http(), &request("GET", &path, "", ""));
        assert_eq!(
            (answer.status, problem(&answer, &path).as_str()),
            (status, code)
        );
        let accept = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
        let page = ask(site.http(), &request("GET", &path, accept, ""));
        assert_eq!(page.status, status);
        assert_eq!(
            page.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert_eq!(page.header("cache-control"), Some("no-store"));
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        let text = String::from_utf8(page.body).unwrap();
        assert!(text.contains("<html") && !text.contains(TARGET), "{text}");
    }
}
