//! Pages of other origins that use the API: who may, what they may, and that no cookie is theirs.

use axum::body::Body;
use curt_http::{CorsOrigins, HttpSettings};
use http::{Method, Request};
use serde_json::json;

use crate::harness::{ADA, Answer, BASE, World};

const APP: &str = "https://app.example.com";
const EVIL: &str = "https://evil.example";
const LINKS: &str = "/api/v1/links";

async fn world(origins: &[&str]) -> World {
    let origins: Vec<_> = origins.iter().map(|text| (*text).to_owned()).collect();
    let mut settings = HttpSettings::default();
    settings.api.cors_origins = CorsOrigins::parse(&origins).unwrap();
    World::with(settings).await
}

async fn ask(world: &World, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.send(request.body(Body::empty()).unwrap()).await
}

async fn preflight(world: &World, path: &str, origin: &str) -> Answer {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "PATCH"),
        ("access-control-request-headers", "authorization,if-match"),
    ];
    ask(world, "OPTIONS", path, &headers).await
}

fn cors_headers(answer: &Answer) -> Vec<&str> {
    let names = answer.headers.keys().map(|name| name.as_str());
    names
        .filter(|name| name.starts_with("access-control-"))
        .collect()
}

#[tokio::test]
async fn a_preflight_of_an_allowed_origin_is_granted_for_every_path_of_the_api() {
    let world = world(&[APP, "http://localhost:5173"]).await;
    let document = world.call(Method::GET, "/api/openapi.json", None).await;
    let document = document.json();
    let paths = document["paths"].as_object().unwrap().keys();
    let paths: Vec<_> = paths.filter(|path| path.starts_with("/api/")).collect();
    assert!(paths.len() > 30, "{}", paths.len());
    for path in paths {
        let granted = preflight(&world, path, APP).await;
        assert_eq!(granted.status, 204, "{path}: {}", granted.body);
        assert_eq!(granted.header("access-control-allow-origin"), APP, "{path}");
        assert_eq!(granted.header("vary"), "origin", "{path}");
        let methods = granted.header("access-control-allow-methods");
        for method in document["paths"][path].as_object().unwrap().keys() {
            let method = method.to_uppercase();
            assert!(methods.contains(&method), "{method} {path}: {methods}");
        }
        let headers = granted.header("access-control-allow-headers");
        for name in [
            "authorization",
            "x-api-key",
            "content-type",
            "if-match",
            "idempotency-key",
        ] {
            assert!(headers.contains(name), "{name} {path}: {headers}");
        }
        assert_eq!(granted.header("access-control-max-age"), "7200");
        assert!(
            !granted
                .headers
                .contains_key("access-control-allow-credentials")
        );
    }
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_reads_answers_and_problems_alike() {
    let world = world(&[APP]).await;
    world.link("mine").await;
    let key = world.key.clone();
    for (path, key, status) in [
        ("/api/v1/links/mine", key.as_str(), 200),
        ("/api/v1/links/nope", &key, 404),
        (LINKS, "curt_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 401),
        ("/api/nowhere", &key, 404),
        ("/api/openapi.json", &key, 200),
    ] {
        let answer = ask(&world, "GET", path, &[("origin", APP), ("x-api-key", key)]).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), APP, "{path}");
        assert!(answer.header("vary").contains("origin"), "{path}");
        let exposed = answer.header("access-control-expose-headers");
        for name in [
            "etag",
            "location",
            "link",
            "retry-after",
            "ratelimit",
            "x-request-id",
        ] {
            assert!(exposed.contains(name), "{name}: {exposed}");
        }
    }
    // Too long to be looked at, and still to be read.
    let long = format!("/api/v1/links?search={}", "a".repeat(20_000));
    let answer = ask(&world, "GET", &long, &[("origin", APP)]).await;
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.header("access-control-allow-origin")
        ),
        (414, APP)
    );
}

