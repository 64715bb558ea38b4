//! What holds whatever is asked: negotiation, HEAD, outages, health, metrics, anonymous links, request ids.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use curt_http::Impact;
use futures_util::{StreamExt, stream};
use http::{Method, Request};
use serde_json::{Value, json};

use crate::harness::{World, answer};

#[tokio::test]
async fn head_answers_like_get_without_a_body() {
    let world = World::new().await;
    world.ready.pass("serving");
    world.link("abc").await;
    for path in [
        "/",
        "/abc",
        "/abc/",
        "/nope",
        "/api",
        "/api/openapi.json",
        "/api/v1/links",
        "/api/v1/links/abc",
        "/api/v1/links/nope",
        "/api/v1/links/abc/stats",
        "/api/v1/links/abc/clicks",
        "/api/v1/live?seconds=0",
        "/problems",
        "/health/live",
        "/health/ready",
        "/robots.txt",
        "/favicon.ico",
    ] {
        let mut get = world.call(Method::GET, path, None).await;
        let mut head = world.call(Method::HEAD, path, None).await;
        assert_eq!(get.status, head.status, "{path}");
        assert_eq!(head.body, "", "{path}");
        get.headers.remove("x-request-id");
        head.headers.remove("x-request-id");
        assert_eq!(get.headers, head.headers, "{path}");
    }
}

#[tokio::test]
async fn problems_are_pages_for_browsers_and_documents_for_programs() {
    let world = World::new().await;
    for path in ["/nope", "/api/v1/links", "/a/b", "/problems/nope"] {
        let page = world.browse(path).await;
        let document = world
            .send(Request::get(path).body(Body::empty()).unwrap())
            .await;
        assert_eq!(page.status, document.status, "{path}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let varies = page.header("vary").split(", ").next();
        assert_eq!(
            (varies, document.header("vary")),
            (Some("accept"), "accept")
        );
        assert_eq!(
            page.header("www-authenticate"),
            document.header("www-authenticate")
        );
        assert!(
            page.header("content-security-policy")
                .contains("frame-ancestors 'none'")
        );
        assert!(
            page.body
                .contains(document.json()["title"].as_str().unwrap())
        );
        document.problem();
    }
    let page = world
        .call_raw(Method::PUT, "/api", &[("accept", "text/html")], None)
        .await;
    assert_eq!(
        (page.status.as_u16(), page.header("allow")),
        (405, "GET,HEAD")
    );
}

#[tokio::test]
async fn every_problem_type_has_its_page() {
    let world = World::new().await;
    for code in curt_http::problem::ProblemCode::ALL {
        let page = world.browse(&format!("/problems/{}", code.slug())).await;
        assert_eq!(page.status, 200);
        assert!(page.body.contains(code.title()), "{}", code.slug());
    }
}

#[tokio::test]
async fn an_outage_is_503_with_retry_after_and_tells_nothing() {
    let world = World::new().await;
    world.store.set(true);
    let body = json!({"target": "https://example.com/"});
    for (method, path, body) in [
        (Method::GET, "/abc", None),
        (Method::GET, "/api/v1/links", None),
        (Method::GET, "/api/v1/links/abc", None),
        (Method::POST, "/api/v1/links", Some(body.clone())),
        (Method::PATCH, "/api/v1/links/abc", Some(json!({}))),
        (Method::DELETE, "/api/v1/links/abc", None),
        (Method::DELETE, "/api/v1/deleteURL?url_key=abc", None),
    ] {
        let answer = world.call(method, path, body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.problem().as_str()),
            (503, "store-unavailable"),
            "{path}"
        );
        assert!(answer.header("retry-after").parse::<u32>().unwrap() > 0);
        assert!(
            !answer.body.contains("db-17"),
            "operators' words stay in the log"
        );
    }
    world.store.set(false);
    assert_eq!(
        world
            .call(Method::POST, "/api/v1/links", Some(body))
            .await
            .status,
        201
    );
}

