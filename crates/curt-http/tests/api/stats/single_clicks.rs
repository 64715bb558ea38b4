use curt_core::{Click, ClickClass, ClickOutcome, Scope, UnixMillis};
use serde_json::{Value, json};

use super::{DAY, HOUR, apply, click, get, get_as, of_ada};
use crate::harness::{BOB, NOW, ROOT, World};

/// Ada's link with `number` clicks in the last hours, and one of somebody else's link.
async fn world_with_clicks(number: i64) -> World {
    let world = World::new().await;
    world.clock.set(UnixMillis(NOW.0 - DAY));
    world.link("abc").await;
    world.clock.set(NOW);
    let at = |minutes: i64| UnixMillis(NOW.0 - HOUR - minutes * 60_000);
    let mut clicks: Vec<_> = (0..number)
        .map(|minutes| of_ada(at(minutes), "abc"))
        .collect();
    clicks.push(click(
        at(1),
        ClickOutcome::Link(super::id("bobs"), 1),
        Some(BOB),
    ));
    clicks.push(click(
        at(2),
        ClickOutcome::Absent("=cmd|' /C calc'!A0".into()),
        None,
    ));
    clicks.push(click(at(3), ClickOutcome::BaseUrl, None));
    apply(&world, Vec::new(), clicks).await;
    world
}

#[tokio::test]
async fn pages_lead_through_all_clicks_newest_first() {
    let world = world_with_clicks(5).await;
    let mut path = "/api/v1/links/abc/clicks?limit=2&tz=UTC".to_owned();
    let mut seen = Vec::new();
    for _ in 0..5 {
        let page = get(&world, &path).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let next = page.header("link").split(['<', '>']).nth(1);
        seen.extend(page.json()["clicks"].as_array().unwrap().clone());
        match next {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    let times: Vec<_> = seen
        .iter()
        .map(|click| click["at"].as_str().unwrap())
        .collect();
    assert_eq!(times.len(), 5);
    assert!(
        times.is_sorted_by(|newer, older| newer > older),
        "{times:?}"
    );
    let newest = json!({
        "at": "2025-12-31T23:00:00.000Z", "outcome": "link", "key": "abc", "class": "human", "country": "DE",
        "browser": "Firefox", "system": "Linux", "device": "desktop", "referrer": "news.example",
        "language": "de", "referrer_group": null, "utm_source": null, "utm_medium": null, "utm_campaign": null, "utm_term": null, "utm_content": null, "city": null, "network": null, "address": null,
    });
    assert_eq!(seen[0], newest);
}

#[tokio::test]
async fn clicks_are_filtered_and_wrong_filters_named() {
    let world = World::new().await;
    let at = UnixMillis(NOW.0 - HOUR);
    let bot = Click {
        class: ClickClass::Bot,
        ..of_ada(at, "a")
    };
    let french = Click {
        country: "FR".into(),
        ..of_ada(at, "a")
    };
    apply(&world, Vec::new(), vec![bot, french, of_ada(at, "a")]).await;
    for (query, number) in [
        ("", 3),
        ("class=human", 2),
        ("class=bot", 1),
        ("class=human&country=FR", 1),
        ("browser=Firefox&system=Linux&device=desktop&language=de", 3),
        ("browser=Chrome", 0),
        ("referrer=news.example", 3),
        ("referrer=other.example", 0),
        ("to=2025-12-30", 0),
    ] {
        let page = get(&world, &format!("/api/v1/clicks?{query}")).await.json();
        assert_eq!(page["clicks"].as_array().unwrap().len(), number, "{query}");
        assert_eq!(page["next"], Value::Null);
    }
    for (query, refused) in [
        ("class=alien", "class/value"),
        ("limit=1001", "limit/value"),
        ("cursor=nonsense", "cursor/cursor_invalid"),
        ("browser=Firefox&browser=Chrome", "browser/duplicate"),
        ("age=42", "age/unknown"),
    ] {
        let answer = get(&world, &format!("/api/v1/clicks?{query}")).await;
        assert_eq!(answer.refused(), refused);
    }
    let file = get(&world, "/api/v1/clicks.csv?limit=5").await;
    assert_eq!(file.refused(), "limit/unknown");
}

#[tokio::test]
async fn everybody_sees_clicks_of_their_own_links_alone() {
    let world = world_with_clicks(2).await;
    let root = world
        .key_for(ROOT, "reports", &[Scope::Read, Scope::Admin])
        .await;
    let keys = |answer: &Value| -> Vec<Value> {
        let clicks = answer["clicks"].as_array().unwrap().iter();
        clicks.map(|click| click["key"].clone()).collect()
    };
    let own = get(&world, "/api/v1/clicks").await.json();
    assert_eq!(keys(&own), ["abc", "abc"]);
    let bobs = get_as(&world, &world.stranger, "/api/v1/clicks")
        .await
        .json();
    assert_eq!(keys(&bobs), ["bobs"]);
    let foreign = get_as(&world, &world.stranger, "/api/v1/links/abc/clicks").await;
    assert_eq!(foreign.problem(), "link-not-found");
    assert_eq!(get(&world, "/api/v1/orphans/clicks").await.status, 403);
    let orphans = get_as(&world, &root, "/api/v1/orphans/clicks").await.json();
    assert_eq!(keys(&orphans), [json!("=cmd|' /C calc'!A0"), Value::Null]);
    assert_eq!(orphans["clicks"][0]["outcome"], "not_found");
    assert_eq!(orphans["clicks"][1]["outcome"], "base_url");
}

#[tokio::test]
async fn a_file_has_every_click_and_no_formula() {
    let world = world_with_clicks(0).await;
    let clicks = (0..2_500).map(|millis| Click {
        referrer: "=HYPERLINK(\"http://evil.example\",\"x\")".into(),
        browser: "@SUM(1,1)".into(),
        language: "a\r\nb".into(),
        ..of_ada(UnixMillis(NOW.0 - HOUR - millis), "abc")
    });
    apply(&world, Vec::new(), clicks.collect()).await;
    for path in ["/api/v1/links/abc/clicks.csv", "/api/v1/clicks.csv"] {
        let file = get(&world, path).await;
        assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
        let (head, rows) = file.body.split_once("\r\n").unwrap();
        assert_eq!(
            head,
            "at,outcome,key,class,country,browser,system,device,referrer,language,\
             referrer_group,utm_source,utm_medium,utm_campaign,utm_term,utm_content,city,network,address"
        );
        let row = "link,abc,human,DE,\"'@SUM(1,1)\",Linux,desktop,\
                   \"'=HYPERLINK(\"\"http://evil.example\"\",\"\"x\"\")\",\"a\r\nb\",,,,,,,,,\r\n";
        assert_eq!(rows.matches(row).count(), 2_500, "{path}");
        assert!(!rows.contains(",=") && !rows.contains(",@"));
    }
}
