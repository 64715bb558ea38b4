//! API keys, by API.

use std::time::Duration;

use axum::body::Body;
use curt_core::Scope;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ADA, Answer, ROOT, World};

async fn by_key(world: &World, key: &str, method: Method, path: &str, body: &str) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("x-api-key", key);
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    let body = Body::from(body.to_owned());
    world.send(request.body(body).unwrap()).await
}

async fn issue(world: &World, body: Value) -> Answer {
    world.call(Method::POST, "/api/v1/keys", Some(body)).await
}

fn token(answer: &Answer) -> String {
    let body = answer.json();
    body["token"].as_str().unwrap().to_owned()
}

async fn works(world: &World, key: &str) -> bool {
    let answer = by_key(world, key, Method::GET, "/api/v1/links", "").await;
    answer.status == StatusCode::OK
}

#[tokio::test]
async fn a_key_is_shown_once_and_does_what_it_may() {
    let world = World::new().await;
    let made = issue(&world, json!({"name": "reader", "scopes": ["read"]})).await;
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(made.header("cache-control"), "no-store");
    let key = token(&made);
    let prefix = made.json()["key"]["prefix"].as_str().unwrap().to_owned();
    assert!(key.starts_with(&format!("curt_{prefix}_")));
    assert!(works(&world, &key).await);
    let body = r#"{"target":"https://example.com/"}"#;
    let create = by_key(&world, &key, Method::POST, "/api/v1/links", body).await;
    assert_eq!(create.problem(), "scope-missing");

    let listed = world.call(Method::GET, "/api/v1/keys", None).await;
    let secret = key.rsplit('_').next().unwrap();
    assert!(!listed.body.contains(secret));
    let keys = listed.json()["keys"].as_array().unwrap().clone();
    let found = keys.iter().find(|key| key["prefix"] == prefix.as_str());
    let found = found.unwrap();
    assert_eq!(found["scopes"], json!(["read"]));
    assert_eq!(found["active"], true);

    let path = format!("/api/v1/keys/{prefix}");
    let revoked = world.call(Method::DELETE, &path, None).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    assert!(!works(&world, &key).await);
    let again = world.call(Method::DELETE, &path, None).await;
    assert_eq!(again.problem(), "not-found");
}

#[tokio::test]
async fn a_key_without_scopes_gets_what_its_maker_may_but_not_admin() {
    let world = World::new().await;
    let root = world.key_for(ROOT, "all", &Scope::ALL).await;
    let made = by_key(
        &world,
        &root,
        Method::POST,
        "/api/v1/keys",
        r#"{"name":"n"}"#,
    );
    let scopes = made.await.json()["key"]["scopes"].clone();
    assert_eq!(scopes, json!(["read", "create", "manage"]));
    let manage = world.key_for(ADA, "m", &[Scope::Manage]).await;
    let made = by_key(
        &world,
        &manage,
        Method::POST,
        "/api/v1/keys",
        r#"{"name":"n"}"#,
    );
    // Without the scope to read, what is stored about it is not shown.
    let made = made.await.json();
    assert_eq!(made.as_object().unwrap().len(), 1);
    let by = made["token"].as_str().unwrap().to_owned();
    let keys = &world.accounts.api_keys;
    let principal = keys.authenticate(&by).await.unwrap().unwrap();
    assert_eq!(principal.scopes, [Scope::Manage].into_iter().collect());
}

#[tokio::test]
async fn a_replaced_key_goes_on_for_the_overlap() {
    let world = World::new().await;
    let made = issue(
        &world,
        json!({"name": "old", "expires_at": "2026-02-01T00:00:00Z"}),
    );
    let made = made.await;
    let old = token(&made);
    let prefix = made.json()["key"]["prefix"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/keys/{prefix}/rotate");
    for seconds in ["-1", "2592001", "1.5", "\"60\"", "18446744073709551616"] {
        let body = format!("{{\"overlap_seconds\":{seconds}}}");
        let refused = world.call_raw(Method::POST, &path, &[], Some(&body)).await;
        assert_eq!(refused.status, 422, "{seconds}");
        assert!(refused.refused().starts_with("overlap_seconds/"));
    }
    let body = json!({"overlap_seconds": 60});
    let rotated = world.call(Method::POST, &path, Some(body)).await;
    assert_eq!(rotated.status, StatusCode::CREATED);
    let new = token(&rotated);
    assert_eq!(rotated.json()["key"]["name"], "old");
    assert!(works(&world, &old).await && works(&world, &new).await);
    let twice = world.call(Method::POST, &path, None).await;
    assert_eq!(twice.problem(), "not-found");
    world.clock.advance(Duration::from_secs(60));
    assert!(!works(&world, &old).await);
    assert!(works(&world, &new).await);
}

#[tokio::test]
async fn bad_wishes_for_a_key_are_refused() {
    let world = World::new().await;
    for (body, field) in [
        (json!({"name": ""}), "name/required"),
        (json!({"name": "n", "scopes": []}), "scopes/required"),
        (
            json!({"name": "n", "scopes": ["admin"]}),
            "scopes/not_allowed",
        ),
        (json!({"name": "n", "scopes": ["all"]}), "scopes[0]/type"),
        (
            json!({"name": "n", "expires_at": "2025-12-31T00:00:00Z"}),
            "expires_at/not_in_future",
        ),
        (json!({"name": "n", "user": "1"}), "user/unknown"),
    ] {
        let answer = issue(&world, body.clone()).await;
        assert_eq!(answer.refused(), field, "{body}");
    }
    let taken = issue(&world, json!({"name": "test"})).await;
    assert_eq!(taken.problem(), "key-name-taken");
}

#[tokio::test]
async fn an_administrator_makes_and_ends_keys_of_others() {
    let world = World::new().await;
    let root = world.key_for(ROOT, "all", &Scope::ALL).await;
    let body = r#"{"name":"given","creations":{"amount":1,"period_seconds":60}}"#;
    let path = "/api/v1/keys?user_id=1";
    let made = by_key(&world, &root, Method::POST, path, body).await;
    assert_eq!(made.json()["key"]["user_id"], "1");
    let key = token(&made);
    let body = r#"{"target":"https://example.com/"}"#;
    let first = by_key(&world, &key, Method::POST, "/api/v1/links", body).await;
    assert_eq!(first.json()["owner_id"], "1");
    assert_eq!(first.header("ratelimit"), "\"create\";r=0;t=60");
    let second = by_key(&world, &key, Method::POST, "/api/v1/links", body).await;
    assert_eq!(second.problem(), "rate-limited");
    let nobody = by_key(
        &world,
        &root,
        Method::POST,
        "/api/v1/keys?user_id=99",
        r#"{"name":"n"}"#,
    );
    assert_eq!(nobody.await.problem(), "not-found");
    let prefix = made.json()["key"]["prefix"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/keys/{prefix}");
    let revoked = by_key(&world, &root, Method::DELETE, &path, "").await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
}