#[tokio::test]
async fn a_panic_is_one_500_and_nothing_more() {
    let world = World::new().await;
    world.link("abc").await;
    world.store.panics(true);
    let answer = world.call(Method::GET, "/api/v1/links/abc", None).await;
    assert_eq!(
        (answer.status.as_u16(), answer.problem().as_str()),
        (500, "internal")
    );
    assert!(!answer.header("x-request-id").is_empty());
    world.store.panics(false);
    let answer = world.call(Method::GET, "/api/v1/links/abc", None).await;
    assert_eq!(answer.status, 200);
}

/// A client that still sends must not lose the answer, nor its next request.
#[tokio::test]
async fn a_short_rest_of_a_body_is_read_and_a_long_one_closes_the_connection() {
    let world = World::new().await;
    let left = Arc::new(AtomicUsize::new(3));
    let counter = Arc::clone(&left);
    let chunks = stream::iter(0..3).map(move |_| {
        counter.fetch_sub(1, Ordering::SeqCst);
        Ok::<_, std::io::Error>("chunk")
    });
    let request = Request::post("/api/v1/links").body(Body::from_stream(chunks));
    let answer = world.send(request.unwrap()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("connection")),
        (401, "")
    );
    assert_eq!(left.load(Ordering::SeqCst), 0);
    let long = Body::from("a".repeat(100_000));
    let answer = world.send(Request::put("/api").body(long).unwrap()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("connection")),
        (405, "close")
    );
}

#[tokio::test]
async fn health_follows_the_checks_on_both_ports() {
    let world = World::new().await;
    let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    let (pass, fail) = (None, Some);
    for (outcome, ready_status, create_status, word) in [
        (pass, 200, 200, "ok"),
        (fail(Impact::Degraded), 200, 200, "degraded"),
        (fail(Impact::NoCreates), 200, 503, "degraded"),
        (fail(Impact::Unavailable), 503, 503, "unavailable"),
        (pass, 200, 200, "ok"),
    ] {
        match outcome {
            None => world.ready.pass("links"),
            Some(impact) => world.ready.fail("links", impact, "db1 is away"),
        };
        for (router, is_public) in [(&world.router, true), (&world.admin, false)] {
            let mut check = json!({"name": "links", "ok": outcome.is_none()});
            if let Some(impact) = outcome {
                check["impact"] = json!(impact.as_str());
                if !is_public {
                    check["reason"] = json!("db1 is away");
                }
            }
            for (path, status) in [
                ("/health/ready", ready_status),
                ("/health/create", create_status),
            ] {
                let health = answer(router.clone(), get(path)).await;
                assert_eq!(
                    (health.status.as_u16(), &health.json()["status"]),
                    (status, &json!(word)),
                    "{path} with {outcome:?}"
                );
                assert_eq!(health.json()["checks"], json!([check]));
            }
            let live = answer(router.clone(), get("/health/live")).await;
            assert_eq!(
                (live.status.as_u16(), &live.json()["status"]),
                (200, &json!("ok"))
            );
        }
    }
}

#[tokio::test]
async fn requests_are_counted_by_route_and_not_by_path() {
    let world = World::new().await;
    world.link("abc").await;
    world.call(Method::GET, "/api/v1/links/abc", None).await;
    world.call(Method::GET, "/api/v1/links/nope", None).await;
    world.call(Method::GET, "/somewhere/else", None).await;
    let invented = Request::builder()
        .method("BREW")
        .uri("/abc")
        .body(Body::empty());
    assert_eq!(world.send(invented.unwrap()).await.status, 405);
    let metrics = answer(
        world.admin.clone(),
        Request::get("/metrics").body(Body::empty()).unwrap(),
    )
    .await;
    assert!(
        metrics
            .header("content-type")
            .starts_with("application/openmetrics-text")
    );
    for line in [
        r#"curt_http_requests_total{route="/api/v1/links",method="POST",status="201"} 1"#,
        r#"curt_http_requests_total{route="/api/v1/links/{key}",method="GET",status="200"} 1"#,
        r#"curt_http_requests_total{route="/api/v1/links/{key}",method="GET",status="404"} 1"#,
        r#"curt_http_requests_total{route="unmatched",method="GET",status="404"} 1"#,
        r#"curt_http_requests_total{route="/{key}",method="OTHER",status="405"} 1"#,
        r#"curt_http_request_seconds_count{route="/api/v1/links"} 1"#,
    ] {
        assert!(metrics.body.contains(line), "{line}\n{}", metrics.body);
    }
    assert!(!metrics.body.contains("nope"));
}

