use curt_core::ports::LinkStore as _;
use curt_core::{
    Click, ClickClass, ClickOutcome, ClickSubject, Dimension, Link, Revision, Scope, UnixMillis,
};
use curt_testkit::sample;
use serde_json::json;

use super::{DAY, HOUR, apply, click, count, get, get_as, humans, id, link, of_ada};
use crate::harness::{ADA, BOB, NOW, ROOT, World};

#[tokio::test]
async fn a_link_tells_its_totals_and_a_series_without_gaps() {
    let world = World::new().await;
    world.clock.set(UnixMillis(NOW.0 - 10 * DAY));
    world.link("abc").await;
    world.clock.set(NOW);
    let abc = link("abc");
    humans(&world, &abc, UnixMillis(NOW.0 - 2 * DAY), 3).await;
    humans(&world, &abc, NOW, 4).await;
    count(&world, &abc, NOW, Dimension::Class, "bot", 5).await;
    let stats = get(&world, "/api/v1/links/abc/stats").await;
    assert_eq!(stats.status, 200, "{}", stats.body);
    let stats = stats.json();
    let all = json!({"total": 12, "human": 7, "bot": 5, "prefetch": 0, "head": 0});
    assert_eq!(stats["totals"], all);
    assert_eq!(stats["visitors"], 2);
    assert_eq!(
        (&stats["tz"], &stats["bucket"]),
        (&json!("UTC"), &json!("day"))
    );
    assert_eq!(stats["from"], "2025-12-03T00:00:00.000Z");
    assert_eq!(
        stats["to"], "2026-01-01T01:00:00.000Z",
        "the hour has begun"
    );
    let series = stats["series"].as_array().unwrap();
    assert_eq!(series.len(), 30);
    assert_eq!(series[27]["counts"]["human"], 3);
    assert_eq!(series[28]["counts"]["human"], 0);
    assert_eq!(series[29]["counts"]["total"], 9);
}

#[tokio::test]
async fn the_range_and_the_calendar_are_the_callers() {
    let world = World::new().await;
    world.clock.set(UnixMillis(NOW.0 - 40 * DAY));
    world.link("abc").await;
    world.clock.set(NOW);
    // New Year in Tokyo is at 15:00 UTC.
    humans(&world, &link("abc"), UnixMillis(NOW.0 - 10 * HOUR), 1).await;
    humans(&world, &link("abc"), UnixMillis(NOW.0 - 9 * HOUR), 2).await;
    for (query, points) in [
        (
            "from=2025-12-31&to=2026-01-01&tz=Asia/Tokyo",
            json!([["2025-12-31", 1], ["2026-01-01", 2]]),
        ),
        (
            "from=2025-12-31T14:00:00Z&to=2025-12-31T15:30:00Z&tz=Asia/Tokyo&bucket=hour",
            json!([["2025-12-31T23:00+09:00", 1], ["2026-01-01T00:00+09:00", 2]]),
        ),
        (
            "from=2025-12-31&to=2025-12-31&bucket=week",
            json!([["2026-W01", 3]]),
        ),
        (
            "from=2025-12-31&to=2026-01-01&bucket=month&tz=Asia/Tokyo",
            json!([["2025-12", 1], ["2026-01", 2]]),
        ),
    ] {
        let stats = get(&world, &format!("/api/v1/links/abc/stats?{query}")).await;
        assert_eq!(stats.status, 200, "{query}: {}", stats.body);
        let stats = stats.json();
        let series = stats["series"].as_array().unwrap().iter();
        let found: Vec<_> = series
            .map(|point| json!([point["label"], point["counts"]["human"]]))
            .collect();
        assert_eq!(json!(found), points, "{query}");
    }
}

