//! One set of rules: a request gets the same answer, and its connection the same fate, whether a redirect worker reads
//! it first or hyper reads it behind others. Each case goes over the wire both ways.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use curt_core::limits::{HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX, HTTP_URI_BYTES_MAX};
use curt_http::server::Server;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::harness::World;

/// No case takes longer.
const WAIT_MAX: Duration = Duration::from_secs(20);
const PROBE: &str = "GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n";

/// What came of a request.
#[derive(Debug, PartialEq, Eq)]
struct Fate {
    status: u16,
    location: Option<String>,
    closed: bool,
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    server: JoinHandle<std::io::Result<curt_http::server::DrainReport>>,
}

impl Running {
    /// Serves the world's router behind redirect workers, as the product does.
    pub(crate) fn of(world: &World) -> Self {
        let mut settings = world.app.settings.clone();
        settings.server.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        settings.server.workers = 1;
        settings.server.body_timeout = WAIT_MAX;
        let app = &world.app;
        let server = Server::bind(
            &settings,
            app.resolver.clone(),
            app.clock.clone(),
            app.metrics.clone(),
            world.router.clone(),
        );
        let server = server.unwrap();
        let (address, stop) = (server.local_addr(), CancellationToken::new());
        Self {
            address,
            server: tokio::spawn(server.run(stop.clone())),
            stop,
        }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.server.await.unwrap().unwrap();
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends `request` on a new connection, after a first one that took the connection to hyper if that is asked for, and a
/// probe behind it.
fn send(address: SocketAddr, request: &[u8], behind_another: bool) -> Fate {
    let mut stream = connect(address);
    if behind_another {
        stream.write_all(PROBE.as_bytes()).unwrap();
        assert_eq!(next_response(&mut stream).unwrap().0, 200);
    }
    stream.write_all(request).unwrap();
    let (status, location) = next_response(&mut stream).unwrap_or((0, None));
    // It may have been closed already.
    let probed = stream.write_all(PROBE.as_bytes()).is_ok();
    let closed = !probed || next_response(&mut stream).is_none();
    let _ended = stream.shutdown(Shutdown::Both);
    Fate {
        status,
        location,
        closed,
    }
}

/// The next response's status and target, or nothing when the connection is closed.
fn next_response(stream: &mut TcpStream) -> Option<(u16, Option<String>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(next_byte(stream)?);
    }
    let head = String::from_utf8(head).unwrap();
    let field = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(field, value)| field.eq_ignore_ascii_case(name).then_some(value))
    };
    let length: usize = field("content-length").map_or(0, |text| text.parse().unwrap());
    for _ in 0..length {
        next_byte(stream)?;
    }
    Some((
        head[9..12].parse().unwrap(),
        field("location").map(str::to_owned),
    ))
}

fn next_byte(stream: &mut TcpStream) -> Option<u8> {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(0) => None,
        Ok(_) => Some(byte[0]),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
        Err(error) => panic!("no answer: {error}"),
    }
}

