//! Proxies that name their clients before the first request.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use curt_http::metrics::CutReason;

use crate::client::Client;
use crate::host::{Host, impatient};

const V1: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\x12\x67\0\x50";
const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
const CLIENT: &str = "192.0.2.7:4711";
const TRUSTED: &str = "127.0.0.0/8";

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes()
}

/// Whom the server takes the client of this connection for.
fn seen(client: &mut Client) -> String {
    client.get("/api/peer").text().to_owned()
}

#[test]
fn the_header_names_the_client_of_every_request_behind_it() {
    let host = Host::behind_proxies(TRUSTED, |_| {});
    for header in [V1, V2] {
        let mut client = Client::connect(host.address);
        client.send(header);
        assert_eq!(client.get("/plain").status, 302);
        assert_eq!(client.get("/absent").status, 404);
        assert_eq!(seen(&mut client), CLIENT);
        assert_eq!(seen(&mut client), CLIENT, "after the handoff");
    }
}

#[test]
fn a_proxy_that_speaks_for_itself_is_the_client() {
    let host = Host::behind_proxies(TRUSTED, |_| {});
    for header in [V2_LOCAL, b"PROXY UNKNOWN\r\n"] {
        let mut client = Client::connect(host.address);
        let own = client.stream.local_addr().unwrap();
        client.send(header);
        assert_eq!(seen(&mut client), own.to_string());
    }
}

#[test]
fn a_header_may_come_in_pieces_and_with_requests_behind_it() {
    let host = Host::behind_proxies(TRUSTED, |_| {});
    for header in [V1, V2] {
        let bytes = [header, &get("/plain"), &get("/api/peer")].concat();
        for step in [1, 7, header.len() - 1, header.len(), bytes.len()] {
            let mut client = Client::connect(host.address);
            for piece in bytes.chunks(step) {
                client.send(piece);
                if step > 1 {
                    thread::sleep(Duration::from_millis(2));
                }
            }
            assert_eq!(client.response().status, 302, "{step}");
            assert_eq!(client.response().text(), CLIENT, "{step}");
        }
    }
}

#[test]
fn a_trusted_proxy_without_a_header_is_refused() {
    let host = Host::behind_proxies(TRUSTED, |_| {});
    let forged = [
        &b"PROXY TCP4 192.0.2.07 10.0.0.1 4711 80\r\n"[..],
        &get("/plain"),
    ];
    for bytes in [get("/plain"), forged.concat(), b"\x16\x03\x01".to_vec()] {
        let mut client = Client::connect(host.address);
        client.send(&bytes);
        let response = client.response();
        assert_eq!(response.status, 400);
        assert!(response.text().contains("PROXY protocol"));
        client.closed();
    }
    assert_eq!(host.cut(CutReason::ProxyHeader), 3);
}

/// A client that pretends to be somebody else.
#[test]
fn a_header_from_anybody_else_is_a_malformed_request() {
    for host in [Host::behind_proxies("10.0.0.0/8", |_| {}), Host::start()] {
        for header in [V1, V2, V2_LOCAL] {
            let mut client = Client::connect(host.address);
            client.send([header, &get("/api/peer")].concat());
            let status = client.response().status;
            assert!([400, 505].contains(&status), "{status}");
            client.closed();
        }
        // Who pretends nothing is served.
        let mut client = Client::connect(host.address);
        let own = client.stream.local_addr().unwrap();
        assert_eq!(seen(&mut client), own.to_string());
    }
}

#[test]
fn a_header_that_does_not_come_has_the_time_of_a_request() {
    let host = Host::behind_proxies(TRUSTED, impatient);
    let mut silent = Client::connect(host.address);
    let mut slow = Client::connect(host.address);
    slow.send(&V1[..20]);
    let waited = silent.closed().max(slow.closed());
    assert!(waited < Duration::from_secs(20), "{waited:?}");
    assert_eq!(host.cut(CutReason::HeaderTimeout), 2);
}

#[test]
fn clients_behind_a_proxy_have_their_share_of_connections() {
    let host = Host::behind_proxies(TRUSTED, |settings| {
        settings.connections_per_address = Some(2);
    });
    let connect = |header: &[u8]| {
        let mut client = Client::connect(host.address);
        client.send(header);
        client
    };
    let mut first: Vec<Client> = (0..2).map(|_| connect(V1)).collect();
    for client in &mut first {
        assert_eq!(client.get("/plain").status, 302);
    }
    assert_eq!(connect(V2).response().status, 503, "the same client");
    let mut other = connect(b"PROXY TCP4 192.0.2.8 10.0.0.1 4711 80\r\n");
    assert_eq!(other.get("/plain").status, 302);
    drop(first);
    let again = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(20));
        let mut client = connect(V1);
        client.send(get("/plain"));
        client.response().status == 302
    });
    assert!(again, "places are given back");
}

#[test]
fn a_stop_waits_for_no_header() {
    let host = Host::behind_proxies(TRUSTED, |_| {});
    let address: SocketAddr = host.address;
    let mut silent = Client::connect(address);
    let mut served = Client::connect(address);
    served.send([V1, &get("/plain")].concat());
    assert_eq!(served.response().status, 302);
    assert_eq!(host.stopped().cut, 0);
    silent.closed();
}
