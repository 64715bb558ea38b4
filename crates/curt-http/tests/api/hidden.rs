//! `links.private_denied = 404`: to whoever may not follow it, a private link is like a key that nobody has.

use std::time::Duration;

use axum::body::Body;
use curt_accounts::LimitSettings;
use curt_core::Scope;
use curt_http::{HttpSettings, PrivateDenied};
use curt_links::Blocklist;
use http::{Method, Request};
use serde_json::json;

use crate::harness::{ADA, EVE, World, account_settings};

const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

type Asked = (
    &'static str,
    &'static str,
    Option<&'static str>,
    &'static str,
);

/// Methods, what stands behind the key, and bodies with their type.
fn requests() -> Vec<Asked> {
    let mut requests = Vec::new();
    for method in ["GET", "HEAD"] {
        for suffix in ["", "/", "?a=b"] {
            requests.push((method, suffix, None, ""));
        }
    }
    let form = Some("application/x-www-form-urlencoded");
    for (kind, body) in [
        (None, ""),
        (form, "password=open+sesame"),
        (Some("application/json"), "{}"),
    ] {
        requests.push(("POST", "", kind, body));
    }
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS"] {
        requests.push((method, "", None, ""));
    }
    requests
}

async fn hiding() -> World {
    let mut settings = HttpSettings::default();
    settings.redirect.private_denied = PrivateDenied::Hidden;
    World::built(settings, account_settings(), LimitSettings::NONE).await
}

/// Private links in every state that a link can be in.
async fn private_links(world: &World) -> Vec<&'static str> {
    let soon = "2026-01-01T00:01:00Z";
    for (alias, more) in [
        ("plain", json!({})),
        ("few", json!({ "max_clicks": 3 })),
        ("kept", json!({ "redirect_status": 307 })),
        ("expired", json!({ "expires_at": soon })),
        ("deleted", json!({})),
        ("disabled", json!({})),
        ("blocked", json!({ "target": "https://blocked.example/" })),
        ("later", json!({ "valid_since": "2027-01-01T00:00:00Z" })),
    ] {
        let mut link =
            json!({ "target": "https://example.com/x", "alias": alias, "visibility": "private" });
        for (name, value) in more.as_object().unwrap() {
            link[name] = value.clone();
        }
        let made = world.call(Method::POST, "/api/v1/links", Some(link)).await;
        assert_eq!(made.status, 201, "{alias}: {}", made.body);
    }
    let deleted = world
        .call(Method::DELETE, "/api/v1/links/deleted", None)
        .await;
    assert_eq!(deleted.status, 204);
    world.app.links.disable("disabled").await.unwrap();
    world
        .app
        .policy
        .block(Blocklist::parse(b"blocked.example").unwrap());
    world.clock.advance(Duration::from_secs(61));
    vec![
        "plain", "few", "kept", "expired", "deleted", "disabled", "blocked", "later",
    ]
}

/// The headers that somebody who may not follow the links shows.
async fn callers(world: &World) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let key = |token: String| vec![("x-api-key", token)];
    let session = world.session(EVE).await;
    let cookie = ("cookie", format!("__Host-curt_session={session}"));
    vec![
        ("program", vec![]),
        ("browser", vec![("accept", HTML.to_owned())]),
        (
            "stranger's key",
            key(world.key_for(EVE, "read", &[Scope::Read]).await),
        ),
        (
            "key without read",
            key(world.key_for(EVE, "make", &[Scope::Create]).await),
        ),
        (
            "owner's key without read",
            key(world.key_for(ADA, "make", &[Scope::Create]).await),
        ),
        (
            "wrong key",
            key("curt_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned()),
        ),
        ("revoked key", key(world.revoked.clone())),
        ("no key at all", key("nonsense".to_owned())),
        ("stranger's session", vec![cookie.clone()]),
        (
            "stranger's browser",
            vec![cookie, ("accept", HTML.to_owned())],
        ),
        (
            "other site",
            vec![("origin", "https://evil.example".to_owned())],
        ),
        ("prefetch", vec![("sec-purpose", "prefetch".to_owned())]),
    ]
}

#[tokio::test]
async fn every_method_of_every_stranger_meets_what_an_unknown_key_gives() {
    let world = hiding().await;
    let links = private_links(&world).await;
    let mut compared = 0;
    for (caller, headers) in callers(&world).await {
        for (method, suffix, kind, body) in requests() {
            let ask = async |key: &str| {
                let mut request = Request::builder()
                    .method(method)
                    .uri(format!("/{key}{suffix}"))
                    .header("x-request-id", "same");
                for (name, value) in &headers {
                    request = request.header(*name, value);
                }
                if let Some(kind) = kind {
                    request = request.header("content-type", kind);
                }
                let answer = world.send(request.body(Body::from(body)).unwrap()).await;
                (answer.status, answer.headers, answer.body)
            };
            let unknown = ask("nobody").await;
            for link in &links {
                let hidden = ask(link).await;
                assert_eq!(hidden, unknown, "{caller}: {method} /{link}{suffix}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 12 * 13 * 8);
}

#[tokio::test]
async fn whoever_may_follow_a_hidden_link_does() {
    let world = hiding().await;
    private_links(&world).await;
    let followed = world.call(Method::GET, "/plain", None).await;
    assert_eq!(followed.status, 302, "{}", followed.body);
    let posted = world.call(Method::POST, "/plain", None).await;
    assert_eq!(posted.status, 405, "{}", posted.body);
}

/// What cannot be hidden, and is said in the settings.
#[tokio::test]
async fn its_key_is_refused_as_an_alias() {
    let world = hiding().await;
    private_links(&world).await;
    let stranger = world.key_for(EVE, "make", &[Scope::Create]).await;
    let link = json!({ "target": "https://example.com/", "alias": "plain" });
    let request = Request::post("/api/v1/links")
        .header("x-api-key", &stranger)
        .header("content-type", "application/json")
        .body(Body::from(link.to_string()));
    let refused = world.send(request.unwrap()).await;
    assert_eq!(refused.status, 409);
    assert!(!refused.body.contains("private"), "{}", refused.body);
}
