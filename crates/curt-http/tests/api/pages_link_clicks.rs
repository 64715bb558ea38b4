//! `/links/{key}`: a link's clicks, drawn and in tables.

use curt_core::{ClickOutcome, Day, Dimension, Rollup, Sketch, SubjectDay, UnixMillis};
use serde_json::json;

use crate::harness::{ADA, NOW, World};
use crate::pages_forms::click;
use crate::pages_link::HOSTILE;
use crate::pages_links::{PAGE_BYTES_MAX, make};
use crate::stats::{HOUR, apply, count, id, link, of_ada};

#[tokio::test]
async fn clicks_are_drawn_and_told_in_tables() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    make(&world, json!({"alias": "one"})).await;
    let page = click(&world, "/links/one", &token).await;
    assert!(page.body.contains("No clicks in this time") && !page.body.contains("<svg"));
    let at = UnixMillis(NOW.0 - HOUR);
    for (dimension, value, number) in [
        (Dimension::Class, "human", 1_234),
        (Dimension::Class, "bot", 6),
        (Dimension::Country, "DE", 1_000),
        (Dimension::Country, "US", 234),
        (Dimension::City, "Bonn, DE", 40),
        (Dimension::Browser, "Firefox", 1_234),
        (Dimension::Referrer, "news.example", 9),
        (Dimension::UtmCampaign, "Spring", 3),
    ] {
        count(&world, &link("one"), at, dimension, value, number).await;
    }
    apply(&world, Vec::new(), vec![of_ada(at, "one")]).await;
    let page = click(&world, "/links/one", &token).await;
    for words in [
        "<output aria-live=\"polite\">1,234</output>",
        "<dt>People</dt><dd>1,234</dd>",
        "<dt>Bots and the like</dt><dd>6</dd>",
        "role=\"img\" aria-label=\"1,234 clicks of people in this time. Most in one day: 1,234, 2025-12-31.\"",
        "<tr><th scope=\"row\">2025-12-31</th><td>1,234</td><td>6</td></tr>",
        "<title>Germany: 1,000</title>",
        "<span>Bonn, DE</span>",
        "<h3 id=\"by-utm_campaign\">UTM campaign</h3>",
        "<td>Firefox, Linux</td>",
        "data-live-total=\"/api/v1/links/one/live\"",
        "src=\"/links/one/qr.svg\"",
        "/api/v1/links/one/stats.csv?from=2025-12-0",
    ] {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    assert!(!page.body.contains(" style=") && !page.body.contains("<script>"));
    let hours = click(&world, "/links/one?range=24h&tz=Europe/Berlin", &token).await;
    assert!(
        hours
            .body
            .contains("<th scope=\"row\">01-01 00:00</th><td>1,234</td>"),
        "{}",
        hours.body
    );
    assert!(
        hours
            .body
            .contains("href=\"/links/one?range=7d&#38;tz=Europe%2FBerlin\"")
    );
    let wrong = click(&world, "/links/one?tz=Mars/%3Cb%3EBase", &token).await;
    assert_eq!(wrong.status, 200);
    assert!(wrong.body.contains("There is no such time zone") && !wrong.body.contains("<b>Base"));
    let own = click(&world, "/links/one?from=2025-01-01&to=2025-12-31", &token).await;
    assert!(own.body.contains("<th scope=\"row\">2025-W01</th>"));
}

/// Everything that strangers can send, on a page that is as full as it gets.
#[tokio::test]
async fn hostile_clicks_are_text_and_a_full_page_is_small() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    make(&world, json!({"alias": "one", "title": HOSTILE, "tags": ["<b>\"&"], "target": "https://example.com/?q=\"><script>alert(1)</script>"})).await;
    let at = UnixMillis(NOW.0 - HOUR);
    let mut rollups = Vec::new();
    for dimension in Dimension::ALL {
        let values: Vec<String> = match dimension {
            Dimension::Class => vec!["human".to_owned(), "bot".to_owned()],
            Dimension::Country => [
                "DE", "US", "FR", "JP", "BR", "IN", "ZA", "AU", "CA", "GB", HOSTILE,
            ]
            .map(str::to_owned)
            .into(),
            _ => (0..12)
                .map(|number| format!("{HOSTILE}{number}{}", "&".repeat(200)))
                .collect(),
        };
        for (number, value) in (1..).zip(values) {
            rollups.push(Rollup {
                hour: at.hour(),
                dimension,
                value: value.as_str().into(),
                count: number,
            });
        }
    }
    let day = SubjectDay {
        subject: link("one"),
        day: Day::of(at),
        rollups,
        visitors: Sketch::new(),
    };
    let clicks = (0..12).map(|_| {
        let mut click = of_ada(at, "one");
        (click.browser, click.system, click.referrer, click.country) = (
            HOSTILE.into(),
            HOSTILE.into(),
            HOSTILE.repeat(5).into(),
            HOSTILE.into(),
        );
        click.details.set(Dimension::City, HOSTILE);
        click.outcome = ClickOutcome::Link(id("one"), 1);
        click
    });
    apply(&world, vec![day], clicks.collect()).await;
    for path in ["/links/one?range=90d", "/links/one/edit"] {
        let page = click(&world, path, &token).await;
        assert_eq!(page.status, 200);
        assert!(
            !page.body.contains("<script>alert") && !page.body.contains("<b>\""),
            "{path}"
        );
        assert!(
            page.body.len() <= PAGE_BYTES_MAX,
            "{path}: {}",
            page.body.len()
        );
    }
    let page = click(&world, "/links/one?range=90d", &token).await;
    assert!(page.body.matches("&#60;script&#62;").count() > 100);
}
