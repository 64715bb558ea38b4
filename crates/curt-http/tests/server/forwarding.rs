//! The visitor's query on a link that forwards it, checked on the wire.

use crate::client::Client;
use crate::host::Host;

#[test]
fn the_query_is_added_in_front_of_the_fragment() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    for (path, location) in [
        ("/forward", "https://example.com/f?own=1#part"),
        ("/forward?", "https://example.com/f?own=1#part"),
        (
            "/forward?x=1&y=2",
            "https://example.com/f?own=1&x=1&y=2#part",
        ),
        (
            "/forward?//evil.example",
            "https://example.com/f?own=1&//evil.example#part",
        ),
        (
            "/forward?x=%0d%0aSet-Cookie:a=b",
            "https://example.com/f?own=1&x=%0d%0aSet-Cookie:a=b#part",
        ),
        (
            "/forward?redirect=https://evil.example/",
            "https://example.com/f?own=1&redirect=https://evil.example/#part",
        ),
        ("/plain?x=1", "https://example.com/plain"),
    ] {
        assert_eq!(client.get(path).field("location"), Some(location), "{path}");
    }
}

#[test]
fn raw_bytes_in_the_query_cannot_split_the_header() {
    let host = Host::start();
    for (query, location) in [
        (
            &b"x=\xc3\xa9"[..],
            "https://example.com/f?own=1&x=%C3%A9#part",
        ),
        (b"x=\"<>", "https://example.com/f?own=1&x=%22%3C%3E#part"),
        (b"x#y", "https://example.com/f?own=1&x%23y#part"),
    ] {
        let mut client = Client::connect(host.address);
        client.send([b"GET /forward?", query, b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat());
        assert_eq!(
            client.response().field("location"),
            Some(location),
            "{query:?}"
        );
    }
    for query in [
        &b"x=\r\nSet-Cookie: a=b"[..],
        b"x=\n",
        b"x=\0",
        b"x=\x7f",
        b"x=\ty",
    ] {
        let mut client = Client::connect(host.address);
        client.send([b"GET /forward?", query, b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat());
        let response = client.response();
        assert_eq!(response.status, 400, "{query:?}");
        assert_eq!(response.field("set-cookie"), None);
    }
}

#[test]
fn a_query_that_is_too_long_is_left_out() {
    let host = Host::start();
    let mut client = Client::connect(host.address);
    // Three bytes each, as sent on.
    let long = "\"".repeat(curt_http::redirect::FORWARDED_QUERY_BYTES_MAX / 3 + 1);
    assert_eq!(
        client.get(&format!("/forward?{long}")).field("location"),
        Some("https://example.com/f?own=1#part")
    );
}
