use curt_core::{Scope, UnixMillis, VisitKind, VisitRow, Visited};
use serde_json::{Value, json};

use super::{DAY, HOUR, apply, get, get_as, of_ada, visit};
use crate::harness::{BOB, NOW, ROOT, World};

/// Ada's link with `number` visits in the last hours, and one of somebody else's link.
async fn visited(number: i64) -> World {
    let world = World::new().await;
    world.clock.set(UnixMillis(NOW.0 - DAY));
    world.link("abc").await;
    world.clock.set(NOW);
    let at = |minutes: i64| UnixMillis(NOW.0 - HOUR - minutes * 60_000);
    let mut visits: Vec<_> = (0..number)
        .map(|minutes| of_ada(at(minutes), "abc"))
        .collect();
    visits.push(visit(at(1), Visited::Link(super::id("bobs"), 1), Some(BOB)));
    visits.push(visit(
        at(2),
        Visited::Absent("=cmd|' /C calc'!A0".into()),
        None,
    ));
    visits.push(visit(at(3), Visited::BaseUrl, None));
    apply(&world, Vec::new(), visits).await;
    world
}

#[tokio::test]
async fn pages_lead_through_all_visits_newest_first() {
    let world = visited(5).await;
    let mut path = "/api/v1/links/abc/visits?limit=2&tz=UTC".to_owned();
    let mut seen = Vec::new();
    for _ in 0..5 {
        let page = get(&world, &path).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let next = page.header("link").split(['<', '>']).nth(1);
        seen.extend(page.json()["visits"].as_array().unwrap().clone());
        match next {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    let times: Vec<_> = seen
        .iter()
        .map(|visit| visit["at"].as_str().unwrap())
        .collect();
    assert_eq!(times.len(), 5);
    assert!(
        times.is_sorted_by(|newer, older| newer > older),
        "{times:?}"
    );
    let newest = json!({
        "at": "2025-12-31T23:00:00.000Z", "met": "link", "key": "abc", "kind": "human", "country": "DE",
        "browser": "Firefox", "system": "Linux", "device": "desktop", "referrer": "news.example",
        "language": "de", "address": null,
    });
    assert_eq!(seen[0], newest);
}

#[tokio::test]
async fn visits_are_filtered_and_wrong_filters_named() {
    let world = World::new().await;
    let at = UnixMillis(NOW.0 - HOUR);
    let bot = VisitRow {
        kind: VisitKind::Bot,
        ..of_ada(at, "a")
    };
    let french = VisitRow {
        country: "FR".into(),
        ..of_ada(at, "a")
    };
    apply(&world, Vec::new(), vec![bot, french, of_ada(at, "a")]).await;
    for (query, number) in [
        ("", 3),
        ("kind=human", 2),
        ("kind=bot", 1),
        ("kind=human&country=FR", 1),
        ("browser=Firefox&system=Linux&device=desktop&language=de", 3),
        ("browser=Chrome", 0),
        ("referrer=news.example", 3),
        ("referrer=other.example", 0),
        ("to=2025-12-30", 0),
    ] {
        let page = get(&world, &format!("/api/v1/visits?{query}")).await.json();
        assert_eq!(page["visits"].as_array().unwrap().len(), number, "{query}");
        assert_eq!(page["next"], Value::Null);
    }
    for (query, refused) in [
        ("kind=alien", "kind/value"),
        ("limit=1001", "limit/value"),
        ("cursor=nonsense", "cursor/value"),
        ("browser=Firefox&browser=Chrome", "browser/duplicate"),
        ("age=42", "age/unknown"),
    ] {
        let answer = get(&world, &format!("/api/v1/visits?{query}")).await;
        assert_eq!(answer.refused(), refused);
    }
    let file = get(&world, "/api/v1/visits.csv?limit=5").await;
    assert_eq!(file.refused(), "limit/unknown");
}

#[tokio::test]
async fn everybody_sees_visits_of_their_own_links_alone() {
    let world = visited(2).await;
    let root = world
        .key_for(ROOT, "reports", &[Scope::Read, Scope::Admin])
        .await;
    let keys = |answer: &Value| -> Vec<Value> {
        let visits = answer["visits"].as_array().unwrap().iter();
        visits.map(|visit| visit["key"].clone()).collect()
    };
    let own = get(&world, "/api/v1/visits").await.json();
    assert_eq!(keys(&own), ["abc", "abc"]);
    let bobs = get_as(&world, &world.stranger, "/api/v1/visits")
        .await
        .json();
    assert_eq!(keys(&bobs), ["bobs"]);
    let foreign = get_as(&world, &world.stranger, "/api/v1/links/abc/visits").await;
    assert_eq!(foreign.problem(), "link-not-found");
    assert_eq!(get(&world, "/api/v1/orphans/visits").await.status, 403);
    let orphans = get_as(&world, &root, "/api/v1/orphans/visits").await.json();
    assert_eq!(keys(&orphans), [json!("=cmd|' /C calc'!A0"), Value::Null]);
    assert_eq!(orphans["visits"][0]["met"], "not_found");
    assert_eq!(orphans["visits"][1]["met"], "base_url");
}

#[tokio::test]
async fn a_file_has_every_visit_and_no_formula() {
    let world = visited(0).await;
    let visits = (0..2_500).map(|millis| VisitRow {
        referrer: "=HYPERLINK(\"http://evil.example\",\"x\")".into(),
        browser: "@SUM(1,1)".into(),
        language: "a\r\nb".into(),
        ..of_ada(UnixMillis(NOW.0 - HOUR - millis), "abc")
    });
    apply(&world, Vec::new(), visits.collect()).await;
    for path in ["/api/v1/links/abc/visits.csv", "/api/v1/visits.csv"] {
        let file = get(&world, path).await;
        assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
        let (head, rows) = file.body.split_once("\r\n").unwrap();
        assert_eq!(
            head,
            "at,met,key,kind,country,browser,system,device,referrer,language,address"
        );
        let row = "link,abc,human,DE,\"'@SUM(1,1)\",Linux,desktop,\
                   \"'=HYPERLINK(\"\"http://evil.example\"\",\"\"x\"\")\",\"a\r\nb\",\r\n";
        assert_eq!(rows.matches(row).count(), 2_500, "{path}");
        assert!(!rows.contains(",=") && !rows.contains(",@"));
    }
}
