//! Links that are not for everybody, and links that are switched off: by API.

use axum::body::Body;
use curt_core::Scope;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Answer, ROOT, World};

const TARGET: &str = "https://example.com/x";

async fn create(world: &World, body: Value) -> Answer {
    world.call(Method::POST, "/api/v1/links", Some(body)).await
}

async fn edit(world: &World, body: Value) -> Answer {
    let path = "/api/v1/links/mine";
    world.call(Method::PATCH, path, Some(body)).await
}

async fn by_root(world: &World, method: Method, path: &str, body: Option<Value>) -> Answer {
    let key = world.key_for(ROOT, path, &Scope::ALL).await;
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("x-api-key", key);
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    world.send(request.body(body).unwrap()).await
}

/// What a program without credentials gets.
async fn click(world: &World) -> u16 {
    let request = Request::get("/mine").body(Body::empty()).unwrap();
    world.send(request).await.status.as_u16()
}

async fn newest_action(world: &World) -> (String, String) {
    let entries = world.accounts.audit.list(None, 1).await.unwrap();
    let entry = &entries[0].1;
    (entry.action.to_string(), entry.subject.to_string())
}

#[tokio::test]
async fn a_link_has_a_visibility_and_never_shows_its_password() {
    let world = World::new().await;
    let public = world.link("open").await.json();
    assert_eq!(public["visibility"], "public");
    assert_eq!(public["owner_id"], "1");
    let made = create(
        &world,
        json!({"target": TARGET, "alias": "mine", "visibility": "password", "password": "open sesame"}),
    );
    let made = made.await;
    assert_eq!(made.json()["visibility"], "password");
    assert!(!made.body.contains("sesame") && !made.body.contains("argon2"));
    assert_eq!(click(&world).await, 401);

    let changed = edit(&world, json!({"visibility": "private"})).await;
    assert_eq!(changed.json()["visibility"], "private");
    assert_eq!(click(&world).await, 401);
    let (action, subject) = newest_action(&world).await;
    assert_eq!(
        (action.as_str(), subject.as_str()),
        ("visibility_changed", "mine private")
    );
    let changed = edit(&world, json!({"visibility": "public", "password": null})).await;
    assert_eq!(changed.status, 200);
    assert_eq!(click(&world).await, 302);
}

