//! Requests in pieces, answers that do not fit.

use std::io::Write;

use proptest::prelude::*;
use socket2::{Domain, Socket, Type};

use crate::client::{Client, Response};
use crate::host::{Host, LINKS};

#[test]
fn a_request_byte_by_byte_is_a_request() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    let whole = client.get("/plain");
    for request in [
        "GET /plain HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n",
        "\r\nGET /plain HTTP/1.1\r\nHost: h\r\n\r\n",
    ] {
        for byte in request.bytes() {
            client.send([byte]);
        }
        assert_eq!(client.response(), whole);
    }
    for byte in "POST /api/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc".bytes() {
        client.send([byte]);
    }
    assert_eq!(client.response().text(), "abc");
}

/// A connection whose window is as small as the system allows.
fn narrow(host: &Host) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(1).unwrap();
    socket.connect(&host.address.into()).unwrap();
    Client::over(socket.into())
}

#[test]
fn a_client_that_reads_late_gets_every_answer() {
    let host = Host::start();
    const REQUESTS: usize = 40_000;
    let mut client = narrow(&host);
    let mut writer = client.stream.try_clone().unwrap();
    // More answers than the sockets hold: the server must stop reading until the client reads.
    let sending = std::thread::spawn(move || {
        for n in 0..REQUESTS {
            let (key, ..) = LINKS[n % LINKS.len()];
            write!(writer, "GET /{key} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        }
    });
    for n in 0..REQUESTS {
        let (_, target, ..) = LINKS[n % LINKS.len()];
        assert_eq!(
            client.response().field("location"),
            Some(target),
            "answer {n}"
        );
    }
    sending.join().unwrap();
    assert_eq!(client.get("/plain").status, 302);
}

/// The responses to a stream that ends with a request that closes the connection.
fn exchange(host: &Host, pieces: &[&[u8]], methods: &[&str]) -> Vec<Response> {
    let mut client = Client::connect(host.address);
    for piece in pieces {
        client.send(piece);
    }
    let responses = methods
        .iter()
        .map(|method| client.response_to(method))
        .collect();
    client.closed();
    responses
}

#[derive(Clone, Debug)]
struct Stream {
    bytes: Vec<u8>,
    methods: Vec<&'static str>,
}

fn stream() -> impl Strategy<Value = Stream> {
    let request = prop_oneof![
        8 => (0..LINKS.len(), any::<bool>()).prop_map(|(n, head)| {
            let method = if head { "HEAD" } else { "GET" };
            (format!("{method} /{} HTTP/1.1\r\nHost: h\r\n\r\n", LINKS[n].0), method)
        }),
        2 => "[a-z=&%0-9]{0,40}".prop_map(|query| {
            (format!("GET /forward?{query} HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n"), "GET")
        }),
        1 => Just(("GET /absent HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), "GET")),
        1 => "[a-zA-Z ]{0,30}".prop_map(|body| {
            let length = body.len();
            (format!("POST /api/echo HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}"), "POST")
        }),
    ];
    // The router of these tests knows no links, so that a redirect behind a hand-over would differ: what matters
    // here is that it never depends on the split.
    proptest::collection::vec(request, 1..12).prop_map(|requests| {
        let mut bytes = Vec::new();
        let mut methods = Vec::new();
        for (text, method) in requests {
            bytes.extend_from_slice(text.as_bytes());
            methods.push(method);
        }
        bytes.extend_from_slice(b"GET /absent HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        methods.push("GET");
        Stream { bytes, methods }
    })
}

#[test]
fn any_split_of_a_stream_gives_the_same_answers() {
    let host = Host::start();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let cuts = proptest::collection::vec(any::<prop::sample::Index>(), 0..20);
    runner
        .run(&(stream(), cuts), |(stream, cuts)| {
            let whole = exchange(&host, &[&stream.bytes], &stream.methods);
            let mut at: Vec<usize> = cuts
                .iter()
                .map(|cut| cut.index(stream.bytes.len()))
                .collect();
            at.push(0);
            at.push(stream.bytes.len());
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at
                .windows(2)
                .map(|ends| &stream.bytes[ends[0]..ends[1]])
                .collect();
            prop_assert_eq!(exchange(&host, &pieces, &stream.methods), whole);
            Ok(())
        })
        .unwrap();
}