/// Cases that a redirect worker or the reader before hyper refuses, with their status.
fn refused_cases() -> Vec<(String, u16)> {
    let get = |fields: &str| format!("GET /plain HTTP/1.1\r\n{fields}\r\n");
    let post = |fields: &str| format!("POST /api/v1/links HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let long = "a".repeat(HTTP_HEAD_BYTES_MAX);
    let many = "x: y\r\n".repeat(HTTP_HEADERS_MAX);
    let mut cases: Vec<_> = [
        // Host
        get(""),
        get("Host: a\r\nHost: a\r\n"),
        get("Host: a\r\nhost: b\r\n"),
        get("Host: a b\r\n"),
        get("Host: a/b\r\n"),
        get("Host: a@b\r\n"),
        get("Host: h:x\r\n"),
        get("Host: [::1\r\n"),
        get("Host: \"><x\r\n"),
        "GET /health/live HTTP/1.1\r\n\r\n".to_owned(),
        "GET /plain HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(),
        // Framing
        post("Content-Length: 4\r\nContent-Length: 4\r\n") + "abcd",
        post("Content-Length: 4\r\nContent-Length: 5\r\n") + "abcd",
        post("Content-Length: 4, 4\r\n") + "abcd",
        post("Content-Length: +4\r\n") + "abcd",
        post("Content-Length: 99999999999999999999\r\n"),
        post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n",
        post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n") + "0\r\n\r\n",
        post("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n",
        post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n",
        post("Transfer-Encoding: identity\r\n"),
        get("Host: h\r\nContent-Length: 0\r\nContent-Length: 0\r\n"),
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        // Not a request
        get("Host: h\r\nx: a\0b\r\n"),
        get("Host: h\r\n folded\r\n"),
        get("Host : h\r\n"),
        "garbage\r\n\r\n".to_owned(),
        "GET /plain?a\tb HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
    ]
    .map(|case| (case, 400))
    .into();
    cases.extend([
        (get(&format!("Host: h\r\nx: {long}\r\n")), 431),
        (get(&format!("Host: h\r\n{many}")), 431),
        (format!("GET /{long} HTTP/1.1\r\nHost: h\r\n\r\n"), 414),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 505),
    ]);
    cases
}

/// Cases that are answered, with their status.
fn answered_cases() -> Vec<(String, u16)> {
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
    let with = |fields: &str| format!("GET /plain HTTP/1.1\r\n{fields}\r\n");
    let mut cases = vec![
        (get("/plain"), 302),
        ("HEAD /plain HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 302),
        (get("/nope"), 404),
        (get("http://short.example/plain?x"), 302),
        (get("http://short.example:8080/plain"), 302),
        (get("http://[::1]:8080/plain"), 302),
        (with("Host: \r\n"), 302),
        (with("Host: go.example.com:443\r\n"), 302),
        (with("Host: [2001:db8::1]:443\r\n"), 302),
        (
            with("Host: h\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: x\r\n"),
            302,
        ),
        (with("Host: h\r\nContent-Length: 4\r\n") + "abcd", 302),
        (
            with("Host: h\r\nTransfer-Encoding: chunked\r\n") + "4\r\nabcd\r\n0\r\n\r\n",
            302,
        ),
        (
            with("Host: h\r\nTransfer-Encoding: chunked\r\n") + "1;a=b\r\nx\r\n0\r\nT: x\r\n\r\n",
            302,
        ),
        (
            "GET /plain HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_owned(),
            302,
        ),
        ("GET /plain HTTP/1.0\r\n\r\n".to_owned(), 302),
        ("GET /plain HTTP/1.1\nHost: h\n\n".to_owned(), 302),
        (with("Host: h\r\nConnection: close\r\n"), 302),
        (get(&format!("/forward?{}", "q".repeat(5_000))), 302),
        (
            get(&format!("/plain?{}", "q".repeat(HTTP_URI_BYTES_MAX))),
            414,
        ),
        (get(&format!("/plain?{}", "\"".repeat(4_200))), 414),
        (get(&format!("/plain?{}", "\"".repeat(4_000))), 302),
    ];
    // Every character that a query can be written with.
    let visible = (b'!'..=b'~').map(|byte| char::from(byte).to_string());
    let others = ["é", "\u{2028}", "\u{10ffff}"].map(str::to_owned);
    for character in visible.chain(others) {
        cases.push((get(&format!("/forward?x={character}y")), 302));
        cases.push((get(&format!("/plain?{character}")), 302));
    }
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_judged_alike_wherever_it_stands_in_its_connection() {
    let world = World::new().await;
    world.link("plain").await;
    let forward = json!({
        "target": "https://example.com/f?own=1#part", "alias": "forward", "forward_query": true,
    });
    let made = world
        .call(http::Method::POST, "/api/v1/links", Some(forward))
        .await;
    assert_eq!(made.status, 201);
    let running = Running::of(&world);
    let address = running.address;
    let sent = tokio::task::spawn_blocking(move || {
        for (case, status) in refused_cases() {
            let expected = Fate {
                status,
                location: None,
                closed: true,
            };
            assert_eq!(
                send(address, case.as_bytes(), false),
                expected,
                "first: {case:.200}"
            );
            assert_eq!(
                send(address, case.as_bytes(), true),
                expected,
                "later: {case:.200}"
            );
        }
        for (case, status) in answered_cases() {
            let first = send(address, case.as_bytes(), false);
            assert_eq!(first.status, status, "first: {case:.200}");
            let later = send(address, case.as_bytes(), true);
            assert_eq!(later, first, "later: {case:.200}");
        }
    });
    sent.await.unwrap();
    running.stop().await;
}

/// What is wrong with a request takes nothing from the answers before it.
#[tokio::test(flavor = "multi_thread")]
async fn requests_before_a_refused_one_are_answered() {
    let world = World::new().await;
    world.link("plain").await;
    let running = Running::of(&world);
    let address = running.address;
    let sent = tokio::task::spawn_blocking(move || {
        let bad = "GET /plain HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";
        let post = "POST /api/v1/links HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
        let mut stream = connect(address);
        let pipeline = format!("{PROBE}{PROBE}{post}{PROBE}{bad}{PROBE}");
        stream.write_all(pipeline.as_bytes()).unwrap();
        for status in [200, 200, 401, 200, 400] {
            assert_eq!(next_response(&mut stream).unwrap().0, status);
        }
        assert_eq!(next_response(&mut stream), None);
    });
    sent.await.unwrap();
    running.stop().await;
}