#[tokio::test]
async fn password_and_visibility_have_to_fit() {
    let world = World::new().await;
    let long = "x".repeat(257);
    for (access, refused) in [
        (
            json!({"visibility": "password"}),
            "password/password_missing",
        ),
        (json!({"password": "p"}), "password/password_unused"),
        (
            json!({"visibility": "private", "password": "p"}),
            "password/password_unused",
        ),
        (
            json!({"visibility": "password", "password": ""}),
            "password/length",
        ),
        (
            json!({"visibility": "password", "password": long}),
            "password/length",
        ),
        (json!({"visibility": "secret"}), "visibility/type"),
        (
            json!({"visibility": "private", "redirect_status": 301}),
            "redirect_status/redirect_status_permanent",
        ),
    ] {
        let mut body = access.clone();
        body["target"] = json!(TARGET);
        let answer = create(&world, body).await;
        assert_eq!(answer.refused(), refused, "{access}");
    }
    world.link("mine").await;
    let answer = edit(&world, json!({"visibility": "password"})).await;
    assert_eq!(answer.refused(), "password/password_missing");
    let anonymous = World::anonymous().await;
    let request = Request::post("/api/v1/links")
        .header("content-type", "application/json")
        .body(Body::from(
            json!({"target": TARGET, "visibility": "private"}).to_string(),
        ));
    let answer = anonymous.send(request.unwrap()).await;
    assert_eq!(
        answer.refused(),
        "visibility/visibility_unowned",
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_bulk_request_has_few_passwords() {
    let world = World::new().await;
    let links = |count: usize, password: &str| {
        let link = json!({"target": TARGET, "visibility": "password", "password": password});
        json!({"links": vec![link; count]})
    };
    let bulk = async |body: Value| {
        let path = "/api/v1/links/bulk";
        world.call(Method::POST, path, Some(body)).await
    };
    let made = bulk(links(20, "open sesame")).await;
    assert_eq!(made.json()["created"], 20);
    assert_eq!(made.json()["results"][0]["link"]["visibility"], "password");
    let refused = bulk(links(21, "open sesame")).await;
    assert_eq!(refused.refused(), "links/password_count");
    let refused = bulk(links(2, "")).await;
    assert_eq!(refused.refused(), "links[0].password/length");
}

#[tokio::test]
async fn a_repeated_request_is_known_without_a_trace_of_its_password() {
    let world = World::new().await;
    let send = async |password: &str| {
        let link = json!({"target": TARGET, "visibility": "password", "password": password});
        let body = link.to_string();
        let headers = [("idempotency-key", "once")];
        let path = "/api/v1/links";
        world
            .call_raw(Method::POST, path, &headers, Some(&body))
            .await
    };
    let first = send("open sesame").await.json();
    // Were the password part of the fingerprint, it could be guessed from the database, quickly.
    let again = send("another").await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(again.json()["key"], first["key"]);
}

#[tokio::test]
async fn permissions_are_given_listed_and_taken_back() {
    let world = World::new().await;
    world.link("mine").await;
    edit(&world, json!({"visibility": "private"})).await;
    let follow = async || {
        let request = Request::get("/mine").header("x-api-key", &world.stranger);
        world
            .send(request.body(Body::empty()).unwrap())
            .await
            .status
            .as_u16()
    };
    assert_eq!(follow().await, 403);
    let path = "/api/v1/links/mine/permissions";
    let bob = json!({"email": "Bob@example.com"});
    let granted = world.call(Method::POST, path, Some(bob.clone())).await;
    assert_eq!(granted.status, StatusCode::CREATED);
    let granted = granted.json();
    assert_eq!(granted["email"], "bob@example.com");
    assert_eq!(follow().await, 302);
    let again = world.call(Method::POST, path, Some(bob)).await.json();
    assert_eq!(again["id"], granted["id"]);
    let listed = world.call(Method::GET, path, None).await.json();
    assert_eq!(listed["permissions"], json!([granted]));

    let one = format!("{path}/{}", granted["id"].as_str().unwrap());
    let taken = world.call(Method::DELETE, &one, None).await;
    assert_eq!(taken.status, StatusCode::NO_CONTENT);
    assert_eq!(follow().await, 403);
    let again = world.call(Method::DELETE, &one, None).await;
    assert_eq!(again.problem(), "not-found");
    for (body, refused) in [
        (json!({}), "email/value"),
        (
            json!({"email": "bob@example.com", "user_id": "2"}),
            "email/value",
        ),
        (json!({"email": "nobody@example.com"}), "email/unknown_user"),
    ] {
        let answer = world.call(Method::POST, path, Some(body.clone())).await;
        assert_eq!(answer.refused(), refused, "{body}");
    }
}

#[tokio::test]
async fn a_permission_of_another_link_cannot_be_taken_back_through_ones_own() {
    let world = World::new().await;
    world.link("mine").await;
    let path = "/api/v1/links/mine/permissions";
    let eve = json!({"email": "eve@example.com"});
    let granted = world.call(Method::POST, path, Some(eve)).await.json();
    let id = granted["id"].as_str().unwrap();
    let theirs = [("x-api-key", world.stranger.as_str())];
    let send = async |method: Method, path: &str, body: Option<&str>| {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in theirs {
            request = request.header(name, value);
        }
        let request = request.header("content-type", "application/json");
        let body = Body::from(body.unwrap_or_default().to_owned());
        world.send(request.body(body).unwrap()).await
    };
    let body = r#"{"target":"https://example.com/","alias":"theirs"}"#;
    assert_eq!(
        send(Method::POST, "/api/v1/links", Some(body)).await.status,
        201
    );
    let through = format!("/api/v1/links/theirs/permissions/{id}");
    let answer = send(Method::DELETE, &through, None).await;
    assert_eq!(answer.problem(), "not-found");
    let listed = world.call(Method::GET, path, None).await.json();
    assert_eq!(listed["permissions"], json!([granted]));
}

#[tokio::test]
async fn an_administrator_switches_a_link_off_and_on() {
    let world = World::new().await;
    world.link("mine").await;
    assert_eq!(click(&world).await, 302);
    let path = "/api/v1/links/mine/disable";
    let off = by_root(&world, Method::POST, path, None).await;
    assert_eq!(off.json()["state"], "disabled");
    assert_eq!(click(&world).await, 410);
    assert_eq!(newest_action(&world).await.0, "link_disabled");
    // Its owner sees it, and cannot switch it on.
    let seen = world.call(Method::GET, "/api/v1/links/mine", None).await;
    assert_eq!(seen.json()["state"], "disabled");
    edit(&world, json!({"title": "t"})).await;
    assert_eq!(click(&world).await, 410);
    let path = "/api/v1/links/mine/enable";
    let on = by_root(&world, Method::POST, path, None).await;
    assert_eq!(on.json()["state"], "active");
    assert_eq!(on.header("etag"), "\"1.4\"");
    assert_eq!(click(&world).await, 302);
    assert_eq!(newest_action(&world).await.0, "link_enabled");
}

#[tokio::test]
async fn an_administrator_lists_and_changes_the_links_of_others() {
    let world = World::new().await;
    world.link("mine").await;
    let keys = async |query: &str| {
        let page = by_root(&world, Method::GET, &format!("/api/v1/links{query}"), None).await;
        let links = page.json()["links"].as_array().unwrap().clone();
        links
            .iter()
            .map(|link| link["key"].clone())
            .collect::<Vec<_>>()
    };
    assert!(keys("").await.is_empty());
    assert_eq!(keys("?owner_id=all").await, ["mine"]);
    assert_eq!(keys("?owner_id=1").await, ["mine"]);
    assert!(keys("?owner_id=2").await.is_empty());
    let body = json!({"title": "by root"});
    let edited = by_root(&world, Method::PATCH, "/api/v1/links/mine", Some(body)).await;
    assert_eq!(edited.json()["title"], "by root");
    assert_eq!(edited.json()["owner_id"], "1");
    let wrong = world
        .call(Method::GET, "/api/v1/links?owner_id=me", None)
        .await;
    assert_eq!(wrong.refused(), "owner_id/value");
}
