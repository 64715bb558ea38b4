//! G11: every endpoint × every method × no, bad, revoked, foreign and good credentials.

use axum::body::Body;
use http::{Method, Request};

use crate::harness::{Answer, World};

#[derive(Clone, Copy, Debug)]
enum Who {
    Nobody,
    Garbage,
    Revoked,
    Stranger,
    Owner,
}

const EVERYBODY: [Who; 5] = [
    Who::Nobody,
    Who::Garbage,
    Who::Revoked,
    Who::Stranger,
    Who::Owner,
];

/// The statuses for nobody, garbage, revoked, stranger and owner.
type Row = (&'static str, &'static str, &'static str, [u16; 5]);

/// For all of them the same.
const fn all(status: u16) -> [u16; 5] {
    [status; 5]
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    // method, path, body, statuses
    ("GET",    "/api/v1/links",       "", [401, 401, 401, 200, 200]),
    ("HEAD",   "/api/v1/links",       "", [401, 401, 401, 200, 200]),
    ("POST",   "/api/v1/links",       r#"{"target":"https://a.example/"}"#, [401, 401, 401, 201, 201]),
    ("PUT",    "/api/v1/links",       "{}", all(405)),
    ("PATCH",  "/api/v1/links",       "{}", all(405)),
    ("DELETE", "/api/v1/links",       "", all(405)),
    ("POST",   "/api/v1/links/bulk",  r#"{"links":[{"target":"https://a.example/"}]}"#, [401, 401, 401, 200, 200]),
    ("PUT",    "/api/v1/links/bulk",  "{}", all(405)),
    // A GET on `bulk` would be a link of that name, which is reserved: the path belongs to the POST.
    ("GET",    "/api/v1/links/bulk",  "", all(405)),
    ("GET",    "/api/v1/links/mine",  "", [401, 401, 401, 404, 200]),
    ("HEAD",   "/api/v1/links/mine",  "", [401, 401, 401, 404, 200]),
    ("PATCH",  "/api/v1/links/mine",  r#"{"title":"t"}"#, [401, 401, 401, 404, 200]),
    ("POST",   "/api/v1/links/mine",  "{}", all(405)),
    ("PUT",    "/api/v1/links/mine",  "{}", all(405)),
    ("DELETE", "/api/v1/links/mine",  "", [401, 401, 401, 404, 204]),
    ("GET",    "/api/v1/links/nope",  "", [401, 401, 401, 404, 404]),
    ("PATCH",  "/api/v1/links/nope",  "{}", [401, 401, 401, 404, 404]),
    ("DELETE", "/api/v1/links/nope",  "", [401, 401, 401, 404, 404]),
    // Live feeds end at once when asked to.
    ("GET",    "/api/v1/links/mine/stats", "", [401, 401, 401, 404, 200]),
    ("GET",    "/api/v1/links/nope/stats", "", [401, 401, 401, 404, 404]),
    ("POST",   "/api/v1/links/mine/stats", "", all(405)),
    ("GET",    "/api/v1/stats",         "", [401, 401, 401, 200, 200]),
    ("DELETE", "/api/v1/stats",         "", all(405)),
    ("GET",    "/api/v1/links/mine/stats.csv", "", [401, 401, 401, 404, 200]),
    ("GET",    "/api/v1/links/nope/stats.csv", "", [401, 401, 401, 404, 404]),
    ("POST",   "/api/v1/links/mine/stats.csv", "", all(405)),
    ("GET",    "/api/v1/stats.csv",     "", [401, 401, 401, 200, 200]),
    ("DELETE", "/api/v1/stats.csv",     "", all(405)),
    ("GET",    "/api/v1/links/mine/stats/country", "", [401, 401, 401, 404, 200]),
    ("GET",    "/api/v1/links/nope/stats/country", "", [401, 401, 401, 404, 404]),
    ("POST",   "/api/v1/links/mine/stats/country", "", all(405)),
    ("GET",    "/api/v1/stats/country", "", [401, 401, 401, 200, 200]),
    ("DELETE", "/api/v1/stats/country", "", all(405)),
    ("GET",    "/api/v1/links/mine/visits", "", [401, 401, 401, 404, 200]),
    ("GET",    "/api/v1/links/nope/visits", "", [401, 401, 401, 404, 404]),
    ("POST",   "/api/v1/links/mine/visits", "", all(405)),
    ("GET",    "/api/v1/visits",        "", [401, 401, 401, 200, 200]),
    ("DELETE", "/api/v1/visits",        "", all(405)),
    ("GET",    "/api/v1/links/mine/visits.csv", "", [401, 401, 401, 404, 200]),
    ("GET",    "/api/v1/links/nope/visits.csv", "", [401, 401, 401, 404, 404]),
    ("POST",   "/api/v1/links/mine/visits.csv", "", all(405)),
    ("GET",    "/api/v1/visits.csv",    "", [401, 401, 401, 200, 200]),
    ("DELETE", "/api/v1/visits.csv",    "", all(405)),
    ("GET",    "/api/v1/links/mine/live?seconds=0", "", [401, 401, 401, 404, 200]),
    ("GET",    "/api/v1/links/nope/live?seconds=0", "", [401, 401, 401, 404, 404]),
    ("POST",   "/api/v1/links/mine/live?seconds=0", "", all(405)),
    ("GET",    "/api/v1/live?seconds=0", "", [401, 401, 401, 200, 200]),
    ("DELETE", "/api/v1/live?seconds=0", "", all(405)),
    ("HEAD",   "/api/v1/stats",         "", [401, 401, 401, 200, 200]),
    ("HEAD",   "/api/v1/live?seconds=0", "", [401, 401, 401, 200, 200]),
    ("GET",    "/api/v1/links/mine/stats/age", "", [401, 401, 401, 404, 404]),
    ("GET",    "/api/v1/stats/age",     "", [401, 401, 401, 404, 404]),
    ("GET",    "/api/v1/orphans",       "", [401, 401, 401, 403, 403]),
    ("POST",   "/api/v1/orphans",       "", all(405)),
    ("GET",    "/api/v1/orphans/key",   "", [401, 401, 401, 403, 403]),
    ("POST",   "/api/v1/orphans/key",   "", all(405)),
    ("GET",    "/api/v1/orphans/visits", "", [401, 401, 401, 403, 403]),
    ("POST",   "/api/v1/orphans/visits", "", all(405)),
    ("POST",   "/api/v1/createURL?original_url=https://a.example/", "", [401, 401, 401, 200, 200]),
    ("GET",    "/api/v1/createURL",   "", all(405)),
    ("PUT",    "/api/v1/createURL",   "", all(405)),
    ("DELETE", "/api/v1/createURL",   "", all(405)),
    ("DELETE", "/api/v1/deleteURL?url_key=mine", "", [401, 401, 401, 404, 200]),
    ("GET",    "/api/v1/deleteURL",   "", all(405)),
    ("POST",   "/api/v1/deleteURL",   "", all(405)),
    ("GET",    "/mine",               "", all(302)),
    ("HEAD",   "/mine",               "", all(302)),
    ("POST",   "/mine",               "", all(405)),
    ("PUT",    "/mine",               "", all(405)),
    ("PATCH",  "/mine",               "", all(405)),
    ("DELETE", "/mine",               "", all(405)),
    ("OPTIONS","/mine",               "", all(405)),
    ("GET",    "/mine/",              "", all(302)),
    ("GET",    "/nope",               "", all(404)),
    ("GET",    "/",                   "", all(200)),
    ("HEAD",   "/",                   "", all(200)),
    ("PUT",    "/",                   "", all(405)),
    ("DELETE", "/",                   "", all(405)),
    ("GET",    "/api",                "", all(200)),
    ("POST",   "/api",                "", all(405)),
    ("GET",    "/api/openapi.json",   "", all(200)),
    ("DELETE", "/api/openapi.json",   "", all(405)),
    ("GET",    "/problems",           "", all(200)),
    ("GET",    "/problems/internal",  "", all(200)),
    ("GET",    "/problems/nope",      "", all(404)),
    ("POST",   "/problems/internal",  "", all(405)),
    ("GET",    "/health/live",        "", all(200)),
    ("GET",    "/health/ready",       "", all(200)),
    ("POST",   "/health/ready",       "", all(405)),
    ("GET",    "/robots.txt",         "", all(200)),
    ("GET",    "/favicon.ico",        "", all(200)),
    ("GET",    "/assets/nope.css",    "", all(404)),
    // Metrics have a port of their own.
    ("GET",    "/metrics",            "", all(404)),
    ("GET",    "/api/v1",             "", all(404)),
    ("GET",    "/api/v2/links",       "", all(404)),
    ("GET",    "/api/v1/links/",      "", all(404)),
    ("GET",    "/a/b/c",              "", all(404)),
];

#[tokio::test]
async fn every_endpoint_answers_every_caller_as_documented() {
    for (method, path, body, statuses) in TABLE {
        for (who, status) in EVERYBODY.into_iter().zip(statuses) {
            let world = World::new().await;
            world.ready.set("serving", true);
            world.link("mine").await;
            let answer = ask(&world, method, path, body, who).await;
            let case = format!("{method} {path} by {who:?}: {answer:?}");
            assert_eq!(answer.status.as_u16(), *status, "{case}");
            check(method, &answer, &case);
        }
    }
}

async fn ask(world: &World, method: &str, path: &str, body: &str, who: Who) -> Answer {
    let key = match who {
        Who::Nobody => None,
        Who::Garbage => Some("curt_aaaaaaaa_00000000000000000000000000000000"),
        Who::Revoked => Some(world.revoked.as_str()),
        Who::Stranger => Some(world.stranger.as_str()),
        Who::Owner => Some(world.key.as_str()),
    };
    let mut request = Request::builder().method(method).uri(path);
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    world.send(request).await
}

/// What holds for every answer, whatever was asked.
fn check(method: &str, answer: &Answer, case: &str) {
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{case}");
    assert!(
        !answer.header("content-security-policy").is_empty(),
        "{case}"
    );
    assert!(!answer.header("referrer-policy").is_empty(), "{case}");
    assert!(!answer.header("cache-control").is_empty(), "{case}");
    assert!(!answer.header("x-request-id").is_empty(), "{case}");
    assert!(!answer.headers.contains_key("server"), "{case}");
    if method == "HEAD" {
        assert!(answer.body.is_empty(), "{case}");
    } else if answer.status.is_client_error() {
        answer.problem();
    }
    match answer.status.as_u16() {
        401 => assert!(
            answer.header("www-authenticate").starts_with("Bearer"),
            "{case}"
        ),
        405 => assert!(!answer.header("allow").is_empty(), "{case}"),
        _ => {}
    }
}

#[tokio::test]
async fn a_key_comes_in_one_of_three_ways_and_a_header_wins() {
    let world = World::new().await;
    let (good, bad) = (world.key.as_str(), "curt_bad");
    let query =
        |key: &str| format!("/api/v1/createURL?original_url=https://a.example/&api_dev_key={key}");
    let plain = "/api/v1/createURL?original_url=https://a.example/".to_owned();
    for (path, header, status) in [
        (
            plain.clone(),
            Some(("authorization", format!("Bearer {good}"))),
            200,
        ),
        (
            plain.clone(),
            Some(("authorization", format!("bearer  {good}"))),
            200,
        ),
        (
            plain.clone(),
            Some(("authorization", format!("Basic {good}"))),
            401,
        ),
        (plain.clone(), Some(("authorization", good.to_owned())), 401),
        (plain.clone(), Some(("x-api-key", good.to_owned())), 200),
        (plain.clone(), Some(("x-api-key", bad.to_owned())), 401),
        (plain, None, 401),
        (query(good), None, 200),
        (query(bad), None, 401),
        (query(bad), Some(("x-api-key", good.to_owned())), 200),
        (query(good), Some(("x-api-key", bad.to_owned())), 401),
    ] {
        let mut request = Request::builder().method(Method::POST).uri(&path);
        if let Some((name, value)) = &header {
            request = request.header(*name, value);
        }
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status.as_u16(), status, "{path} {header:?}");
    }
    // The REST resource takes no key from the query: addresses end up in logs.
    let path = format!("/api/v1/links?api_dev_key={good}");
    let request = Request::get(path).body(Body::empty()).unwrap();
    assert_eq!(world.send(request).await.status, 401);
}

#[tokio::test]
async fn no_route_can_be_taken_by_an_alias() {
    for (_, path, _, _) in TABLE {
        let first = path
            .trim_start_matches('/')
            .split(['/', '?'])
            .next()
            .unwrap();
        let link = ["mine", "nope", "", "a"].contains(&first);
        assert!(link || curt_core::reserved::is_reserved(first), "{path}");
    }
}
