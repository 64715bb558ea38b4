//! Stopping without losing a request.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use curt_core::SystemClock;
use curt_http::server::Drained;

use crate::client::Client;
use crate::host::Host;

#[test]
fn idle_connections_are_closed_and_new_ones_refused() {
    let host = Host::start();
    let address = host.address;
    let mut redirecting = Client::connect(address);
    redirecting.get("/plain");
    let mut with_router = Client::connect(address);
    with_router.get("/");
    assert_eq!(host.stopped(), Drained { cut: 0 });
    redirecting.closed();
    with_router.closed();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_request_under_way_is_finished_first() {
    let host = Host::start();
    let mut held = Client::connect(host.address);
    held.send("GET /api/hold HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut half = Client::connect(host.address);
    half.send("GET /plain HTTP/1.1\r\n");
    // Both have arrived when a later request on the same path has been answered.
    for _ in 0..8 {
        Client::connect(host.address).get("/plain");
        Client::connect(host.address).get("/");
    }
    host.begin_stop();
    while TcpStream::connect(host.address).is_ok() {
        std::thread::yield_now();
    }
    half.send("Host: h\r\n\r\n");
    let response = half.response();
    assert_eq!(
        (response.status, response.field("connection")),
        (302, Some("close"))
    );
    half.closed();
    host.gate.add_permits(1);
    assert_eq!(held.response().text(), "held");
    held.closed();
    assert_eq!(host.stopped(), Drained { cut: 0 });
}

#[test]
fn what_outlasts_the_grace_period_is_cut_and_counted() {
    let host = Host::with(|settings| settings.shutdown_grace = Duration::from_millis(200));
    let mut held = Client::connect(host.address);
    held.send("GET /api/hold HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut half = Client::connect(host.address);
    half.send("GET /plain HTTP/1.1\r\n");
    for _ in 0..8 {
        Client::connect(host.address).get("/plain");
        Client::connect(host.address).get("/");
    }
    assert_eq!(host.stopped(), Drained { cut: 2 });
    half.closed();
}

#[test]
fn a_request_that_has_reached_the_kernel_is_answered() {
    for _ in 0..20 {
        let host = Host::start();
        let mut clients: Vec<_> = (0..16).map(|_| Client::connect(host.address)).collect();
        for client in &mut clients {
            client.get("/plain");
        }
        for client in &mut clients {
            client.send("GET /plain HTTP/1.1\r\nHost: h\r\n\r\n");
        }
        let drained = host.stopped();
        for client in &mut clients {
            assert_eq!(client.response().status, 302);
        }
        assert_eq!(drained, Drained { cut: 0 });
    }
}

#[test]
fn a_connection_that_is_let_in_while_the_server_stops_is_served() {
    let mut host = Host::bound(|_| {}, Arc::new(SystemClock));
    let connect = |_| Client::connect(host.address);
    let mut half: Vec<Client> = (0..16).map(connect).collect();
    let mut whole: Vec<Client> = (0..16).map(connect).collect();
    for client in &mut half {
        client.send("POST /api/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab");
    }
    for client in &mut whole {
        client.send("GET /plain HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    host.begin_stop();
    host.run();
    for client in &mut whole {
        assert_eq!(client.response().status, 302);
    }
    for client in &mut half {
        client.send("cd");
        assert_eq!(client.response_to("POST").text(), "abcd");
    }
    assert_eq!(host.stopped(), Drained { cut: 0 });
}
