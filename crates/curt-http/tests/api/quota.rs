//! Limits on new links, at their boundary.

use std::sync::Arc;
use std::time::Duration;

use curt_accounts::LimitSettings;
use curt_core::ports::QuotaRule;
use curt_http::HttpSettings;
use http::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;

use crate::harness::{Answer, World, account_settings};

async fn world(amount: u64) -> World {
    let limits = LimitSettings {
        creations_per_user: Some(QuotaRule {
            amount,
            period: Duration::from_secs(3_600),
        }),
        ..LimitSettings::default()
    };
    World::built(HttpSettings::default(), account_settings(), limits).await
}

async fn create(world: &World) -> Answer {
    let body = json!({"target": "https://example.com/"});
    world.call(Method::POST, "/api/v1/links", Some(body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_creates_at_once_exactly_as_many_pass_as_are_left() {
    let world = Arc::new(world(40).await);
    let mut created = 0;
    let mut refused = Vec::new();
    let mut asking = JoinSet::new();
    for _ in 0..64 {
        let world = Arc::clone(&world);
        asking.spawn(async move { create(&world).await });
    }
    for answer in asking.join_all().await {
        match answer.status {
            StatusCode::CREATED => created += 1,
            _ => refused.push(answer),
        }
    }
    assert_eq!((created, refused.len()), (40, 24));
    for answer in &refused {
        assert_eq!(answer.problem(), "rate-limited");
        assert_eq!(answer.header("ratelimit-policy"), "\"create\";q=40;w=3600");
        assert_eq!(answer.header("ratelimit"), "\"create\";r=0;t=3600");
        assert_eq!(answer.header("retry-after"), "90");
    }
    world.clock.advance(Duration::from_secs(89));
    assert_eq!(create(&world).await.status, StatusCode::TOO_MANY_REQUESTS);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(create(&world).await.status, StatusCode::CREATED);
    assert_eq!(create(&world).await.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_bulk_request_counts_each_link_and_passes_whole_or_not_at_all() {
    let world = world(5).await;
    let bulk = async |count: usize| {
        let links = vec![json!({"target": "https://example.com/"}); count];
        let body = Some(json!({ "links": links }));
        world.call(Method::POST, "/api/v1/links/bulk", body).await
    };
    let never = bulk(6).await;
    assert_eq!(never.problem(), "rate-limited");
    assert_eq!(never.header("retry-after"), "", "no wait would be enough");
    assert_eq!(bulk(4).await.header("ratelimit"), "\"create\";r=1;t=2880");
    assert_eq!(bulk(2).await.problem(), "rate-limited");
    assert_eq!(bulk(1).await.status, StatusCode::OK);
}
