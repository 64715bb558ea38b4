//! I6 and I7: requests that are repeated or that race.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::ConnectInfo;
use curt_core::Scope;
use http::{Method, Request};
use serde_json::json;
use tokio::task::JoinSet;

use crate::harness::{ADA, World};

const LINKS: &str = "/api/v1/links";

async fn create(world: &World, key: &str, body: &str) -> crate::harness::Answer {
    let headers = [("idempotency-key", key)];
    world
        .call_raw(Method::POST, LINKS, &headers, Some(body))
        .await
}

#[tokio::test]
async fn the_same_request_under_one_key_makes_one_link() {
    let world = World::new().await;
    let first = create(
        &world,
        "k1",
        r#"{"target":"https://a.example/","title":"t"}"#,
    )
    .await;
    assert_eq!(first.status, 201);
    assert_eq!(first.header("idempotent-replayed"), "");
    // Spaces and order do not make another request.
    let again = create(
        &world,
        "k1",
        r#" {"title" : "t", "target":"https://a.example/"} "#,
    )
    .await;
    assert_eq!((again.status.as_u16(), &again.body), (201, &first.body));
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(again.header("etag"), first.header("etag"));
    let other = create(&world, "k1", r#"{"target":"https://b.example/"}"#).await;
    assert_eq!(
        (other.status.as_u16(), other.problem().as_str()),
        (422, "idempotency-mismatch")
    );
    let null = create(
        &world,
        "k2",
        r#"{"target":"https://a.example/","expires_at":null}"#,
    )
    .await;
    let absent = create(&world, "k2", r#"{"target":"https://a.example/"}"#).await;
    assert_eq!(null.status, 201);
    assert_eq!(
        absent.problem(),
        "idempotency-mismatch",
        "null and absent are not the same"
    );
    let list = world.call(Method::GET, LINKS, None).await;
    assert_eq!(list.json()["links"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_key_belongs_to_its_owner_and_its_operation() {
    let world = World::new().await;
    let body = r#"{"target":"https://a.example/"}"#;
    let mine = create(&world, "k", body).await;
    let stranger = format!("Bearer {}", world.stranger);
    let headers = [
        ("idempotency-key", "k"),
        ("authorization", stranger.as_str()),
    ];
    let theirs = world
        .call_raw(Method::POST, LINKS, &headers, Some(body))
        .await;
    assert_eq!((mine.status.as_u16(), theirs.status.as_u16()), (201, 201));
    assert_ne!(mine.json()["key"], theirs.json()["key"]);
    let bulk = format!(r#"{{"links":[{body}]}}"#);
    let headers = [("idempotency-key", "k")];
    let bulk = world
        .call_raw(Method::POST, "/api/v1/links/bulk", &headers, Some(&bulk))
        .await;
    assert_eq!(bulk.problem(), "idempotency-mismatch");
}

#[tokio::test]
async fn a_bulk_request_can_be_repeated_too() {
    let world = World::new().await;
    let body = json!({"links": [{"target": "https://a.example/"}, {"target": "https://b.example/", "alias": "b"}]});
    let body = body.to_string();
    let headers = [("idempotency-key", "bulk")];
    let path = "/api/v1/links/bulk";
    let first = world
        .call_raw(Method::POST, path, &headers, Some(&body))
        .await;
    let again = world
        .call_raw(Method::POST, path, &headers, Some(&body))
        .await;
    assert_eq!((first.status.as_u16(), &first.body), (200, &again.body));
    assert_eq!(first.header("idempotent-replayed"), "");
    assert_eq!(again.header("idempotent-replayed"), "true");
}

#[tokio::test]
async fn a_repeated_create_tells_what_its_link_is_like_now() {
    let world = World::new().await;
    let body = r#"{"target":"https://a.example/","alias":"mine"}"#;
    let first = create(&world, "k", body).await;
    assert_eq!(first.status, 201);
    let change = Some(json!({"target": "https://b.example/"}));
    let edited = world
        .call(Method::PATCH, "/api/v1/links/mine", change)
        .await;
    let again = create(&world, "k", body).await;
    assert_eq!((again.status.as_u16(), again.json()), (201, edited.json()));
    assert_eq!(again.header("etag"), edited.header("etag"));
    assert_eq!(again.header("idempotent-replayed"), "true");

    let deleted = world.call(Method::DELETE, "/api/v1/links/mine", None).await;
    assert_eq!(deleted.status, 204);
    for _ in 0..2 {
        let gone = create(&world, "k", body).await;
        assert_eq!(
            (gone.status.as_u16(), gone.problem().as_str()),
            (410, "created-link-gone")
        );
        assert_eq!(gone.header("idempotent-replayed"), "true");
        assert!(gone.body.contains("mine"), "{}", gone.body);
        for invented in ["active", "expires_at", "revision"] {
            assert!(!gone.body.contains(invented), "{}", gone.body);
        }
    }
    let other = create(&world, "new", r#"{"target":"https://a.example/"}"#).await;
    assert_eq!(other.status, 201);
}

#[tokio::test]
async fn a_repeated_bulk_request_tells_which_links_are_gone() {
    let world = World::new().await;
    let body = json!({"links": [{"target": "https://a.example/", "alias": "a"}, {"target": "https://b.example/", "alias": "b"}]});
    let body = body.to_string();
    let headers = [("idempotency-key", "bulk")];
    let path = "/api/v1/links/bulk";
    let send = || world.call_raw(Method::POST, path, &headers, Some(&body));
    let first = send().await.json();
    world.call(Method::DELETE, "/api/v1/links/a", None).await;
    let again = send().await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    let told = again.json();
    assert_eq!((&told["created"], &told["failed"]), (&json!(1), &json!(1)));
    let results = &told["results"];
    assert_eq!(results[0]["status"], 410, "{told}");
    assert_eq!(results[0]["problem"]["code"], "created-link-gone", "{told}");
    assert_eq!(results[1], first["results"][1]);
    // The same where none is left.
    world.call(Method::DELETE, "/api/v1/links/b", None).await;
    let again = send().await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(again.json()["failed"], 2);
}

#[tokio::test]
async fn without_an_account_a_key_belongs_to_its_address() {
    let world = World::anonymous().await;
    let send = |from: &'static str, body: &'static str| {
        let address: SocketAddr = from.parse().unwrap();
        let request = Request::post(LINKS)
            .header("content-type", "application/json")
            .header("idempotency-key", "1")
            .extension(ConnectInfo(address))
            .body(Body::from(body));
        world.send(request.unwrap())
    };
    let body = r#"{"target":"https://a.example/"}"#;
    let first = send("192.0.2.1:1000", body).await;
    assert_eq!(first.status, 201, "{}", first.body);
    let again = send("192.0.2.1:2000", body).await;
    assert_eq!(again.json()["key"], first.json()["key"]);
    assert_eq!(again.header("idempotent-replayed"), "true");
    // As seen by a listener for both families.
    let mapped = send("[::ffff:192.0.2.1]:1", body).await;
    assert_eq!(mapped.json()["key"], first.json()["key"]);
    for (from, body) in [
        ("192.0.2.2:1000", body),
        ("[2001:db8::1]:1000", r#"{"target":"https://b.example/"}"#),
    ] {
        let other = send(from, body).await;
        assert_eq!(other.status, 201, "{}", other.body);
        assert_eq!(other.header("idempotent-replayed"), "");
        assert_ne!(other.json()["key"], first.json()["key"]);
    }
    let mismatch = send("192.0.2.1:1000", r#"{"target":"https://b.example/"}"#).await;
    assert_eq!(mismatch.problem(), "idempotency-mismatch");
}

#[tokio::test]
async fn bad_idempotency_keys_are_refused() {
    let world = World::new().await;
    let long = "a".repeat(256);
    for key in ["", "a b", "\u{e4}", long.as_str()] {
        let answer = create(&world, key, r#"{"target":"https://a.example/"}"#).await;
        assert_eq!(
            (answer.status.as_u16(), answer.problem().as_str()),
            (400, "malformed-request"),
            "{key:?}"
        );
    }
}

#[tokio::test]
async fn only_one_of_64_racing_edits_wins() {
    let world = Arc::new(World::new().await);
    world.link("raced").await;
    let mut race = JoinSet::new();
    for number in 0..64 {
        let world = Arc::clone(&world);
        race.spawn(async move {
            let body = json!({"title": number.to_string()}).to_string();
            let headers = [("if-match", "\"1.1\"")];
            let path = "/api/v1/links/raced";
            world
                .call_raw(Method::PATCH, path, &headers, Some(&body))
                .await
        });
    }
    let mut won = Vec::new();
    let mut stale = 0;
    while let Some(answer) = race.join_next().await {
        let answer = answer.unwrap();
        match answer.status.as_u16() {
            200 => won.push(answer.json()["title"].clone()),
            412 => {
                assert_eq!(answer.problem(), "stale-revision");
                assert_eq!(answer.header("etag"), "\"1.2\"");
                stale += 1;
            }
            other => panic!("{other}: {}", answer.body),
        }
    }
    assert_eq!((won.len(), stale), (1, 63));
    let now = world.call(Method::GET, "/api/v1/links/raced", None).await;
    assert_eq!(now.json()["title"], won[0]);
}

#[tokio::test]
async fn preconditions_follow_rfc_9110() {
    let world = World::new().await;
    world.link("abc").await;
    let path = "/api/v1/links/abc";
    for (value, status) in [
        ("*", 200),
        ("\"1.2\"", 200),
        ("\"1.2\"", 412),
        ("\"9.9\", \"1.3\"", 200),
        ("W/\"1.4\"", 412),
        ("\"somebody else's\"", 412),
        ("1.4", 400),
        ("", 400),
    ] {
        let headers = [("if-match", value)];
        let answer = world
            .call_raw(Method::PATCH, path, &headers, Some("{\"title\":\"x\"}"))
            .await;
        assert_eq!(answer.status.as_u16(), status, "{value}: {}", answer.body);
    }
    for (value, status) in [
        ("\"1.4\"", 304),
        ("W/\"1.4\"", 304),
        ("*", 304),
        ("\"1.3\"", 200),
        ("x", 400),
    ] {
        let headers = [("if-none-match", value)];
        let answer = world.call_raw(Method::GET, path, &headers, None).await;
        assert_eq!(answer.status.as_u16(), status, "{value}");
        if status == 304 {
            assert_eq!(
                (answer.header("etag"), answer.body.as_str()),
                ("\"1.4\"", "")
            );
        }
    }
    for (value, status) in [("\"1.1\"", 412), ("\"1.4\"", 204), ("*", 410)] {
        let headers = [("if-match", value)];
        let answer = world.call_raw(Method::DELETE, path, &headers, None).await;
        assert_eq!(answer.status.as_u16(), status, "{value}");
    }
}

/// Whoever may make links and not read them gets what they sent, and never what became of it since.
#[tokio::test]
async fn a_repeated_create_shows_nothing_to_whoever_may_not_read() {
    let world = World::new().await;
    let creator = world.key_for(ADA, "creator", &[Scope::Create]).await;
    let both = [Scope::Create, Scope::Read];
    let reader = world.key_for(ADA, "reader", &both).await;
    let send = async |key: &str, path: &str, body: &serde_json::Value| {
        let request = Request::post(path)
            .header("x-api-key", key)
            .header("content-type", "application/json")
            .header("idempotency-key", path)
            .body(Body::from(body.to_string()));
        world.send(request.unwrap()).await
    };
    let change = async |path: &str| {
        let secret = json!({"target": "https://example.com/secret"});
        let changed = world.call(Method::PATCH, path, Some(secret)).await;
        assert_eq!(changed.status, 200);
    };
    let link = json!({"target": "https://example.com/", "alias": "mine"});
    let made = send(&creator, LINKS, &link).await;
    assert_eq!(made.json()["target"], "https://example.com/");
    change("/api/v1/links/mine").await;
    let again = send(&creator, LINKS, &link).await;
    assert_eq!((again.status.as_u16(), &*again.body), (204, ""));
    assert_eq!(again.header("location"), "/api/v1/links/mine");
    assert_eq!(again.header("idempotent-replayed"), "true");
    let read = send(&reader, LINKS, &link).await;
    assert_eq!(read.header("idempotent-replayed"), "true");
    assert_eq!(read.json()["key"], "mine");

    let bulk = json!({"links": [{"target": "https://example.com/", "alias": "other"}]});
    let path = "/api/v1/links/bulk";
    let made = send(&creator, path, &bulk).await.json();
    assert_eq!(made["results"][0]["link"]["key"], "other");
    change("/api/v1/links/other").await;
    let again = send(&creator, path, &bulk).await.json();
    assert_eq!(again["results"], json!([{"status": 204, "key": "other"}]));
    assert_eq!(again["created"], 1);
}
