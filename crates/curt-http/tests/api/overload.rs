//! Long reads and passwords, more of them than the server takes on.

use std::time::Duration;

use axum::body::Body;
use curt_accounts::{BulkheadSettings, LimitSettings};
use curt_core::ports::QuotaRule;
use curt_core::{ClickOutcome, Scope, UnixMillis};
use curt_http::{AbandonedReads, HttpSettings, ScanSettings};
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::harness::{ADA, Answer, NOW, ROOT, World, account_settings, answer};
use crate::stats::{apply, click, id};

const LISTS: [&str; 2] = ["/api/v1/links?search=x", "/api/v1/links"];

async fn world(scans: ScanSettings) -> World {
    World::with(HttpSettings {
        scans,
        ..HttpSettings::default()
    })
    .await
}

/// Two run, two wait, and two of all are one user's.
fn few() -> ScanSettings {
    ScanSettings {
        reads: BulkheadSettings {
            running: 2,
            waiting: 2,
            per_caller: 2,
        },
        ..ScanSettings::default()
    }
}

/// Asks without waiting for the answer.
fn ask(world: &World, key: &str, path: &str) -> JoinHandle<Answer> {
    let request = Request::get(path).header("x-api-key", key);
    let request = request.body(Body::empty()).unwrap();
    tokio::spawn(answer(world.router.clone(), request))
}

/// Lets everything that was asked come as far as it can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

async fn assert_overloaded(refused: JoinHandle<Answer>) {
    let refused = refused.await.unwrap();
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.problem(), "overloaded");
    assert_eq!(refused.header("retry-after"), "2");
}

#[tokio::test]
async fn a_user_has_a_share_of_the_long_reads_and_a_client_who_leaves_frees_it() {
    let world = world(few()).await;
    world.store.hold_lists(true);
    let own = LISTS.map(|path| ask(&world, &world.key, path));
    settle().await;
    for path in ["/api/v1/links", "/api/v1/keys", "/api/v1/stats"] {
        assert_overloaded(ask(&world, &world.key, path)).await;
    }
    assert_eq!(world.app.metrics.requests_shed.get(), 3);
    // One of the two that run is the other user's, whatever comes first.
    let others = LISTS.map(|path| ask(&world, &world.stranger, path));
    settle().await;
    let root = world
        .key_for(ROOT, "lists", &[Scope::Read, Scope::Admin])
        .await;
    assert_overloaded(ask(&world, &root, "/api/v1/users")).await;
    // Short reads are not among them.
    let sessions = ask(&world, &world.key, "/api/v1/sessions").await.unwrap();
    assert_eq!(sessions.status, StatusCode::OK);
    for left in &own {
        left.abort();
    }
    settle().await;
    let users = ask(&world, &root, "/api/v1/users");
    settle().await;
    world.store.hold_lists(false);
    for answered in others.into_iter().chain([users]) {
        assert_eq!(answered.await.unwrap().status, StatusCode::OK);
    }
    let again = ask(&world, &world.key, LISTS[0]).await.unwrap();
    assert_eq!(again.status, StatusCode::OK);
}

#[tokio::test]
async fn a_read_that_an_engine_cannot_end_keeps_its_place() {
    let world = world(ScanSettings {
        abandoned: AbandonedReads::GoOn,
        ..few()
    })
    .await;
    world.store.hold_lists(true);
    let own = LISTS.map(|path| ask(&world, &world.key, path));
    settle().await;
    for left in &own {
        left.abort();
    }
    settle().await;
    // The one that waited has left; the one that ran goes on.
    let waiting = ask(&world, &world.key, LISTS[0]);
    settle().await;
    assert_overloaded(ask(&world, &world.key, LISTS[1])).await;
    world.store.hold_lists(false);
    assert_eq!(waiting.await.unwrap().status, StatusCode::OK);
    let again = LISTS.map(|path| ask(&world, &world.key, path));
    for answered in again {
        assert_eq!(answered.await.unwrap().status, StatusCode::OK);
    }
}

#[tokio::test]
async fn exports_are_few_until_one_ends() {
    let world = world(ScanSettings::default()).await;
    world.link("abc").await;
    let of_ada = |millis| {
        let at = UnixMillis(NOW.0 - 3_600_000 - millis);
        click(at, ClickOutcome::Link(id("abc"), 1), Some(ADA))
    };
    apply(&world, Vec::new(), (0..2_500).map(of_ada).collect()).await;
    let export = async || {
        let request = Request::get("/api/v1/clicks.csv").header("x-api-key", &world.key);
        let request = request.body(Body::empty()).unwrap();
        world.router.clone().oneshot(request).await.unwrap()
    };
    let mut unread = vec![export().await, export().await];
    assert!(unread.iter().all(|file| file.status() == StatusCode::OK));
    assert_overloaded(ask(&world, &world.key, "/api/v1/clicks.csv")).await;
    // Files that are not read hold up no other read.
    let list = ask(&world, &world.key, "/api/v1/clicks").await.unwrap();
    assert_eq!(list.status, StatusCode::OK);
    unread.pop();
    let file = ask(&world, &world.key, "/api/v1/clicks.csv").await.unwrap();
    assert_eq!(file.body.lines().count(), 2_501);
}

fn locked(password: &str) -> Value {
    json!({"target": "https://example.com/x", "visibility": "password", "password": password})
}

#[tokio::test]
async fn passwords_of_links_are_limited_whatever_sets_them() {
    let limits = LimitSettings {
        password_links_per_user: Some(QuotaRule {
            amount: 6,
            period: Duration::from_secs(3_600),
        }),
        ..LimitSettings::default()
    };
    let world = World::built(HttpSettings::default(), account_settings(), limits).await;
    let bulk = async |count: usize| {
        let links = json!({"links": vec![locked("open sesame"); count]});
        world
            .call(Method::POST, "/api/v1/links/bulk", Some(links))
            .await
    };
    let create = async |link| world.call(Method::POST, "/api/v1/links", Some(link)).await;
    assert_eq!(bulk(4).await.status, StatusCode::OK);
    let refused = bulk(3).await;
    assert_eq!(refused.problem(), "rate-limited");
    assert_eq!(
        refused.header("ratelimit-policy"),
        "\"password-link\";q=6;w=3600"
    );
    assert_eq!(refused.header("retry-after"), "600");
    let made = create(locked("open sesame")).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let path = format!("/api/v1/links/{}", made.json()["key"].as_str().unwrap());
    let edit = async || {
        let changes = json!({"password": "open barley"});
        world.call(Method::PATCH, &path, Some(changes)).await
    };
    assert_eq!(edit().await.status, StatusCode::OK);
    for refused in [edit().await, create(locked("open sesame")).await] {
        assert_eq!(refused.problem(), "rate-limited");
    }
    let plain = create(json!({"target": "https://example.com/x"})).await;
    assert_eq!(plain.status, StatusCode::CREATED);
    world.clock.advance(Duration::from_secs(600));
    assert_eq!(edit().await.status, StatusCode::OK);
}
