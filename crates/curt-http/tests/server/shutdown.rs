//! Stopping without losing a request.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use curt_core::SystemClock;
use curt_http::server::DrainReport;
use curt_testkit::http::{Connection, Request};

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
    assert_eq!(host.stopped(), DrainReport { cut: 0 });
    redirecting.closed();
    with_router.closed();
    assert!(TcpStream::connect(address).is_err());
}

/// One that hyper serves, and one whose connection stays with its worker.
const HELD: [&str; 2] = ["/api/hold", "/held"];

#[test]
fn a_request_under_way_is_finished_first() {
    for path in HELD {
        finish_under_way(path);
    }
}

fn finish_under_way(path: &str) {
    let host = Host::start();
    let mut held = Client::connect(host.address);
    held.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
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
    let response = held.response();
    assert_eq!(response.text(), "held");
    assert_eq!(response.field("connection"), Some("close"));
    held.closed();
    assert_eq!(host.stopped(), DrainReport { cut: 0 });
}

#[test]
fn what_outlasts_the_grace_period_is_cut_and_counted() {
    for path in HELD {
        let host = Host::with(|settings| settings.shutdown_grace = Duration::from_millis(200));
        let mut held = Client::connect(host.address);
        held.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let mut half = Client::connect(host.address);
        half.send("GET /plain HTTP/1.1\r\n");
        for _ in 0..8 {
            Client::connect(host.address).get("/plain");
            Client::connect(host.address).get("/");
        }
        assert_eq!(host.stopped(), DrainReport { cut: 2 });
        half.closed();
    }
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
        assert_eq!(drained, DrainReport { cut: 0 });
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
    assert_eq!(host.stopped(), DrainReport { cut: 0 });
}

#[test]
fn clients_that_send_one_request_after_the_other_are_all_answered() {
    for _ in 0..10 {
        let host = Host::with(|settings| settings.drain_delay = Duration::from_millis(100));
        let address = host.address;
        let clients: Vec<_> = (0..12)
            .map(|number| {
                // Redirects stay with a worker, the others move to the router.
                let path = if number % 2 == 0 { "/plain" } else { "/" };
                std::thread::spawn(move || repeat_requests(address, path))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(host.stopped(), DrainReport { cut: 0 });
        for client in clients {
            assert_eq!(client.join().unwrap(), 0, "requests without an answer");
        }
    }
}

/// Sends requests over one connection after the other until no connection is let in, and returns how many of the
/// requests that a connection took were not answered.
fn repeat_requests(address: SocketAddr, path: &str) -> usize {
    let mut unanswered = 0;
    while let Ok(mut connection) = Connection::open(address) {
        loop {
            match connection.send(&Request::get(path)) {
                Ok(answer) if answer.keeps_alive() => {}
                Ok(_) => break,
                Err(_) => {
                    unanswered += 1;
                    break;
                }
            }
        }
    }
    unanswered
}
