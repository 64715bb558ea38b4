//! H18: slow clients are cut off, on the redirect path and behind it.

use std::io::Write;
use std::time::{Duration, Instant};

use curt_http::ServerSettings;
use curt_http::metrics::CutReason;
use curt_testkit::length::{is_full, time_max};

use crate::client::Client;
use crate::host::{Host, impatient};

/// With the settings of [`impatient`].
const CUT_WITHIN: Duration = Duration::from_millis(900);

/// Sends one byte after the other, more slowly than the server likes, until it closes; returns how long that took.
fn dribble(client: &mut Client, bytes: &[u8], pause: Duration) -> Duration {
    let start = Instant::now();
    for byte in bytes.iter().cycle() {
        if client.stream.write_all(&[*byte]).is_err() || client.is_closed() {
            break;
        }
        assert!(start.elapsed() < 2 * time_max(CUT_WITHIN), "never cut off");
        std::thread::sleep(pause);
    }
    start.elapsed()
}

#[test]
fn the_defaults_cut_a_slow_header_within_ten_seconds() {
    let settings = ServerSettings::default();
    // The tick that deadlines are rounded up to is at most half a second.
    assert!(settings.header_timeout + Duration::from_secs(1) <= Duration::from_secs(10));
    assert!(settings.body_timeout <= Duration::from_secs(10));
    assert!(settings.write_timeout <= Duration::from_secs(10));
}

#[test]
fn a_header_that_dribbles_in_is_cut_off() {
    let host = Host::with(impatient);
    let mut client = Client::connect(host.address);
    client.send("GET /plain HTTP/1.1\r\nHost: h\r\n");
    let took = dribble(&mut client, b"x: y\r\n", Duration::from_millis(40));
    assert!(took < time_max(CUT_WITHIN), "cut after {took:?}");
    assert_eq!(host.cut(CutReason::HeaderTimeout), 1);
}

#[test]
fn a_slow_header_gets_a_last_word() {
    let host = Host::with(impatient);
    let mut client = Client::connect(host.address);
    client.send("GET /pl");
    let response = client.response();
    assert_eq!(
        (response.status, response.field("connection")),
        (408, Some("close"))
    );
    client.closed();
}

#[test]
fn the_time_for_a_header_starts_anew_with_each_request() {
    // Several times the pause, and less than all of them together.
    let host = Host::with(|settings| settings.header_timeout = Duration::from_secs(5));
    let mut client = Client::connect(host.address);
    for _ in 0..4 {
        client.send("GET /plain HTTP/1.1\r\nHo");
        std::thread::sleep(Duration::from_millis(1_500));
        client.send("st: h\r\n\r\n");
        assert_eq!(client.response().status, 302);
    }
}

#[test]
fn a_header_that_dribbles_in_behind_the_router_is_cut_off() {
    let host = Host::with(impatient);
    let mut client = Client::connect(host.address);
    assert_eq!(client.get("/").status, 200);
    client.send("GET / HTTP/1.1\r\nHost: h\r\n");
    let took = dribble(&mut client, b"x: y\r\n", Duration::from_millis(40));
    assert!(took < time_max(CUT_WITHIN), "cut after {took:?}");
    assert_eq!(host.cut(CutReason::HeaderTimeout), 1);
}

#[test]
fn a_body_that_dribbles_in_is_cut_off() {
    let host = Host::with(impatient);
    let mut client = Client::connect(host.address);
    client.send("POST /api/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
    let took = dribble(&mut client, b"x", Duration::from_millis(40));
    assert!(took < time_max(CUT_WITHIN), "cut after {took:?}");
    assert_eq!(host.cut(CutReason::BodyTimeout), 1);
}

#[test]
fn idle_connections_are_closed_on_both_sides_but_not_before_their_time() {
    let host = Host::with(|settings| {
        impatient(settings);
        settings.idle_timeout = Duration::from_secs(4);
    });
    for path in ["/plain", "/"] {
        let mut client = Client::connect(host.address);
        client.get(path);
        // Longer than a header may take: idling is not a slow header.
        std::thread::sleep(Duration::from_millis(800));
        client.get(path);
        let took = client.closed();
        if is_full() {
            let expected = Duration::from_millis(3_800)..Duration::from_millis(6_000);
            assert!(expected.contains(&took), "{path}: closed after {took:?}");
        }
    }
    let mut silent = Client::connect(host.address);
    silent.closed();
    assert_eq!(host.cut(CutReason::Idle), 3);
}

#[test]
fn a_client_that_never_reads_is_cut_off() {
    let host = Host::with(impatient);
    let mut client = Client::connect(host.address);
    client
        .stream
        .set_write_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let requests = "GET /plain HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1_000);
    // Ends with an error when the server has had enough.
    let start = Instant::now();
    while client.stream.write_all(requests.as_bytes()).is_ok() {
        assert!(
            start.elapsed() < time_max(Duration::from_secs(30)),
            "never cut"
        );
    }
    assert_eq!(host.cut(CutReason::WriteTimeout), 1);
}

#[test]
fn a_client_that_never_reads_a_large_answer_is_cut_off() {
    let host = Host::with(impatient);
    let mut client = Client::connect(host.address);
    client.send("GET /api/big HTTP/1.1\r\nHost: h\r\n\r\n".repeat(8));
    let start = Instant::now();
    while host.cut(CutReason::WriteTimeout) == 0 {
        assert!(
            start.elapsed() < time_max(Duration::from_secs(10)),
            "never cut"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
