//! The client against a server that answers with prepared bytes.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot open its sockets should stop"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use curt_testkit::http::{Client, Connection, Request, Response};

/// Answers each connection with the parts, one write each, after the first request has come in; then closes.
fn server(answers: Vec<Vec<&'static [u8]>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for parts in answers {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let mut request = [0; 4_096];
            assert!(stream.read(&mut request).unwrap() > 0);
            for part in parts {
                stream.write_all(part).unwrap();
            }
        }
    });
    address
}

fn answer(parts: Vec<&'static [u8]>, method: &str) -> std::io::Result<Response> {
    let address = server(vec![parts]);
    let mut connection = Connection::open(address)?;
    connection.send(&Request::new(method, "/"))
}

#[test]
fn a_body_by_length() {
    let parts: Vec<&[u8]> = vec![
        b"HTTP/1.1 302 Fou",
        b"nd\r\nLocation: https://example.com/\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r",
        b"\nhel",
        b"lo",
    ];
    let response = answer(parts, "GET").unwrap();
    assert_eq!((response.status, response.reason.as_str()), (302, "Found"));
    assert_eq!(response.header("location"), Some("https://example.com/"));
    assert_eq!(response.header("X-A"), None, "there twice");
    let both: Vec<&str> = response.header_values("X-A").collect();
    assert_eq!(both, ["1", "2"]);
    assert_eq!(response.text(), "hello");
    assert!(response.raw_head.ends_with(b"x-a: 2\r\n\r\n"));
    assert!(response.keeps_alive());
}

#[test]
fn a_body_in_chunks() {
    let parts: Vec<&[u8]> = vec![
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n",
        b"ab",
        b"c\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r",
        b"\n",
    ];
    let response = answer(parts, "GET").unwrap();
    assert_eq!(response.text(), "abc0123456789");
    assert!(response.keeps_alive());
}

#[test]
fn a_body_until_the_end() {
    let parts: Vec<&[u8]> = vec![b"HTTP/1.0 200 OK\r\n\r\nall", b" of it"];
    let response = answer(parts, "GET").unwrap();
    assert_eq!(response.text(), "all of it");
    assert!(!response.keeps_alive());
}

#[test]
fn answers_without_a_body() {
    let head: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n";
    assert!(answer(vec![head], "HEAD").unwrap().body.is_empty());
    let none: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
    assert!(answer(vec![none], "GET").unwrap().body.is_empty());
}

#[test]
fn interim_answers_are_skipped() {
    let parts: Vec<&[u8]> =
        vec![b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"];
    assert_eq!(answer(parts, "POST").unwrap().status, 201);
}

#[test]
fn malformed_answers_are_refused() {
    let malformed: [&[u8]; 14] = [
        b"HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSpace : 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n : 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: 1\nB: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n",
    ];
    for bytes in malformed {
        let kind = answer(vec![bytes], "GET").unwrap_err().kind();
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(kind, ErrorKind::InvalidData, "{text:?}");
    }
}

#[test]
fn answers_that_are_cut_off_are_errors() {
    let cut: [&[u8]; 4] = [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n",
    ];
    for bytes in cut {
        let kind = answer(vec![bytes], "GET").unwrap_err().kind();
        assert_eq!(kind, ErrorKind::UnexpectedEof, "{bytes:?}");
    }
}

#[test]
fn a_silent_server_is_not_waited_for_longer_than_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut connection = Connection::open(listener.local_addr().unwrap()).unwrap();
    connection.set_timeout(Duration::from_millis(50));
    let error = connection.send(&Request::get("/")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(!connection.is_closed());
}

#[test]
fn pipelined_answers_are_read_one_by_one() {
    let parts: Vec<&[u8]> = vec![
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nb",
    ];
    let mut connection = Connection::open(server(vec![parts])).unwrap();
    let two = [
        Request::get("/a").encode("h"),
        Request::get("/b").encode("h"),
    ]
    .concat();
    connection.write_raw(&two).unwrap();
    assert_eq!(connection.read_response("GET").unwrap().text(), "a");
    assert_eq!(connection.read_response("GET").unwrap().status, 404);
    assert!(connection.read_to_close().unwrap().is_empty());
}

#[test]
fn a_client_opens_a_closed_connection_again() {
    let closes: Vec<&[u8]> =
        vec![b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"];
    let mut client = Client::new(server(vec![closes.clone(), closes]));
    for _ in 0..2 {
        assert_eq!(client.get("/").unwrap().status, 200);
    }
}

#[test]
fn a_request_says_host_and_length_once() {
    let plain = Request::post("/a?b=c")
        .bearer("t")
        .body("text/plain", "hello");
    let want = "POST /a?b=c HTTP/1.1\r\nHost: h:1\r\nAuthorization: Bearer t\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(String::from_utf8(plain.encode("h:1")).unwrap(), want);
    let own = Request::get("/")
        .header("host", "x")
        .header("content-length", 0);
    let want = "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(String::from_utf8(own.encode("h:1")).unwrap(), want);
}
