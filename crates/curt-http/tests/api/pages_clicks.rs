//! `/clicks`: all clicks together, of a tag, of everybody, and those that met no link.

use curt_core::{ClickOutcome, ClickSubject, Dimension, UnixMillis};

use crate::harness::{ADA, BOB, NOW, ROOT, World};
use crate::pages_forms::click;
use crate::pages_links::PAGE_BYTES_MAX;
use crate::stats::{HOUR, apply, click as clicked, count};

const AT: UnixMillis = UnixMillis(NOW.0 - HOUR);

#[tokio::test]
async fn clicks_of_all_links_and_of_a_tag_are_shown_to_their_owner() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    let empty = click(&world, "/clicks", &token).await;
    assert!(empty.body.contains("No clicks in this time"));
    count(
        &world,
        &ClickSubject::Owner(ADA),
        AT,
        Dimension::Class,
        "human",
        77,
    )
    .await;
    count(
        &world,
        &ClickSubject::tag(ADA, "a&b"),
        AT,
        Dimension::Class,
        "human",
        33,
    )
    .await;
    let page = click(&world, "/clicks", &token).await;
    assert!(page.body.contains("<dt>People</dt><dd>77</dd>"));
    assert!(page.body.contains("data-live-total=\"/api/v1/live?\""));
    assert!(!page.body.contains("Without a link"), "for administrators");
    let page = click(&world, "/clicks?tag=A%26b&range=7d", &token).await;
    assert!(page.body.contains("<dt>People</dt><dd>33</dd>"));
    assert!(page.body.contains("<h1>Clicks on “A&#38;b”.</h1>"));
    assert!(
        page.body
            .contains("href=\"/clicks?range=24h&#38;tag=A%26b\""),
        "{}",
        page.body
    );
    assert!(page.body.contains("name=\"tag\" value=\"A&#38;b\""));
    let bob = world.session(BOB).await;
    let others = click(&world, "/clicks?tag=a%26b", &bob).await;
    assert!(others.body.contains("No clicks in this time"));
    let long = format!("/clicks?tag={}", "x".repeat(65));
    assert_eq!(click(&world, &long, &token).await.status, 422);
}

#[tokio::test]
async fn orphans_and_everybodys_clicks_are_for_administrators() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    for path in ["/clicks/orphans", "/clicks?owner=all"] {
        assert_eq!(click(&world, path, &token).await.status, 403, "{path}");
    }
    let hostile = "<img src=x onerror=alert(1)>";
    count(
        &world,
        &ClickSubject::Orphans,
        AT,
        Dimension::Class,
        "human",
        4,
    )
    .await;
    count(
        &world,
        &ClickSubject::Orphans,
        AT,
        Dimension::Key,
        hostile,
        4,
    )
    .await;
    count(
        &world,
        &ClickSubject::Everything,
        AT,
        Dimension::Class,
        "human",
        99,
    )
    .await;
    let orphan = clicked(AT, ClickOutcome::Absent(hostile.into()), None);
    apply(&world, Vec::new(), vec![orphan]).await;
    let root = world.session(ROOT).await;
    let page = click(&world, "/clicks/orphans", &root).await;
    assert!(
        page.body
            .contains("<h3 id=\"by-key\">Keys without a link</h3>")
    );
    assert!(!page.body.contains("<img src=x") && page.body.contains("&#60;img src=x"));
    assert!(!page.body.contains("data-live-total"));
    assert!(page.body.len() <= PAGE_BYTES_MAX);
    let page = click(&world, "/clicks?owner=all", &root).await;
    assert!(page.body.contains("<dt>People</dt><dd>99</dd>"));
    assert!(
        page.body.contains("/api/v1/clicks.csv?from=") && page.body.contains("&#38;owner_id=all")
    );
}

#[tokio::test]
async fn a_server_that_does_not_count_says_so() {
    let world = World::without_reports().await;
    let token = world.session(ADA).await;
    world.link("one").await;
    for path in ["/clicks", "/links/one"] {
        let page = click(&world, path, &token).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(
            page.body.contains("This server does not count clicks."),
            "{path}"
        );
    }
    let list = click(&world, "/links", &token).await;
    assert!(!list.body.contains("Most clicks first"));
    assert_eq!(click(&world, "/tags", &token).await.status, 200);
}