#[tokio::test]
async fn nobody_else_is_granted_anything() {
    let listed = world(&[APP]).await;
    listed.link("mine").await;
    for origin in [
        EVIL,
        "null",
        "http://app.example.com",
        "https://app.example.com.evil.example",
        "https://app.example.com:8443",
        "https://APP.example.com",
        BASE,
    ] {
        let refused = preflight(&listed, LINKS, origin).await;
        assert_eq!(refused.status, 405, "{origin}");
        let headers = [("origin", origin), ("x-api-key", &listed.key)];
        let read = ask(&listed, "GET", LINKS, &headers).await;
        assert_eq!(read.status, 200, "programs may send what they like");
        for answer in [&refused, &read] {
            assert_eq!(cors_headers(answer), [""; 0], "{origin}");
            assert!(answer.header("vary").contains("origin"), "{origin}");
        }
    }
    // Neither are pages and redirects for other origins.
    for path in ["/mine", "/", "/sign-in", "/health/live", "/api"] {
        for answer in [
            preflight(&listed, path, APP).await,
            ask(&listed, "GET", path, &[("origin", APP)]).await,
        ] {
            assert_eq!(cors_headers(&answer), [""; 0], "{path}");
            assert!(!answer.header("vary").contains("origin"), "{path}");
        }
    }
    let off = World::new().await;
    let refused = preflight(&off, LINKS, APP).await;
    assert_eq!(
        (refused.status.as_u16(), refused.header("vary")),
        (405, "accept")
    );
    assert_eq!(cors_headers(&refused), [""; 0]);
}

#[tokio::test]
async fn any_origin_may_be_allowed_and_never_with_credentials() {
    let world = world(&["*"]).await;
    for origin in [APP, EVIL, "null"] {
        let granted = preflight(&world, LINKS, origin).await;
        assert_eq!(granted.status, 204);
        let headers = [("origin", origin), ("x-api-key", &world.key)];
        let read = ask(&world, "GET", LINKS, &headers).await;
        for answer in [granted, read] {
            assert_eq!(answer.header("access-control-allow-origin"), "*");
            assert!(
                !answer
                    .headers
                    .contains_key("access-control-allow-credentials")
            );
        }
    }
}

/// Sites of one domain send each other's cookies, whatever `SameSite` says.
#[tokio::test]
async fn a_page_of_another_origin_has_no_use_of_a_session() {
    for origins in [&[APP][..], &["*"]] {
        let world = world(origins).await;
        world.link("mine").await;
        let cookie = format!("__Host-curt_session={}", world.session(ADA).await);
        for site in ["cross-site", "same-site"] {
            let foreign = [
                ("origin", APP),
                ("sec-fetch-site", site),
                ("cookie", cookie.as_str()),
            ];
            let read = ask(&world, "GET", LINKS, &foreign).await;
            assert_eq!(read.problem(), "credentials-missing", "{origins:?} {site}");
            let ended = ask(&world, "DELETE", "/api/v1/links/mine", &foreign).await;
            assert_eq!(ended.problem(), "credentials-missing", "{origins:?} {site}");
            let with_key = [&foreign[..], &[("x-api-key", world.key.as_str())]].concat();
            assert_eq!(ask(&world, "GET", LINKS, &with_key).await.status, 200);
        }
        // Signing in would set a cookie.
        let body = json!({"email": "ada@example.com", "password": "correct horse battery"});
        let headers = [("origin", APP)];
        let sign_in = world
            .call_raw(
                Method::POST,
                "/api/v1/sessions",
                &headers,
                Some(&body.to_string()),
            )
            .await;
        assert_eq!(sign_in.problem(), "cross-site", "{origins:?}");
        assert!(!sign_in.headers.contains_key("set-cookie"));
        // Our own pages go on as before.
        let own = [
            ("origin", BASE),
            ("sec-fetch-site", "same-origin"),
            ("cookie", cookie.as_str()),
        ];
        let read = ask(&world, "GET", LINKS, &own).await;
        assert_eq!((read.status.as_u16(), cors_headers(&read).len()), (200, 0));
        let deleted = ask(&world, "DELETE", "/api/v1/links/mine", &own).await;
        assert_eq!(deleted.status, 204, "{origins:?}");
    }
}

#[tokio::test]
async fn links_without_a_key_are_not_made_by_pages_of_other_origins() {
    let mut settings = HttpSettings::default();
    settings.api.cors_origins = CorsOrigins::Any;
    settings.api.anonymous_create = true;
    let world = World::with(settings).await;
    let request = Request::post(LINKS)
        .header("origin", APP)
        .header("content-type", "application/json")
        .body(Body::from(r#"{"target":"https://a.example/"}"#));
    let refused = world.send(request.unwrap()).await;
    assert_eq!(refused.problem(), "cross-site");
    assert_eq!(refused.header("access-control-allow-origin"), "*");
}
