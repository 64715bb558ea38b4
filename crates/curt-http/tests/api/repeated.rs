//! The first request and later ones: the same answer, but for what the description of the API tells.

use curt_core::Scope;
use http::Method;

use crate::harness::{ROOT, World};

/// Reads that change nothing, of every operation that the document has.
#[tokio::test]
async fn a_read_that_is_repeated_gets_the_same_answer() {
    let world = World::new().await;
    world.ready.pass("serving");
    world.link("abc").await;
    let root = world.key_for(ROOT, "root", &Scope::ALL).await;
    let document = world.call(Method::GET, "/api/openapi.json", None).await;
    let document = document.json();
    let mut read = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        if item["get"].is_null() || path.ends_with("/live") {
            continue;
        }
        let filled = path
            .replace("{key}", "abc")
            .replace("{id}", "1")
            .replace("{dimension}", "country");
        let headers = [
            ("authorization", &*format!("Bearer {root}")),
            ("x-request-id", "same"),
        ];
        let ask = || world.call_raw(Method::GET, &filled, &headers, None);
        let (first, again) = (ask().await, ask().await);
        assert!(first.status.as_u16() < 400, "{filled}: {}", first.body);
        assert_eq!(
            (first.status, first.headers, first.body),
            (again.status, again.headers, again.body),
            "{filled}"
        );
        read += 1;
    }
    assert!(read > 20, "{read}");
}

/// Method, path, body, and what the first and every later request get.
type Repeated = (&'static str, &'static str, &'static str, u16, u16);

/// The description of the API tells these differences: "Requests that are repeated".
#[rustfmt::skip]
const REPEATED: &[Repeated] = &[
    ("POST",   "/api/v1/links",              r#"{"target":"https://a.example/"}"#, 201, 201),
    ("POST",   "/api/v1/links",              r#"{"target":"https://a.example/","alias":"another"}"#, 201, 409),
    ("PATCH",  "/api/v1/links/abc",          r#"{"title":"t"}"#, 200, 200),
    ("DELETE", "/api/v1/links/abc",          "", 204, 410),
    ("POST",   "/api/v1/links/abc/restore",  "", 200, 200),
    ("POST",   "/api/v1/links/abc/disable",  "", 200, 200),
    ("POST",   "/api/v1/links/abc/enable",   "", 200, 200),
    ("POST",   "/api/v1/links/abc/permissions", r#"{"email":"bob@example.com"}"#, 201, 201),
    ("DELETE", "/api/v1/deleteURL?url_key=abc", "", 200, 404),
    ("POST",   "/api/v1/keys",               r#"{"name":"n"}"#, 201, 409),
    ("DELETE", "/api/v1/users/2",            "", 204, 404),
    ("PATCH",  "/api/v1/users/2",            r#"{"last_name":"X"}"#, 200, 200),
];

#[tokio::test]
async fn a_change_that_is_repeated_gets_what_is_documented() {
    let mut wrong = Vec::new();
    for (method, path, body, first, later) in REPEATED {
        let world = World::new().await;
        world.link("abc").await;
        let root = world.key_for(ROOT, "root", &Scope::ALL).await;
        let key = format!("Bearer {root}");
        let body = Some(*body).filter(|body| !body.is_empty());
        let mut statuses = Vec::new();
        for _ in 0..3 {
            let method: Method = method.parse().unwrap();
            let headers = [("authorization", key.as_str())];
            let answer = world.call_raw(method, path, &headers, body).await;
            statuses.push(answer.status.as_u16());
        }
        if statuses != [*first, *later, *later] {
            wrong.push(format!("{method} {path} {body:?}: {statuses:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