#[tokio::test]
async fn what_is_asked_wrongly_is_named() {
    let world = World::new().await;
    world.link("abc").await;
    for (query, refused) in [
        ("from=2026-02-30", "from/time"),
        ("from=yesterday", "from/time"),
        ("to=2025-01-01&from=2025-01-02", "to/order"),
        ("from=2000-01-01", "from/length"),
        ("from=2020-01-01&bucket=hour", "bucket/count"),
        ("from=9999-12-30&to=9999-12-31", "from/time"),
        ("bucket=year", "bucket/value"),
        ("tz=Mars/Olympus", "tz/value"),
        ("tz=../../etc/passwd", "tz/value"),
        ("tag=x", "tag/unknown"),
        ("owner_id=1", "owner_id/unknown"),
        ("fro=2026-01-01", "fro/unknown"),
        ("from=2026-01-01&from=2026-01-01", "from/duplicate"),
    ] {
        for path in ["stats", "stats.csv"] {
            let answer = get(&world, &format!("/api/v1/links/abc/{path}?{query}")).await;
            assert_eq!(answer.status, 422, "{query}: {}", answer.body);
            assert_eq!(answer.refused(), refused, "{query}");
        }
    }
    for limit in ["0", "1001", "x", "-1"] {
        let answer = get(&world, &format!("/api/v1/stats/country?limit={limit}")).await;
        assert_eq!(answer.refused(), "limit/value", "{limit}");
    }
}

#[tokio::test]
async fn values_are_ranked_and_the_others_counted() {
    let world = World::new().await;
    world.clock.set(UnixMillis(NOW.0 - DAY));
    world.link("abc").await;
    world.clock.set(NOW);
    let at = UnixMillis(NOW.0 - HOUR);
    let hostile = "<script>alert(1)</script>\r\nx: y";
    for (value, number) in [
        ("news.example", 5),
        (hostile, 7),
        ("b.example", 2),
        ("a", 2),
    ] {
        count(&world, &link("abc"), at, Dimension::Referrer, value, number).await;
    }
    let top = get(&world, "/api/v1/links/abc/stats/referrer?limit=2").await;
    assert_eq!(top.header("content-type"), "application/json");
    let top = top.json();
    assert_eq!(
        top["values"],
        json!([{"value": hostile, "count": 7}, {"value": "news.example", "count": 5}])
    );
    assert_eq!(
        (&top["rest"], &top["dimension"]),
        (&json!(4), &json!("referrer"))
    );
    for dimension in ["orphan", "key", "age", "Referrer", "%ff"] {
        let answer = get(&world, &format!("/api/v1/links/abc/stats/{dimension}")).await;
        assert_eq!(answer.status, 404, "{dimension}");
    }
}

#[tokio::test]
async fn values_are_ranked_among_clicks_that_have_others() {
    let world = World::new().await;
    world.clock.set(UnixMillis(NOW.0 - DAY));
    world.link("abc").await;
    world.clock.set(NOW);
    let at = UnixMillis(NOW.0 - HOUR);
    let from = |country: &str, browser: &str| Click {
        country: country.into(),
        browser: browser.into(),
        ..of_ada(at, "abc")
    };
    let bot = Click {
        class: ClickClass::Bot,
        ..from("DE", "Crawler")
    };
    let clicks = vec![
        from("DE", "Firefox"),
        from("FR", "Chrome"),
        from("DE", "Chrome"),
        from("DE", "Firefox"),
        bot,
        click(at, ClickOutcome::Absent("lost".into()), None),
    ];
    apply(&world, Vec::new(), clicks).await;
    for (path, expected) in [
        (
            "links/abc/stats/browser?country=DE",
            json!({"Firefox": 2, "Chrome": 1}),
        ),
        (
            "links/abc/stats/browser?country=DE&class=bot",
            json!({"Crawler": 1}),
        ),
        (
            "links/abc/stats/class?country=DE",
            json!({"human": 3, "bot": 1}),
        ),
        (
            "links/abc/stats/browser?country=DE&to=2025-12-30",
            json!({}),
        ),
        ("stats/country?browser=Chrome", json!({"DE": 1, "FR": 1})),
        ("stats/country?browser=Chrome&tag=none", json!({})),
        ("stats/country?browser=Chrome&limit=1", json!({"DE": 1})),
    ] {
        let top = get(&world, &format!("/api/v1/{path}")).await;
        assert_eq!(top.status, 200, "{path}: {}", top.body);
        let top = top.json();
        let values = top["values"].as_array().unwrap().iter();
        let values = values.map(|one| (one["value"].as_str().unwrap(), one["count"].clone()));
        let values: serde_json::Map<_, _> = values.map(|(value, n)| (value.into(), n)).collect();
        assert_eq!(serde_json::Value::Object(values), expected, "{path}");
        assert_eq!(top["complete_from"], top["from"], "{path}");
    }
    for (query, refused) in [("class=alien", "class/value"), ("age=42", "age/unknown")] {
        let answer = get(&world, &format!("/api/v1/stats/country?{query}")).await;
        assert_eq!(answer.refused(), refused);
    }
}

