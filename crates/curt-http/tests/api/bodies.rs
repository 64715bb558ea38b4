//! Bodies that take their time: what is asked before they are read, and how long they are waited for.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use curt_accounts::LimitSettings;
use curt_core::ports::QuotaRule;
use curt_http::HttpSettings;
use futures_util::{StreamExt, stream};
use http::{Method, Request, StatusCode};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::harness::{Answer, World, account_settings};

/// A body that sends this and then nothing more.
fn unfinished(sent: Vec<Bytes>) -> Body {
    let sent = stream::iter(sent.into_iter().map(Ok::<_, std::io::Error>));
    Body::from_stream(sent.chain(stream::pending()))
}

fn post(path: &str, key: &str, body: Body) -> Request<Body> {
    let request = Request::post(path).header("content-type", "application/json");
    let request = match key {
        "" => request,
        key => request.header("x-api-key", key),
    };
    request.body(body).unwrap()
}

fn one_link() -> serde_json::Value {
    json!({"links": [{"target": "https://example.com/"}]})
}

#[tokio::test(start_paused = true)]
async fn credentials_and_limits_are_asked_before_a_body_is_read() {
    let limits = LimitSettings {
        creations_per_user: Some(QuotaRule {
            amount: 1,
            period: Duration::from_secs(3_600),
        }),
        ..LimitSettings::default()
    };
    let world = World::built(HttpSettings::default(), account_settings(), limits).await;
    let body = Some(one_link());
    let made = world.call(Method::POST, "/api/v1/links/bulk", body).await;
    assert_eq!(made.status, StatusCode::OK);
    for path in ["/api/v1/links", "/api/v1/links/bulk", "/api/v1/createURL"] {
        for (key, status, code) in [
            (world.key.as_str(), 429, "rate-limited"),
            (world.revoked.as_str(), 401, "credentials-invalid"),
            // With nothing to refuse before, the body is waited for.
            (world.stranger.as_str(), 408, "body-timeout"),
        ] {
            let answer = world.send(post(path, key, unfinished(Vec::new()))).await;
            assert_eq!(
                (answer.status.as_u16(), answer.problem().as_str()),
                (status, code),
                "{path}"
            );
            if status == 429 {
                assert_eq!(answer.header("ratelimit"), "\"create\";r=0;t=3600");
                assert_eq!(answer.header("retry-after"), "3600");
            }
        }
    }
    // Nothing was taken by looking: one link is made as soon as one may be.
    world.clock.advance(Duration::from_secs(3_600));
    let again = world
        .call(Method::POST, "/api/v1/links/bulk", Some(one_link()))
        .await;
    assert_eq!(again.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_falls_silent_is_not_waited_for_longer_than_any_other() {
    let world = World::new().await;
    let much = vec![Bytes::from(vec![b' '; 1 << 20]); 3];
    let began = Instant::now();
    let request = post("/api/v1/links/bulk", &world.key, unfinished(much));
    let answer = world.send(request).await;
    assert_eq!(answer.problem(), "body-timeout");
    // The timeout of these tests, and a second for the rest of a body that is not wanted any more.
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn few_bulk_requests_of_a_user_are_under_way_at_once() {
    let mut settings = HttpSettings::default();
    settings.server.bulk_per_client = 2;
    let world = Arc::new(World::with(settings).await);
    let mut waiting = Vec::new();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let (go_on, held) = oneshot::channel::<()>();
        let (reading, is_read) = oneshot::channel::<()>();
        let rest = async move {
            reading.send(()).unwrap();
            held.await.unwrap();
            Ok::<_, std::io::Error>(Bytes::from(one_link().to_string()))
        };
        let body = Body::from_stream(stream::once(rest));
        let request = post("/api/v1/links/bulk", &world.key, body);
        let world = Arc::clone(&world);
        answers.push(tokio::spawn(async move { world.send(request).await }));
        is_read.await.unwrap();
        waiting.push(go_on);
    }
    let bulk = async || -> Answer {
        let body = Some(one_link());
        world.call(Method::POST, "/api/v1/links/bulk", body).await
    };
    let refused = bulk().await;
    assert_eq!(
        (refused.status.as_u16(), refused.problem().as_str()),
        (429, "too-many-at-once")
    );
    assert!(refused.header("retry-after").parse::<u32>().unwrap() > 0);
    // Others, and other requests, go on.
    let body = Body::from(one_link().to_string());
    let other = world.send(post("/api/v1/links/bulk", &world.stranger, body));
    assert_eq!(other.await.problem(), "too-many-at-once", "one address");
    world.link("single").await;
    for go_on in waiting {
        // A body that timed out meanwhile is over as well.
        go_on.send(()).ok();
    }
    for answer in answers {
        answer.await.unwrap();
    }
    assert_eq!(bulk().await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_list_of_too_many_elements_is_refused_however_long_it_is() {
    let world = World::new().await;
    let link = r#"{"target":"https://example.com/"}"#;
    let links = vec![link; 100_000].join(",");
    let tags = |count| vec![r#""a""#; count].join(",");
    let tagged = |count| {
        format!(
            r#"{{"target":"https://example.com/","tags":[{}]}}"#,
            tags(count)
        )
    };
    for (body, refused) in [
        (format!(r#"{{"links":[{links}]}}"#), "links/count"),
        (
            format!(r#"{{"links":[{}]}}"#, tagged(200_000)),
            "links[0].tags/count",
        ),
    ] {
        let request = post("/api/v1/links/bulk", &world.key, Body::from(body));
        let answer = world.send(request).await;
        assert_eq!(answer.refused(), refused);
    }
    // Equal tags are one.
    let request = post("/api/v1/links", &world.key, Body::from(tagged(40)));
    let made = world.send(request).await;
    assert_eq!(made.json()["tags"], json!(["a"]), "{}", made.body);
}
