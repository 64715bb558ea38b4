//! What the server refuses, and how it says so.

use std::net::{IpAddr, SocketAddr, TcpStream};

use curt_core::limits::{HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX};
use curt_http::metrics::CutReason;
use socket2::{Domain, Socket, Type};

use crate::client::Client;
use crate::host::Host;

fn refused(host: &Host, bytes: &[u8]) -> (u16, String) {
    let mut client = Client::connect(host.address);
    client.send(bytes);
    let response = client.response();
    assert_eq!(
        response.field("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(response.field("connection"), Some("close"));
    client.closed();
    let problem: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(problem["status"], response.status);
    (
        response.status,
        problem["code"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn what_is_not_a_request_gets_a_problem_and_the_door() {
    let host = Host::start();
    let head = "GET /plain HTTP/1.1\r\nHost: h\r\n";
    let fill = "a".repeat(HTTP_HEAD_BYTES_MAX);
    let many = "x: y\r\n".repeat(HTTP_HEADERS_MAX);
    for (bytes, status, code) in [
        ("\0\0\0\0".to_owned(), 400, "malformed-request"),
        ("garbage\r\n\r\n".to_owned(), 400, "malformed-request"),
        (
            "\u{16}\u{3}\u{1}\0\u{5}".to_owned(),
            400,
            "malformed-request",
        ),
        (format!("{head}x: a\0b\r\n\r\n"), 400, "malformed-request"),
        (format!("{head}x: a\rb\r\n\r\n"), 400, "malformed-request"),
        (
            "GET /plain HTTP/1.1\r\n\r\n".to_owned(),
            400,
            "malformed-request",
        ),
        (
            format!("{head}Host: other\r\n\r\n"),
            400,
            "malformed-request",
        ),
        (format!("{head}x: {fill}\r\n\r\n"), 431, "head-too-large"),
        (format!("{head}{many}\r\n"), 431, "head-too-large"),
        (format!("GET /{fill} HTTP/1.1\r\n\r\n"), 414, "uri-too-long"),
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            505,
            "version-not-supported",
        ),
        (
            "GET / HTTP/3.0\r\n\r\n".to_owned(),
            505,
            "version-not-supported",
        ),
    ] {
        assert_eq!(
            refused(&host, bytes.as_bytes()),
            (status, code.to_owned()),
            "{bytes:.40}"
        );
    }
    assert_eq!(host.cut(CutReason::HeadTooLarge), 3);
    assert_eq!(host.cut(CutReason::Malformed), 9);
    assert_eq!(Client::connect(host.address).get("/plain").status, 302);
}

#[test]
fn good_requests_in_front_of_a_bad_one_are_answered() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    client.send("GET /plain HTTP/1.1\r\nHost: h\r\n\r\nnonsense\0\r\n\r\n");
    assert_eq!(client.response().status, 302);
    assert_eq!(client.response().status, 400);
    client.closed();
}

#[test]
fn the_limits_also_hold_once_the_router_has_the_connection() {
    let host = Host::start();
    let long = "a".repeat(2 * HTTP_HEAD_BYTES_MAX);
    let many = "x: y\r\n".repeat(HTTP_HEADERS_MAX + 1);
    for fields in [format!("x: {long}\r\n"), many] {
        let mut client = Client::connect(host.address);
        assert_eq!(client.get("/").status, 200);
        client.send(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        assert_eq!(client.response().status, 431);
    }
}

#[test]
fn a_bare_line_feed_ends_a_line() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    client.send("GET /plain HTTP/1.1\nHost: h\n\n");
    assert_eq!(client.response().status, 302);
}

#[test]
fn one_connection_too_many_is_turned_away_and_room_comes_back() {
    let host = Host::with(|settings| settings.connections_max = 3);
    let mut open: Vec<_> = (0..3).map(|_| Client::connect(host.address)).collect();
    for client in &mut open {
        assert_eq!(client.get("/plain").status, 302);
    }
    // One of them is with the router: it counts like the others.
    assert_eq!(open[0].get("/").status, 200);
    let mut surplus = Client::over(TcpStream::connect(host.address).unwrap());
    let response = surplus.response();
    assert_eq!(
        (response.status, response.field("retry-after")),
        (503, Some("1"))
    );
    surplus.closed();
    assert_eq!(host.cut(CutReason::Limit), 1);
    assert_eq!(host.metrics.connections.get(), 3);

    for place in [2, 0] {
        // Closing is seen when the server has seen it: the answer to `Connection: close` comes first.
        let mut leaving = open.remove(place);
        leaving.send("GET /plain HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        assert_eq!(
            leaving.response().status,
            if place == 0 { 404 } else { 302 }
        );
        leaving.closed();
        while host.metrics.connections.get() > 2 {
            std::thread::yield_now();
        }
        let mut next = Client::connect(host.address);
        assert_eq!(next.get("/plain").status, 302);
        open.push(next);
    }
}

fn connect_from(source: &str, address: SocketAddr) -> Client {
    let source: IpAddr = source.parse().unwrap();
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(source, 0).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    Client::over(socket.into())
}

#[test]
fn one_address_cannot_take_every_connection() {
    let host = Host::with(|settings| {
        settings.connections_max = 8;
        settings.connections_per_address = None;
    });
    let mut own: Vec<_> = (0..2).map(|_| Client::connect(host.address)).collect();
    for client in &mut own {
        assert_eq!(client.get("/plain").status, 302);
    }
    // One of them is with the router: it counts like the other.
    assert_eq!(own[0].get("/").status, 200);
    let mut surplus = Client::over(TcpStream::connect(host.address).unwrap());
    let response = surplus.response();
    assert_eq!(
        (response.status, response.field("retry-after")),
        (503, Some("1"))
    );
    assert!(response.text().contains("Your address"), "{response:?}");
    surplus.closed();
    assert_eq!(host.cut(CutReason::AddressLimit), 1);
    assert_eq!(
        connect_from("127.0.0.2", host.address).get("/plain").status,
        302
    );
    drop(own);
    while host.metrics.connections.get() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(Client::connect(host.address).get("/plain").status, 302);
}