#[tokio::test]
async fn where_no_click_is_kept_there_are_no_filters() {
    let world = World::without_clicks().await;
    world.link("abc").await;
    for query in ["", "?class=human"] {
        let answer = get(&world, &format!("/api/v1/links/abc/stats/browser{query}")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    for (query, refused) in [
        ("country=DE", "country/unavailable"),
        ("class=bot", "class/unavailable"),
    ] {
        let answer = get(&world, &format!("/api/v1/links/abc/stats/browser?{query}")).await;
        assert_eq!(answer.refused(), refused);
    }
}

/// A key that was given away again: in the same hour, and by another owner.
#[tokio::test]
async fn clicks_of_an_earlier_link_with_the_same_key_are_not_its_own() {
    let world = World::new().await;
    let reborn = Link {
        owner: ADA,
        revision: Revision::FIRST.reborn(),
        ..sample::link("abc")
    };
    let made = world.store.insert_if_absent(vec![reborn], None).await;
    made.unwrap();
    let (earlier, own) = (link("abc"), ClickSubject::Link(id("abc"), 2));
    for (subject, number, browser) in [(&earlier, 7, "Chrome"), (&own, 1, "Firefox")] {
        humans(&world, subject, NOW, number).await;
        count(&world, subject, NOW, Dimension::Browser, browser, number).await;
    }
    let of_both = [(id("abc"), 1), (id("abc"), 2)]
        .map(|(id, generation)| click(NOW, ClickOutcome::Link(id, generation), Some(ADA)));
    apply(&world, Vec::new(), of_both.to_vec()).await;
    let path = "/api/v1/links/abc";
    let stats = get(&world, &format!("{path}/stats")).await.json();
    assert_eq!(
        (&stats["totals"]["human"], &stats["visitors"]),
        (&json!(1), &json!(1))
    );
    let top = get(&world, &format!("{path}/stats/browser")).await.json();
    assert_eq!(top["values"], json!([{"value": "Firefox", "count": 1}]));
    let clicks = get(&world, &format!("{path}/clicks")).await.json();
    assert_eq!(clicks["clicks"].as_array().unwrap().len(), 1);
    let all = get(&world, "/api/v1/clicks").await.json();
    assert_eq!(all["clicks"].as_array().unwrap().len(), 2);
}

/// A clock that stepped back dates clicks before the link that they are of.
#[tokio::test]
async fn no_clock_hides_clicks() {
    let world = World::new().await;
    world.link("abc").await;
    humans(&world, &link("abc"), UnixMillis(NOW.0 - DAY), 100).await;
    humans(&world, &link("abc"), UnixMillis(NOW.0 + DAY), 10).await;
    humans(&world, &link("abc"), NOW, 1).await;
    let stats = get(&world, "/api/v1/links/abc/stats").await.json();
    assert_eq!(stats["totals"]["human"], 111);
    let top = get(&world, "/api/v1/links/abc/stats/class").await.json();
    assert_eq!(top["values"], json!([{"value": "human", "count": 111}]));
    // An end that is asked for is one.
    let path = "/api/v1/links/abc/stats?to=2026-01-01T00:30:00Z";
    let ended = get(&world, path).await.json();
    assert_eq!(ended["totals"]["human"], 101);
}

#[tokio::test]
async fn everybody_sees_their_own_numbers_alone() {
    let world = World::new().await;
    world.link("abc").await;
    let at = UnixMillis(NOW.0 - HOUR);
    humans(&world, &ClickSubject::Owner(ADA), at, 1).await;
    humans(&world, &ClickSubject::Owner(BOB), at, 10).await;
    humans(&world, &ClickSubject::tag(ADA, "spring"), at, 100).await;
    humans(&world, &ClickSubject::Everything, at, 1_000).await;
    humans(&world, &ClickSubject::Orphans, at, 10_000).await;
    let root = world
        .key_for(ROOT, "reports", &[Scope::Read, Scope::Admin])
        .await;
    let scoped = world.key_for(ADA, "maker", &[Scope::Create]).await;
    let cases: [(&str, &str, Result<u64, u16>); 18] = [
        (&world.key, "/api/v1/stats", Ok(1)),
        (&world.key, "/api/v1/stats?owner_id=1", Ok(1)),
        (&world.key, "/api/v1/stats?tag=Spring", Ok(100)),
        (&world.key, "/api/v1/stats?tag=autumn", Ok(0)),
        (&world.key, "/api/v1/stats?owner_id=2", Err(403)),
        (&world.key, "/api/v1/stats?owner_id=all", Err(403)),
        (&world.key, "/api/v1/stats?owner_id=x", Err(422)),
        (&world.key, "/api/v1/stats?tag=", Err(422)),
        (&world.key, "/api/v1/orphans", Err(403)),
        (&world.stranger, "/api/v1/stats", Ok(10)),
        (&world.stranger, "/api/v1/stats?tag=spring", Ok(0)),
        (&world.stranger, "/api/v1/links/abc/stats", Err(404)),
        (&scoped, "/api/v1/stats", Err(403)),
        (&root, "/api/v1/stats?owner_id=all", Ok(1_000)),
        (&root, "/api/v1/stats?owner_id=2", Ok(10)),
        (&root, "/api/v1/stats?owner_id=1&tag=spring", Ok(100)),
        (&root, "/api/v1/stats?owner_id=all&tag=spring", Err(422)),
        (&root, "/api/v1/orphans", Ok(10_000)),
    ];
    for (key, path, expected) in cases {
        let answer = get_as(&world, key, path).await;
        match expected {
            Ok(human) => assert_eq!(answer.json()["totals"]["human"], human, "{path}"),
            Err(status) => assert_eq!(answer.status.as_u16(), status, "{path}"),
        }
    }
    let keys = get_as(&world, &root, "/api/v1/orphans/key").await;
    assert_eq!(keys.status, 200);
}

#[tokio::test]
async fn a_series_is_a_file_too() {
    let world = World::new().await;
    world.link("abc").await;
    let at = UnixMillis(NOW.0 - HOUR);
    humans(&world, &ClickSubject::Owner(ADA), at, 3).await;
    let file = get(&world, "/api/v1/stats.csv?from=2025-12-30&to=2025-12-31").await;
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(
        file.header("content-disposition"),
        "attachment; filename=\"stats.csv\""
    );
    assert_eq!(
        file.body,
        "start,label,total,human,bot,prefetch,head,visitors\r\n\
         2025-12-30T00:00:00.000Z,2025-12-30,0,0,0,0,0,0\r\n\
         2025-12-31T00:00:00.000Z,2025-12-31,3,3,0,0,0,1\r\n"
    );
    let hours = get(
        &world,
        "/api/v1/links/abc/stats.csv?from=2025-12-31&to=2025-12-31&bucket=hour",
    )
    .await;
    assert_eq!(hours.body.lines().count(), 25);
}

#[tokio::test]
async fn where_nothing_is_counted_there_are_no_reports() {
    let world = World::without_reports().await;
    world.link("abc").await;
    for path in [
        "/api/v1/stats",
        "/api/v1/links/abc/stats",
        "/api/v1/links/abc/clicks",
        "/api/v1/live",
    ] {
        let answer = get(&world, path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.problem().as_str()),
            (404, "not-found")
        );
        assert!(
            answer.body.contains("does not count clicks"),
            "{}",
            answer.body
        );
        assert_eq!(get_as(&world, "curt_bad", path).await.status, 401);
    }
}
