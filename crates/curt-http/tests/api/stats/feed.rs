//! Live feeds, read event by event as a client does. Time is the test's.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use curt_accounts::Origin;
use curt_core::{ClickSubject, Dimension, Scope, Scopes, UnixMillis};
use curt_http::server::Stopping;
use futures_util::StreamExt;
use http::Request;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{count, get, humans, link};
use crate::harness::{ADA, NOW, World};

struct Feed {
    body: BodyDataStream,
    stop: CancellationToken,
    /// What a client would come back with.
    last_id: String,
}

async fn follow(world: &World, path: &str) -> Feed {
    follow_from(world, path, "").await
}

async fn follow_from(world: &World, path: &str, last_id: &str) -> Feed {
    let stop = CancellationToken::new();
    let mut request = Request::get(path)
        .header("x-api-key", &world.key)
        .extension(Stopping(stop.clone()));
    if !last_id.is_empty() {
        request = request.header("last-event-id", last_id);
    }
    let request = request.body(Body::empty());
    let response = world
        .router
        .clone()
        .oneshot(request.unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), 200, "{path}");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let mut feed = Feed {
        body: response.into_body().into_data_stream(),
        stop,
        last_id: last_id.to_owned(),
    };
    let first = feed.chunk().await.unwrap();
    assert!(first.starts_with(": open"), "{first}");
    assert!(first.contains("retry: 3000\n"), "{first}");
    feed
}

impl Feed {
    async fn chunk(&mut self) -> Option<String> {
        let chunk = self.body.next().await?.unwrap();
        let chunk = String::from_utf8(chunk.to_vec()).unwrap();
        if let Some(id) = chunk.lines().find_map(|line| line.strip_prefix("id:")) {
            self.last_id = id.trim().to_owned();
        }
        Some(chunk)
    }

