//! I1, I2, I9, I10: what a redirect looks like for every kind of request.

use std::time::Duration;

use curt_core::{Clock, RedirectStatus, SystemClock};

use crate::client::Client;
use crate::host::{Host, LINKS};

#[test]
fn every_link_redirects_with_its_status_and_fields() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    for (key, target, status, _) in LINKS {
        for _ in 0..2 {
            let response = client.get(&format!("/{key}"));
            assert_eq!(response.status, status.code());
            assert_eq!(response.field("location"), Some(target));
            let cache_control = if status.is_permanent() {
                "private, max-age=30"
            } else {
                "private, no-store"
            };
            assert_eq!(response.field("cache-control"), Some(cache_control));
            assert_eq!(response.field("x-robots-tag"), Some("noindex"));
            assert_eq!(
                response.field("referrer-policy"),
                Some("strict-origin-when-cross-origin")
            );
            assert_eq!(response.field("content-length"), Some("0"));
            assert_eq!(response.field("connection"), None);
        }
    }
}

#[test]
fn head_has_the_same_fields_and_no_body() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    let get = client.get("/plain");
    client.send("HEAD /plain HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.response_to("HEAD"), get);
    assert_eq!(client.get("/plain"), get);
}

#[test]
fn the_absolute_form_is_understood() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    let direct = client.get("/plain");
    assert_eq!(client.get("http://short.example:8080/plain"), direct);
    assert_eq!(client.get("HTTPS://short.example/plain?x"), direct);
}

#[test]
fn connection_close_is_obeyed() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    client.send("GET /plain HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let response = client.response();
    assert_eq!(
        (response.status, response.field("connection")),
        (302, Some("close"))
    );
    client.closed();
}

#[test]
fn requests_after_connection_close_are_not_answered() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    client.send("GET /plain HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /moved HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.response().status, 302);
    client.closed();
}

#[test]
fn http_1_0_closes_unless_asked_to_stay() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    client.send("GET /plain HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(client.response().field("connection"), Some("keep-alive"));
    client.send("GET /plain HTTP/1.0\r\n\r\n");
    let response = client.response();
    assert_eq!(
        (response.status, response.field("connection")),
        (302, Some("close"))
    );
    client.closed();
}

#[test]
fn what_is_not_a_redirect_is_served_by_the_router() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    assert_eq!(client.get("/plain").status, 302);
    assert_eq!(client.get("/").text(), "home");
    assert_eq!(client.get("/api/name/x%20y").text(), "x y");
    client.send("POST /api/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.response().text(), "hello");
    client.send("POST /api/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(client.response().text(), "abc");
}

#[test]
fn a_key_without_a_link_is_the_routers_to_answer() {
    let host = Host::start();
    for path in ["/absent", "/favicon.ico", "/METRICS", "/case-sensitive_1.x"] {
        let response = Client::connect(host.address).get(path);
        assert_eq!(
            (response.status, response.text()),
            (404, "nothing here"),
            "{path}"
        );
    }
}

#[test]
fn a_large_body_passes_the_hand_over_whole() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    let body: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    client.send(format!(
        "POST /api/echo HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    client.send(&body);
    assert_eq!(client.response().body, body);
}

#[test]
fn a_link_made_while_serving_is_found() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    assert_eq!(client.get("/plain").status, 302);
    host.add(
        "later",
        "https://example.com/later",
        RedirectStatus::Found,
        false,
    );
    assert_eq!(
        client.get("/later").field("location"),
        Some("https://example.com/later")
    );
}

#[test]
fn no_browser_keeps_a_permanent_redirect_past_the_end_of_its_link() {
    let host = Host::start();
    let now = SystemClock.now();
    host.add_until("long", now.plus(Duration::from_secs(3_600)));
    host.add_until("short", now.plus(Duration::from_secs(25)));
    host.add_until("over", now);
    let mut client = Client::connect(host.address);
    let mut cache_control = |path| client.get(path).field("cache-control").map(str::to_owned);
    assert_eq!(
        cache_control("/long").as_deref(),
        Some("private, max-age=30")
    );
    assert_eq!(
        cache_control("/short").as_deref(),
        Some("private, no-store")
    );
    assert_eq!(client.get("/over").status, 404);
}

#[test]
fn redirects_are_counted_by_outcome() {
    use curt_http::metrics::{RedirectLabels, RedirectOutcome};

    let host = Host::with(|settings| settings.workers = 1);
    let metrics = host.metrics.clone();
    let mut client = Client::connect(host.address);
    for _ in 0..10 {
        client.get("/plain");
    }
    assert_eq!(metrics.connections.get(), 1);
    drop(client);
    host.stopped();
    let count = |outcome| {
        let labels = RedirectLabels { outcome };
        metrics.redirects.get_or_create(&labels).get()
    };
    assert_eq!(count(RedirectOutcome::Loaded), 1);
    assert_eq!(count(RedirectOutcome::Hit), 9);
    assert_eq!(metrics.connections.get(), 0);
}
