//! G1–G6, G10, G13, G15: whatever is sent, the answer is the documented 4xx with a problem document, never a 5xx.

use axum::body::Body;
use futures_util::stream;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::harness::World;

const TARGET: &str = "https://example.com/";

#[tokio::test]
async fn bad_fields_are_named_with_a_stable_code() {
    let world = World::new().await;
    for (body, wanted) in targets()
        .into_iter()
        .chain(aliases_and_times())
        .chain(types())
    {
        let answer = world
            .call(Method::POST, "/api/v1/links", Some(body.clone()))
            .await;
        if wanted == "ok" {
            assert_eq!(answer.status, 201, "{body}: {}", answer.body);
            continue;
        }
        assert_eq!(answer.status, 422, "{body}: {}", answer.body);
        assert_eq!(answer.problem(), "invalid-input");
        assert_eq!(answer.refused(), wanted, "{body}");
    }
}

type Rows = Vec<(Value, &'static str)>;

#[rustfmt::skip]
fn targets() -> Rows {
    let long = format!("https://example.com/{}", "a".repeat(2_100));
    vec![
        (json!({"target": ""}), "target/target_empty"),
        (json!({"target": "javascript:alert(1)"}), "target/target_scheme"),
        (json!({"target": "JAVASCRIPT:alert(1)"}), "target/target_scheme"),
        (json!({"target": "data:text/html,x"}), "target/target_scheme"),
        (json!({"target": "vbscript:x"}), "target/target_scheme"),
        (json!({"target": "file:///etc/passwd"}), "target/target_scheme"),
        (json!({"target": "ftp://example.com/"}), "target/target_scheme"),
        (json!({"target": "mailto:a@example.com"}), "target/target_scheme"),
        (json!({"target": "foo"}), "target/target_syntax"),
        (json!({"target": "/path"}), "target/target_syntax"),
        (json!({"target": "//example.com"}), "target/target_syntax"),
        (json!({"target": "https://"}), "target/target_syntax"),
        (json!({"target": "https://exa mple.com"}), "target/target_syntax"),
        (json!({"target": "https://user@example.com/"}), "target/target_credentials"),
        (json!({"target": "https://user:pass@example.com/"}), "target/target_credentials"),
        (json!({"target": "https://sho.rt/abc"}), "target/target_own_host"),
        (json!({"target": "https://SHO.RT./abc"}), "target/target_own_host"),
        (json!({"target": "https://example.com/\r\nSet-Cookie: a=b"}), "target/target_control"),
        (json!({"target": "https://example.com/\n"}), "ok"),
        (json!({"target": "java\nscript:alert(1)"}), "target/target_control"),
        (json!({"target": "https://example.com/\u{0}"}), "ok"),
        (json!({"target": long}), "target/target_too_long"),
        // What looks like an attack and is only text.
        (json!({"target": TARGET, "title": "'; DROP TABLE links; --"}), "ok"),
        (json!({"target": TARGET, "title": "<script>alert(1)</script>"}), "ok"),
        (json!({"target": "https://example.com/?q='\"<>`"}), "ok"),
    ]
}

#[rustfmt::skip]
fn aliases_and_times() -> Rows {
    vec![
        (json!({"target": TARGET, "alias": ""}), "alias/alias_empty"),
        (json!({"target": TARGET, "alias": "a/b"}), "alias/alias_symbols"),
        (json!({"target": TARGET, "alias": "a b"}), "alias/alias_symbols"),
        (json!({"target": TARGET, "alias": "a.b"}), "alias/alias_symbols"),
        (json!({"target": TARGET, "alias": "ä"}), "alias/alias_symbols"),
        (json!({"target": TARGET, "alias": "a\r\nb"}), "alias/alias_symbols"),
        (json!({"target": TARGET, "alias": "%2e"}), "alias/alias_symbols"),
        (json!({"target": TARGET, "alias": "a".repeat(65)}), "alias/alias_too_long"),
        (json!({"target": TARGET, "alias": "api"}), "alias/alias_reserved"),
        (json!({"target": TARGET, "alias": "HEALTH"}), "alias/alias_reserved"),
        (json!({"target": TARGET, "alias": "Assets"}), "alias/alias_reserved"),
        (json!({"target": TARGET, "expires_at": "2025-12-31T23:59:59Z"}), "expires_at/expiry_past"),
        (json!({"target": TARGET, "expires_at": "0000-01-01T00:00:00Z"}), "expires_at/expiry_past"),
        (json!({"target": TARGET, "expires_at": "tomorrow"}), "expires_at/value"),
        (json!({"target": TARGET, "expires_at": "2030-02-30T00:00:00Z"}), "expires_at/value"),
        (json!({"target": TARGET, "expires_at": "2030-01-01"}), "expires_at/value"),
        (json!({"target": TARGET, "expires_at": 1_900_000_000}), "expires_at/type"),
        (json!({"target": TARGET, "valid_since": ""}), "valid_since/value"),
        (json!({"target": TARGET, "expires_at": "9999-12-31T23:59:59Z"}), "ok"),
        (json!({"target": TARGET, "expires_at": "2028-02-29T12:00:00+14:00"}), "ok"),
    ]
}

#[rustfmt::skip]
fn types() -> Rows {
    vec![
        (json!({}), "target/missing"),
        (json!({"target": null}), "target/type"),
        (json!({"target": 5}), "target/type"),
        (json!({"target": ["https://example.com/"]}), "target/type"),
        (json!({"target": TARGET, "alias": 5}), "alias/type"),
        (json!({"target": TARGET, "title": {}}), "title/type"),
        (json!({"target": TARGET, "title": "a\u{0}"}), "title/title_control"),
        (json!({"target": TARGET, "title": "a".repeat(513)}), "title/title_too_long"),
        (json!({"target": TARGET, "tags": "a"}), "tags/type"),
        (json!({"target": TARGET, "tags": [1]}), "tags[0]/type"),
        (json!({"target": TARGET, "tags": [""]}), "tags/tag_empty"),
        (json!({"target": TARGET, "redirect_status": 200}), "redirect_status/value"),
        (json!({"target": TARGET, "redirect_status": "302"}), "redirect_status/type"),
        (json!({"target": TARGET, "redirect_status": -1}), "redirect_status/type"),
        (json!({"target": TARGET, "forward_query": "yes"}), "forward_query/type"),
        (json!({"target": TARGET, "max_clicks": "5"}), "max_clicks/type"),
        (json!({"target": TARGET, "max_clicks": -1}), "max_clicks/value"),
        (json!({"target": TARGET, "max_clicks": 0}), "max_clicks/max_clicks_range"),
        (json!({"target": TARGET, "max_clicks": 1_000_000_001}), "max_clicks/max_clicks_range"),
        (json!({"target": TARGET, "max_clicks": 5, "redirect_status": 301}), "redirect_status/redirect_status_permanent"),
        (json!({"target": TARGET, "owner": 1}), "owner/unknown"),
        (json!({"target": TARGET, "Target": TARGET}), "Target/unknown"),
        (json!([TARGET]), "body/type"),
        // serde would read the fields from an array in their order.
        (json!([TARGET, null, null, null, null, null, null, null]), "body/type"),
        (json!("text"), "body/type"),
        (json!(null), "body/type"),
    ]
}

/// A client that generates bodies wants to know all that is wrong with one.
#[tokio::test]
async fn all_wrong_fields_of_a_body_are_named_at_once() {
    let world = World::new().await;
    let named = async |path, body: Value| {
        let answer = world.call(Method::POST, path, Some(body)).await;
        assert_eq!(answer.status, 422, "{}", answer.body);
        let problem = answer.json();
        let errors = problem["errors"].as_array().unwrap().iter();
        let name = |error: &Value| {
            format!(
                "{}/{}",
                error["field"].as_str().unwrap(),
                error["code"].as_str().unwrap()
            )
        };
        let mut names: Vec<String> = errors.map(name).collect();
        names.sort();
        names
    };
    let body = json!({"target": 5, "titel": "x", "tags": ["a", 1, 2], "redirect_status": 200, "max_clicks": "1"});
    assert_eq!(
        named("/api/v1/links", body).await,
        [
            "max_clicks/type",
            "redirect_status/value",
            "tags[1]/type",
            "target/type",
            "titel/unknown"
        ]
    );
    assert_eq!(
        named("/api/v1/links", json!({"alias": 5})).await,
        ["alias/type", "target/missing"]
    );
    let bulk = json!({"links": [{"target": TARGET}, {"target": 1, "alias": 2}]});
    assert_eq!(
        named("/api/v1/links/bulk", bulk).await,
        ["links[1].alias/type", "links[1].target/type"]
    );
}

#[tokio::test]
async fn bad_json_is_400_or_422_and_never_worse() {
    let world = World::new().await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_field = format!(r#"{{"target":"{TARGET}","tags":{deep}}}"#);
    for (body, status, code) in [
        ("", 400, "malformed-json"),
        ("{", 400, "malformed-json"),
        ("{\"target\":}", 400, "malformed-json"),
        ("{'target':'x'}", 400, "malformed-json"),
        (
            "{\"target\":\"https://example.com/\"} x",
            400,
            "malformed-json",
        ),
        ("\u{feff}{}", 400, "malformed-json"),
        ("{\"target\":\"\\ud800\"}", 400, "malformed-json"),
        ("{\"target\":\"a\nb\"}", 400, "malformed-json"),
        ("nul", 400, "malformed-json"),
        (
            r#"{"target":"https://a.example/","target":"https://b.example/"}"#,
            422,
            "invalid-input",
        ),
        (
            r#"{"target":"https://a.example/","redirect_status":1e999}"#,
            400,
            "malformed-json",
        ),
        (
            r#"{"target":"https://a.example/","redirect_status":30200000000000000000000000}"#,
            422,
            "invalid-input",
        ),
        (deep.as_str(), 422, "invalid-input"),
        (deep_field.as_str(), 422, "invalid-input"),
    ] {
        let shown: String = body.chars().take(60).collect();
        let answer = world
            .call_raw(Method::POST, "/api/v1/links", &[], Some(body))
            .await;
        assert_eq!(answer.status.as_u16(), status, "{shown}: {}", answer.body);
        assert_eq!(answer.problem(), code, "{shown}");
    }
    let bytes = Request::post("/api/v1/links")
        .header("x-api-key", &world.key)
        .header("content-type", "application/json")
        .body(Body::from(
            &b"{\"target\":\"https://example.com/\xff\"}"[..],
        ));
    let answer = world.send(bytes.unwrap()).await;
    assert_eq!(answer.problem(), "malformed-json");
}

#[tokio::test]
async fn bodies_have_a_type_a_size_and_a_time() {
    let world = World::new().await;
    let links = "/api/v1/links";
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "",
        "application/jsonx",
        "\u{ff}",
    ] {
        let headers = [("content-type", content_type)];
        let answer = world
            .call_raw(Method::POST, links, &headers, Some("{}"))
            .await;
        assert_eq!(answer.status, 415, "{content_type}");
        assert_eq!(answer.problem(), "unsupported-media-type");
    }
    let headers = [("content-type", "Application/JSON; charset=utf-8")];
    let body = json!({"target": TARGET}).to_string();
    let answer = world
        .call_raw(Method::POST, links, &headers, Some(&body))
        .await;
    assert_eq!(answer.status, 201);
    let headers = [("content-type", "text/plain")];
    let answer = world
        .call_raw(Method::PATCH, "/api/v1/links/x", &headers, Some("{}"))
        .await;
    assert_eq!(
        answer.header("accept-patch"),
        "application/merge-patch+json, application/json"
    );

    let title = "a".repeat(70_000);
    let body = json!({"target": TARGET, "title": title}).to_string();
    let answer = world.call_raw(Method::POST, links, &[], Some(&body)).await;
    assert_eq!(
        (answer.status.as_u16(), answer.problem().as_str()),
        (413, "body-too-large")
    );
    assert_eq!(answer.header("connection"), "close", "the rest is not read");

    // The same without a length up front.
    let chunks = stream::iter((0..80).map(|_| Ok::<_, std::io::Error>("a".repeat(1_024))));
    let request = Request::post(links)
        .header("x-api-key", &world.key)
        .header("content-type", "application/json")
        .body(Body::from_stream(chunks));
    assert_eq!(
        world.send(request.unwrap()).await.problem(),
        "body-too-large"
    );

    let never = stream::pending::<Result<&'static str, std::io::Error>>();
    let request = Request::post(links)
        .header("x-api-key", &world.key)
        .header("content-type", "application/json")
        .body(Body::from_stream(never));
    let answer = world.send(request.unwrap()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.problem().as_str()),
        (408, "body-timeout")
    );

    let broken = stream::iter([Err::<&'static str, _>(std::io::Error::other("gone"))]);
    let request = Request::post(links)
        .header("x-api-key", &world.key)
        .header("content-type", "application/json")
        .body(Body::from_stream(broken));
    assert_eq!(
        world.send(request.unwrap()).await.problem(),
        "malformed-request"
    );
}

#[tokio::test]
async fn bulk_requests_have_bounds() {
    let world = World::new().await;
    let path = "/api/v1/links/bulk";
    for (links, refused) in [
        (json!([]), "links/count"),
        (
            Value::Array(vec![json!({"target": TARGET}); 1_001]),
            "links/count",
        ),
        (
            json!([[TARGET, null, null, null, null, null, null, null]]),
            "links[0]/type",
        ),
        (
            json!([{"target": TARGET}, {"target": 1}]),
            "links[1].target/type",
        ),
        (json!({}), "links/type"),
    ] {
        let answer = world
            .call(Method::POST, path, Some(json!({"links": links})))
            .await;
        assert_eq!(answer.problem(), "invalid-input");
        assert_eq!(answer.refused(), refused);
    }
    let most = Value::Array(vec![json!({"target": TARGET}); 1_000]);
    let answer = world
        .call(Method::POST, path, Some(json!({"links": most})))
        .await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["created"]),
        (200, &json!(1_000))
    );
}

