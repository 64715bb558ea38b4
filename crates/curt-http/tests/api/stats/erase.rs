use curt_core::{Dimension, Scope, UnixMillis};
use http::{Method, Request};
use serde_json::{Value, json};

use super::{HOUR, apply, count, get, link, of_ada};
use crate::harness::{ADA, Answer, NOW, ROOT, World};

async fn world_with_clicks() -> World {
    let world = World::new().await;
    let at = UnixMillis(NOW.0 - HOUR);
    for key in ["abc", "other"] {
        world.link(key).await;
        apply(&world, Vec::new(), vec![of_ada(at, key), of_ada(at, key)]).await;
        count(&world, &link(key), at, Dimension::Class, "human", 2).await;
    }
    world
}

async fn erase_as(world: &World, key: &str, query: &str) -> Answer {
    let path = format!("/api/v1/links/abc/clicks{query}");
    let request = Request::delete(path).header("x-api-key", key);
    world.send(request.body(Default::default()).unwrap()).await
}

async fn erase(world: &World, query: &str) -> Answer {
    let path = format!("/api/v1/links/abc/clicks{query}");
    world.call(Method::DELETE, &path, None).await
}

/// Single clicks and counted ones.
async fn kept(world: &World, key: &str) -> (usize, Value) {
    let path = format!("/api/v1/links/{key}");
    let clicks = get(world, &format!("{path}/clicks")).await.json();
    let stats = get(world, &format!("{path}/stats")).await.json();
    let clicks = clicks["clicks"].as_array().unwrap().len();
    (clicks, stats["totals"]["human"].clone())
}

#[tokio::test]
async fn a_links_clicks_are_erased_and_its_counts_only_when_asked_for() {
    let world = world_with_clicks().await;
    let answer = erase(&world, "").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let want = json!({ "erased": 2, "complete": true, "lag_max_seconds": 1 });
    assert_eq!(answer.json(), want);
    assert_eq!(kept(&world, "abc").await, (0, json!(2)));
    assert_eq!(erase(&world, "?counts=false").await.json()["erased"], 0);
    assert_eq!(kept(&world, "abc").await, (0, json!(2)));
    assert_eq!(erase(&world, "?counts=true").await.status, 200);
    assert_eq!(kept(&world, "abc").await, (0, json!(0)));
    assert_eq!(kept(&world, "other").await, (2, json!(2)));
    let admin = world.key_for(ROOT, "audit", &[Scope::Admin]).await;
    let request = Request::get("/api/v1/audit").header("x-api-key", &admin);
    let log = world.send(request.body(Default::default()).unwrap()).await;
    let log = log.json().to_string();
    assert_eq!(log.matches("clicks_erased").count(), 3, "{log}");
    assert_eq!(log.matches("abc with counts").count(), 1, "{log}");
}

#[tokio::test]
async fn who_may_not_read_erases_and_learns_no_number() {
    let world = world_with_clicks().await;
    let manage = world.key_for(ADA, "manage", &[Scope::Manage]).await;
    let answer = erase_as(&world, &manage, "").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["erased"], Value::Null);
    assert_eq!(answer.json()["complete"], true);
    assert_eq!(kept(&world, "abc").await.0, 0);
}

#[tokio::test]
async fn mistaken_erasures_change_nothing_and_say_why() {
    let world = world_with_clicks().await;
    for (query, refused) in [
        ("?counts=yes", "counts/value"),
        ("?counts=true&counts=true", "counts/duplicate"),
        ("?count=true", "count/unknown"),
    ] {
        assert_eq!(erase(&world, query).await.refused(), refused);
    }
    assert_eq!(kept(&world, "abc").await, (2, json!(2)));
    let world = World::without_reports().await;
    world.link("abc").await;
    let answer = erase(&world, "").await;
    assert_eq!(answer.status, 404);
    assert!(
        answer.body.contains("does not count clicks"),
        "{}",
        answer.body
    );
}
