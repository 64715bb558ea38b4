//! Requests that come before the answers to the ones ahead of them.

use std::io::Write;
use std::net::Shutdown;

use crate::client::Client;
use crate::host::{Host, LINKS};

#[test]
fn a_hundred_pipelined_requests_are_answered_in_order() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    let mut bytes = Vec::new();
    for n in 0..100 {
        let (key, ..) = LINKS[n % LINKS.len()];
        write!(
            bytes,
            "GET /{key} HTTP/1.1\r\nHost: h\r\nX-Number: {n}\r\n\r\n"
        )
        .unwrap();
    }
    client.send(&bytes);
    for n in 0..100 {
        let (_, target, status, _) = LINKS[n % LINKS.len()];
        let response = client.response();
        assert_eq!(
            (response.status, response.field("location")),
            (status.code(), Some(target)),
            "answer {n}"
        );
    }
    assert_eq!(client.get("/plain").status, 302);
}

#[test]
fn order_is_kept_across_the_hand_over_and_nothing_is_lost() {
    let host = Host::start();
    for handed_at in [0, 1, 50, 99] {
        let mut client = Client::connect(host.address);
        let mut bytes = Vec::new();
        for n in 0..100 {
            if n == handed_at {
                write!(
                    bytes,
                    "POST /api/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nGET /x"
                )
                .unwrap();
            } else if n < handed_at {
                write!(bytes, "GET /plain HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
            } else {
                write!(bytes, "GET /api/name/{n} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
            }
        }
        client.send(&bytes);
        for n in 0..100 {
            let response = client.response();
            if n == handed_at {
                assert_eq!(response.text(), "GET /x");
            } else if n < handed_at {
                assert_eq!(response.status, 302, "answer {n}");
            } else {
                assert_eq!(response.text(), n.to_string());
            }
        }
    }
}

#[test]
fn a_client_that_has_sent_everything_may_close_its_side() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    client.send("GET /plain HTTP/1.1\r\nHost: h\r\n\r\n".repeat(20));
    client.stream.shutdown(Shutdown::Write).unwrap();
    for _ in 0..20 {
        assert_eq!(client.response().status, 302);
    }
    client.closed();
}

#[test]
fn many_connections_do_not_mix_up_their_answers() {
    let host = Host::start();
    let mut clients: Vec<_> = (0..64).map(|_| Client::connect(host.address)).collect();
    // Every client sends half a request before any of them sends the rest.
    for round in 0..20 {
        for (n, client) in clients.iter_mut().enumerate() {
            let (key, ..) = LINKS[(n + round) % LINKS.len()];
            client.send(format!("GET /{key} HTT"));
        }
        for client in &mut clients {
            client.send("P/1.1\r\nHost: h\r\n\r\n");
        }
        for (n, client) in clients.iter_mut().enumerate() {
            let (_, target, ..) = LINKS[(n + round) % LINKS.len()];
            assert_eq!(client.response().field("location"), Some(target));
        }
    }
}