    /// The next event's name and data.
    async fn event(&mut self) -> (String, Value) {
        let chunk = self.chunk().await.unwrap();
        let field = |name: &str| {
            let line = chunk.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        let data = serde_json::from_str(&field("data:"));
        (
            field("event:"),
            data.unwrap_or_else(|_| panic!("{chunk:?}")),
        )
    }

    async fn ends_with(&mut self, reason: &str) {
        let end = ("end".to_owned(), json!({ "reason": reason }));
        assert_eq!(self.event().await, end);
        assert_eq!(self.chunk().await, None);
    }
}

fn counts(human: u64, bot: u64) -> Value {
    json!({"total": human + bot, "human": human, "bot": bot, "prefetch": 0, "head": 0})
}

#[tokio::test(start_paused = true)]
async fn a_feed_tells_what_is_counted_after_it_was_opened() {
    let world = World::new().await;
    world.link("abc").await;
    humans(&world, &link("abc"), NOW, 100).await;
    let mut feed = follow(&world, "/api/v1/links/abc/live").await;
    humans(&world, &link("abc"), NOW, 2).await;
    count(&world, &link("abc"), NOW, Dimension::Class, "bot", 3).await;
    let (name, data) = feed.event().await;
    assert_eq!((name.as_str(), &data["counts"]), ("clicks", &counts(2, 3)));
    assert_eq!(data["at"], "2026-01-01T00:00:00.000Z");
    // Clicks of the hour before may be counted late.
    humans(&world, &link("abc"), UnixMillis(NOW.0 - 3_600_000), 1).await;
    humans(&world, &link("other"), NOW, 50).await;
    assert_eq!(feed.event().await.1["counts"], counts(1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_feed_shows_only_the_kind_and_the_links_that_were_asked_for() {
    let world = World::new().await;
    let own = ClickSubject::Owner(ADA);
    let mut bots = follow(&world, "/api/v1/live?class=bot").await;
    let mut tagged = follow(&world, "/api/v1/live?class=all&tag=x&seconds=60").await;
    humans(&world, &own, NOW, 2).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    count(&world, &own, NOW, Dimension::Class, "bot", 3).await;
    assert_eq!(bots.event().await.1["counts"], counts(0, 3));
    humans(&world, &ClickSubject::tag(ADA, "x"), NOW, 1).await;
    assert_eq!(tagged.event().await.1["counts"], counts(1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_gets_what_it_missed() {
    let world = World::new().await;
    world.link("abc").await;
    let path = "/api/v1/links/abc/live?class=human";
    humans(&world, &link("abc"), NOW, 100).await;
    // Also before the first event.
    let feed = follow(&world, path).await;
    humans(&world, &link("abc"), NOW, 2).await;
    let mut feed = follow_from(&world, path, &feed.last_id).await;
    assert_eq!(feed.event().await.1["counts"], counts(2, 0));
    humans(&world, &link("abc"), NOW, 3).await;
    assert_eq!(feed.event().await.1["counts"], counts(3, 0));
    // Hours that a feed does not look at any more when it goes on, and those that it does.
    world.clock.advance(Duration::from_secs(20 * 3_600));
    humans(&world, &link("abc"), UnixMillis(NOW.0 - 23 * 3_600_000), 1).await;
    humans(&world, &link("abc"), UnixMillis(NOW.0 + 19 * 3_600_000), 4).await;
    count(&world, &link("abc"), NOW, Dimension::Class, "bot", 9).await;
    let mut feed = follow_from(&world, path, &feed.last_id).await;
    let (name, data) = feed.event().await;
    assert_eq!((name.as_str(), &data["counts"]), ("clicks", &counts(5, 0)));
    // What was told once is not told again.
    let mut feed = follow_from(&world, path, &feed.last_id).await;
    humans(&world, &link("abc"), UnixMillis(NOW.0 + 20 * 3_600_000), 1).await;
    assert_eq!(feed.event().await.1["counts"], counts(1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_may_have_missed_something_is_told() {
    let world = World::new().await;
    world.link("abc").await;
    world.link("other").await;
    let gap = |reason: &str| {
        let data = json!({"reason": reason, "kept_seconds": 86_400});
        ("gap".to_owned(), data)
    };
    let path = "/api/v1/links/abc/live";
    let other = follow(&world, "/api/v1/links/other/live").await;
    for id in [other.last_id.as_str(), "7", "x-y"] {
        let mut feed = follow_from(&world, path, id).await;
        assert_eq!(feed.event().await, gap("unknown_id"), "{id}");
        // And goes on from now.
        humans(&world, &link("abc"), NOW, 1).await;
        assert_eq!(feed.event().await.1["counts"], counts(1, 0));
    }
    let feed = follow(&world, path).await;
    world.clock.advance(Duration::from_secs(25 * 3_600));
    let mut late = follow_from(&world, path, &feed.last_id).await;
    assert_eq!(late.event().await, gap("too_old"));
    // From then on it can be gone on with again.
    let now = UnixMillis(NOW.0 + 25 * 3_600_000);
    humans(&world, &link("abc"), now, 2).await;
    let mut again = follow_from(&world, path, &late.last_id).await;
    assert_eq!(again.event().await.1["counts"], counts(2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_silent_feed_shows_that_it_is_alive_and_ends_in_time() {
    let world = World::new().await;
    let mut feed = follow(&world, "/api/v1/live?seconds=40").await;
    let opened = tokio::time::Instant::now();
    for _ in 0..2 {
        let chunk = feed.chunk().await.unwrap();
        assert!(chunk.starts_with(':'), "{chunk}");
    }
    assert_eq!(opened.elapsed().as_secs(), 30);
    feed.ends_with("time").await;
    assert_eq!(opened.elapsed().as_secs(), 40);
    let mut short = follow(&world, "/api/v1/live?seconds=0").await;
    short.ends_with("time").await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_ends_when_the_server_stops() {
    let world = World::new().await;
    let mut feed = follow(&world, "/api/v1/live").await;
    let stopped = tokio::time::Instant::now();
    feed.stop.cancel();
    feed.ends_with("shutdown").await;
    assert_eq!(stopped.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn whoever_may_not_see_a_link_any_more_is_shown_no_more_of_it() {
    let world = World::new().await;
    world.link("abc").await;
    let mut feed = follow(&world, "/api/v1/links/abc/live").await;
    world.purge("abc").await;
    feed.ends_with("access").await;

    let mut feed = follow(&world, "/api/v1/live").await;
    let prefix = world.key.split('_').nth(1).unwrap();
    let revoking = world
        .accounts
        .api_keys
        .revoke(prefix, None, Scopes::ALL, Origin::OPERATOR);
    revoking.await.unwrap();
    feed.ends_with("access").await;
}

#[tokio::test]
async fn there_are_only_so_many_feeds_and_a_closed_one_makes_room() {
    let world = World::new().await;
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(follow(&world, "/api/v1/live").await);
    }
    let answer = get(&world, "/api/v1/live").await;
    assert_eq!(
        (answer.status.as_u16(), answer.problem().as_str()),
        (503, "too-many-feeds")
    );
    assert!(answer.header("retry-after").parse::<u32>().unwrap() > 0);
    open.pop();
    open.push(follow(&world, "/api/v1/live").await);
    let root = world
        .key_for(crate::harness::ROOT, "x", &[Scope::Read])
        .await;
    let other = super::get_as(&world, &root, "/api/v1/live?seconds=0").await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn a_feed_refuses_what_it_does_not_know() {
    let world = World::new().await;
    for (query, refused) in [
        ("class=alien", "class/value"),
        ("seconds=3601", "seconds/value"),
        ("seconds=1.5", "seconds/value"),
        ("since=now", "since/unknown"),
    ] {
        let answer = get(&world, &format!("/api/v1/live?{query}")).await;
        assert_eq!(answer.refused(), refused, "{query}");
    }
}
