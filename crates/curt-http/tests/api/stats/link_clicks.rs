//! How often links were followed, beside the links themselves.

use http::Method;
use serde_json::{Value, json};

use super::{DAY, count, humans, link};
use crate::harness::World;
use curt_core::{Clock, Dimension, UnixMillis};

async fn listed(world: &World, query: &str) -> (Vec<(String, u64)>, Value) {
    let path = format!("/api/v1/links{query}");
    let page = world.call(Method::GET, &path, None).await.json();
    let links = page["links"].as_array().unwrap().iter();
    let pair = |link: &Value| {
        let key = link["key"].as_str().unwrap().to_owned();
        (key, link["clicks"].as_u64().unwrap())
    };
    (links.map(pair).collect(), page["next"].clone())
}

fn pairs(wanted: &[(&str, u64)]) -> Vec<(String, u64)> {
    let pair = |(key, clicks): &(&str, u64)| ((*key).to_owned(), *clicks);
    wanted.iter().map(pair).collect()
}

#[tokio::test]
async fn a_link_tells_how_often_humans_followed_it_in_all() {
    let world = World::new().await;
    let made = world.link("abc").await.json();
    assert_eq!(made["clicks"], 0);
    let start = world.clock.now();
    let at = |days: i64| UnixMillis(start.0 + days * DAY);
    humans(&world, &link("abc"), at(0), 5).await;
    count(&world, &link("abc"), at(0), Dimension::Class, "bot", 90).await;
    let clicks = async || {
        let link = world.call(Method::GET, "/api/v1/links/abc", None).await;
        link.json()["clicks"].clone()
    };
    assert_eq!(clicks().await, 5, "people, not programs");
    world.clock.set(at(40));
    assert_eq!(clicks().await, 5, "of its whole life");
    humans(&world, &link("abc"), at(39), 20).await;
    humans(&world, &link("abc"), at(40), 100).await;
    assert_eq!(clicks().await, 125, "what is new is not remembered");
    // Counted late, from a spool that was away.
    humans(&world, &link("abc"), at(3), 1_000).await;
    world.clock.set(UnixMillis(at(40).0 + 3_600_000));
    assert_eq!(clicks().await, 1_125);
    let edited = world
        .call(
            Method::PATCH,
            "/api/v1/links/abc",
            Some(json!({"title": "t"})),
        )
        .await;
    assert_eq!(edited.json()["clicks"], 1_125);
}

#[tokio::test]
async fn links_are_listed_by_clicks() {
    let world = World::new().await;
    let now = world.clock.now();
    for (key, clicks) in [("a", 3), ("b", 0), ("c", 7), ("d", 3), ("e", 1)] {
        world.link(key).await;
        if clicks > 0 {
            humans(&world, &link(key), now, clicks).await;
        }
    }
    let all = pairs(&[("c", 7), ("a", 3), ("d", 3), ("e", 1), ("b", 0)]);
    assert_eq!(
        listed(&world, "?order=clicks").await,
        (all.clone(), Value::Null)
    );
    let mut walked = Vec::new();
    let mut query = "?order=clicks&limit=2".to_owned();
    loop {
        let (links, next) = listed(&world, &query).await;
        walked.extend(links);
        let Some(next) = next.as_str() else { break };
        query = format!("?order=clicks&limit=2&cursor={next}");
    }
    assert_eq!(walked, all);
    let (newest, _) = listed(&world, "?limit=1").await;
    assert_eq!(newest, pairs(&[("e", 1)]), "other orders show them, too");
    let (filtered, _) = listed(&world, "?order=clicks&search=a&limit=1").await;
    assert_eq!(filtered.len(), 1);
    let path = "/api/v1/links?order=clicks&cursor=memory:newest:1:0:a";
    let foreign = world.call(Method::GET, path, None).await;
    assert_eq!(foreign.refused(), "cursor/cursor_invalid");
}

#[tokio::test]
async fn more_links_than_can_be_ranked_are_refused_with_a_way_out() {
    let world = World::new().await;
    for bulk in [1_000, 1] {
        let links: Vec<Value> = (0..bulk)
            .map(|_| json!({"target": "https://example.com/"}))
            .collect();
        let body = json!({ "links": links });
        let made = world
            .call(Method::POST, "/api/v1/links/bulk", Some(body))
            .await;
        assert_eq!(made.json()["failed"], 0);
        let ranked = world
            .call(Method::GET, "/api/v1/links?order=clicks&limit=1", None)
            .await;
        match bulk {
            1 => assert_eq!(ranked.refused(), "order/too_many"),
            _ => assert_eq!(ranked.status, 200, "{}", ranked.body),
        }
    }
}

#[tokio::test]
async fn without_counting_there_are_no_clicks_to_tell() {
    let world = World::without_reports().await;
    let made = world.link("abc").await.json();
    assert_eq!(made["clicks"], Value::Null);
    let ranked = world
        .call(Method::GET, "/api/v1/links?order=clicks", None)
        .await;
    assert_eq!(ranked.refused(), "order/unavailable");
}