#[tokio::test]
async fn a_harmless_request_id_comes_back_and_others_are_replaced() {
    let world = World::new().await;
    for (given, kept) in [
        ("abc-123_4.5:6", true),
        ("a b", false),
        ("a\"b", false),
        ("{}", false),
        ("", false),
    ] {
        let answer = world
            .call_raw(Method::GET, "/", &[("x-request-id", given)], None)
            .await;
        assert_eq!(answer.header("x-request-id") == given, kept, "{given}");
        assert!(!answer.header("x-request-id").is_empty());
    }
    let long = "a".repeat(129);
    let answer = world
        .call_raw(Method::GET, "/", &[("x-request-id", &long)], None)
        .await;
    assert_ne!(answer.header("x-request-id"), long);
}

#[tokio::test]
async fn anonymous_links_can_be_made_but_not_managed() {
    let world = World::anonymous().await;
    let post = || Request::post("/api/v1/links").header("content-type", "application/json");
    let body = || Body::from(r#"{"target":"https://example.com/"}"#);
    let made = world.send(post().body(body()).unwrap()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let path = made.header("location").to_owned();
    let request = Request::delete(&path).body(Body::empty()).unwrap();
    assert_eq!(world.send(request).await.status, 401);
    assert_eq!(world.call(Method::DELETE, &path, None).await.status, 404);
    let bad = post().header("x-api-key", "curt_bad").body(body()).unwrap();
    assert_eq!(world.send(bad).await.status, 401, "a bad key is not no key");
    // H8: a page of another site cannot use the visitor's browser.
    for (name, value, status) in [
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("sec-fetch-site", "same-origin", 201),
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("origin", "https://sho.rt", 201),
    ] {
        let request = post()
            .header("host", "sho.rt")
            .header(name, value)
            .body(body());
        let answer = world.send(request.unwrap()).await;
        assert_eq!(answer.status.as_u16(), status, "{name}: {value}");
    }
    let path = "/api/v1/createURL?original_url=https://example.com/";
    let request = Request::post(path)
        .header("sec-fetch-site", "cross-site")
        .body(Body::empty());
    assert_eq!(world.send(request.unwrap()).await.problem(), "cross-site");
}

/// I4 and the exactness that a fuzzer then checks in depth.
#[tokio::test]
async fn the_openapi_document_describes_what_is_served() {
    let world = World::new().await;
    let document = world
        .call(Method::GET, "/api/openapi.json", None)
        .await
        .json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut operations = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations += 1;
            let method: Method = method.to_uppercase().parse().unwrap();
            // A live feed goes on for an hour unless told otherwise.
            let short = if path.ends_with("/live") {
                "?seconds=0"
            } else {
                ""
            };
            let asked = path.replace("{key}", "abc") + short;
            let answer = world.call(method.clone(), &asked, None).await;
            assert_ne!(answer.status, 405, "{method} {path}");
            let statuses = operation["responses"].as_object().unwrap();
            assert!(
                statuses.contains_key(answer.status.as_str()),
                "{method} {path}: {}",
                answer.status
            );
            assert!(operation["summary"].is_string() && operation["operationId"].is_string());
        }
    }
    assert_eq!(operations, 67);
    let text = document.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert_ne!(
            document["components"]["schemas"][name],
            Value::Null,
            "{name}"
        );
    }
    let anonymous = World::anonymous().await;
    let document = anonymous
        .call(Method::GET, "/api/openapi.json", None)
        .await
        .json();
    let create = &document["paths"]["/api/v1/links"]["post"]["security"];
    assert!(create.as_array().unwrap().contains(&json!({})));
}