/// G12: the results of odd paths are fixed.
#[tokio::test]
async fn odd_paths_have_defined_results() {
    let world = World::new().await;
    world.link("abc").await;
    let long = format!("/{}", "a".repeat(8_192));
    let too_long = format!("/{}", "a".repeat(13_000));
    for (path, status) in [
        ("/abc", 302),
        ("/abc/", 302),
        ("/%61bc", 302),
        ("/%2561bc", 404),
        ("/ABC", 404),
        ("//abc", 404),
        ("/abc//", 404),
        ("/abc%00", 404),
        ("/abc%0d%0a", 404),
        ("/%2e%2e", 404),
        ("/%ff", 404),
        ("/abc%2f", 404),
        ("/abc?x=1", 302),
        ("/a%20b", 404),
        ("/\u{e4}", 404),
        (long.as_str(), 404),
        (too_long.as_str(), 414),
    ] {
        let Ok(request) = Request::get(path).body(Body::empty()) else {
            continue; // Not a path at all: no server would get here.
        };
        let answer = world.send(request).await;
        let shown: String = path.chars().take(40).collect();
        assert_eq!(answer.status.as_u16(), status, "{shown}");
        if status != 302 {
            answer.problem();
        }
    }
}

#[tokio::test]
async fn a_list_refuses_what_it_does_not_know() {
    let world = World::new().await;
    for (query, refused) in [
        ("limit=0", "limit/value"),
        ("limit=201", "limit/value"),
        ("limit=+5", "limit/value"),
        ("limit=x", "limit/value"),
        ("order=random", "order/value"),
        ("state=gone", "state/value"),
        ("created_from=yesterday", "created_from/time"),
        ("created_before=2026-01-01", "created_before/time"),
        ("expires_before=", "expires_before/time"),
        ("sort=key", "sort/unknown"),
        ("limit=1&limit=2", "limit/duplicate"),
        ("cursor=forged", "cursor/cursor_invalid"),
    ] {
        let path = format!("/api/v1/links?{query}");
        let answer = world.call(Method::GET, &path, None).await;
        assert_eq!(answer.status, 422, "{query}: {}", answer.body);
        assert_eq!(answer.refused(), refused, "{query}");
    }
    let path = format!("/api/v1/links?search={}", "a".repeat(201));
    assert_eq!(
        world.call(Method::GET, &path, None).await.refused(),
        "search/length"
    );
}
