//! `/links`: lists and filters; the first screen, and the menu.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::harness::{ADA, Answer, BOB, ROOT, World};
use crate::pages_account::Browser;
use crate::pages_forms::click;
use crate::stats::{HOUR, count, link};
use curt_core::{Dimension, UnixMillis};

/// What no page may have more than.
pub(crate) const PAGE_BYTES_MAX: usize = 60_000;

pub(crate) async fn make(world: &World, mut link: Value) {
    link["target"] = link
        .get("target")
        .cloned()
        .unwrap_or_else(|| json!("https://example.com/x"));
    let made = world.call(Method::POST, "/api/v1/links", Some(link)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    world.clock.advance(Duration::from_millis(1));
}

/// The keys that the page lists, in order.
fn listed(page: &Answer) -> Vec<&str> {
    let boxes = page.body.split("name=\"key\" value=\"").skip(1);
    boxes.map(|rest| rest.split('"').next().unwrap()).collect()
}

pub(crate) async fn keys(world: &World, token: &str, query: &str) -> Vec<String> {
    let page = click(world, &format!("/links{query}"), token).await;
    assert_eq!(page.status, 200, "{query}: {}", page.body);
    listed(&page).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn whoever_has_no_links_is_told_what_to_do() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    let page = click(&world, "/links", &token).await;
    assert!(page.body.contains("You have no links yet"));
    assert!(page.body.contains("href=\"/\">Make your first link</a>"));
    assert!(!page.body.contains("<fieldset class=\"bulk\">"));
    let page = click(&world, "/links?search=zzz", &token).await;
    assert!(page.body.contains("No link is like that"));
    let away = world.browse("/links?search=a%20b").await;
    assert_eq!(
        away.header("location"),
        "/sign-in?next=/links%3Fsearch%3Da%2520b"
    );
}

#[tokio::test]
async fn links_are_found_by_text_tag_state_and_day() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    make(
        &world,
        json!({"alias": "apple", "title": "Red Fruit", "tags": ["food", "red"]}),
    )
    .await;
    make(&world, json!({"alias": "pear", "tags": ["food"]})).await;
    make(
        &world,
        json!({"alias": "old", "expires_at": "2026-01-01T01:00:00Z"}),
    )
    .await;
    make(
        &world,
        json!({"alias": "later", "valid_since": "2027-01-01T00:00:00Z"}),
    )
    .await;
    make(&world, json!({"alias": "gone"})).await;
    world.call(Method::DELETE, "/api/v1/links/gone", None).await;
    world.clock.advance(Duration::from_secs(86_400));
    make(&world, json!({"alias": "zebra"})).await;
    for (query, found) in [
        ("", &["zebra", "later", "old", "pear", "apple"][..]),
        ("?order=oldest", &["apple", "pear", "old", "later", "zebra"]),
        ("?order=-key", &["zebra", "pear", "old", "later", "apple"]),
        ("?search=FRUIT", &["apple"]),
        ("?tag=food", &["pear", "apple"]),
        ("?tag=food,+red", &["apple"]),
        ("?state=expired", &["old"]),
        ("?state=scheduled", &["later"]),
        ("?state=deleted", &["gone"]),
        ("?from=2026-01-02", &["zebra"]),
        (
            "?to=2026-01-01&order=key",
            &["apple", "later", "old", "pear"],
        ),
        (
            "?from=&to=&search=&state=&tag=&order=&owner=",
            &["zebra", "later", "old", "pear", "apple"],
        ),
    ] {
        assert_eq!(keys(&world, &token, query).await, found, "{query}");
    }
    let page = click(&world, "/links", &token).await;
    for words in [
        "Expired</span>",
        "Not yet active</span>",
        "Active</span>",
        "Red Fruit",
        ">food</a>",
    ] {
        assert!(page.body.contains(words), "{words}");
    }
    let page = click(&world, "/links?state=gone&from=soon", &token).await;
    assert_eq!(page.status, 422);
    assert!(page.body.contains("Write a day as in 2030-12-31."));
    assert!(page.body.contains("value=\"soon\""), "what was typed stays");
}

#[tokio::test]
async fn pages_follow_each_other_and_most_clicked_come_first() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    for number in 10..70 {
        make(&world, json!({"alias": format!("n{number}")})).await;
    }
    let mut path = "/links?order=key".to_owned();
    let mut met = Vec::new();
    for _ in 0..3 {
        let page = click(&world, &path, &token).await;
        met.extend(listed(&page).into_iter().map(str::to_owned));
        let next = page
            .body
            .split("\" rel=\"next\"")
            .next()
            .filter(|_| page.body.contains("rel=\"next\""));
        let Some(next) = next else { break };
        path = next.rsplit('"').next().unwrap().replace("&#38;", "&");
        assert!(path.starts_with("/links?order=key&cursor="), "{path}");
    }
    let all: Vec<String> = (10..70).map(|number| format!("n{number}")).collect();
    assert_eq!(met, all);
    let at = UnixMillis(world.app.clock.now().0 - HOUR);
    count(&world, &link("n42"), at, Dimension::Class, "human", 7).await;
    let page = click(&world, "/links?order=clicks", &token).await;
    assert_eq!(listed(&page)[0], "n42");
    assert!(page.body.contains("class=\"number\">7<span"));
}

#[tokio::test]
async fn members_see_their_own_and_administrators_everybodys() {
    let world = World::new().await;
    make(&world, json!({"alias": "adas"})).await;
    let bob = world.session(BOB).await;
    assert!(keys(&world, &bob, "").await.is_empty());
    assert_eq!(click(&world, "/links?owner=all", &bob).await.status, 403);
    assert_eq!(
        click(&world, "/links/export?owner=all", &bob).await.status,
        403
    );
    let root = world.session(ROOT).await;
    assert!(keys(&world, &root, "").await.is_empty());
    assert_eq!(keys(&world, &root, "?owner=all").await, ["adas"]);
}

/// A full page of the longest texts, all of which have to be escaped.
#[tokio::test]
async fn a_full_page_is_small_and_hostile_texts_are_text() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    let hostile = "<script>alert(1)</script>\"'&";
    for number in 0..26 {
        let long = "&".repeat(480);
        let tags: Vec<String> = (0..8)
            .map(|at| format!("{at}&\"<i>{}", "x".repeat(20)))
            .collect();
        make(
            &world,
            json!({
                "alias": format!("a-rather-long-alias-of-a-link-{number}"),
                "title": format!("{hostile}{long}"),
                "tags": tags,
                "target": format!("https://example.com/?q={}", "&<>\"'".repeat(100)),
            }),
        )
        .await;
    }
    let page = click(&world, "/links", &token).await;
    assert!(page.body.len() <= PAGE_BYTES_MAX, "{}", page.body.len());
    assert_eq!(listed(&page).len(), 25);
    assert!(!page.body.contains("<script>alert") && !page.body.contains("<i>"));
    assert!(page.body.contains("&#60;script&#62;"));
    let search = format!(
        "/links?search={}",
        "%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
    );
    let page = click(&world, &search, &token).await;
    assert!(!page.body.contains("<script>alert"));
    let policy = page.header("content-security-policy");
    assert!(policy.contains("connect-src 'self'") && !policy.contains("unsafe"));
    assert!(!page.body.contains(" style=") && !page.body.contains(" onclick"));
}

#[tokio::test]
async fn the_first_screen_has_new_links_and_the_last_day() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    let page = click(&world, "/", &token).await;
    assert!(page.body.contains("None yet. Paste a long address above"));
    make(&world, json!({"alias": "fresh", "title": "<b>New</b>"})).await;
    let at = UnixMillis(world.app.clock.now().0 - HOUR);
    let subject = curt_core::ClickSubject::Owner(ADA);
    count(&world, &subject, at, Dimension::Class, "human", 12).await;
    count(&world, &link("fresh"), at, Dimension::Class, "human", 5).await;
    let page = click(&world, "/", &token).await;
    assert!(page.body.contains("href=\"/links/fresh\">sho.rt/fresh</a>"));
    assert!(
        page.body
            .contains("<output aria-live=\"polite\">12</output>")
    );
    assert!(page.body.contains("<strong>5</strong>") && !page.body.contains("<b>New"));
    assert!(page.body.len() <= PAGE_BYTES_MAX);
    assert!(!world.browse("/").await.body.contains("Last 24 hours"));
    let browser = Browser::of(&world, token.clone()).await;
    let made = browser
        .post(
            "/",
            &[("target", "https://example.com/new"), ("alias", "newer")],
        )
        .await;
    assert_eq!(made.status, 201);
    assert!(
        made.body
            .contains("href=\"/links/newer\">Clicks and QR code</a>")
    );
    assert!(made.body.contains("src=\"/links/newer/qr.svg\""));
    // The form goes on when the rest cannot be read.
    world.store.set(true);
    let page = click(&world, "/", &token).await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("name=\"target\"") && !page.body.contains("Your newest links"));
}

fn assert_marked_once(page: &Answer, path: &str) {
    assert_eq!(page.status, 200, "{path}: {}", page.body);
    let marked = page.body.matches("aria-current=\"page\"").count();
    assert_eq!(marked, 1, "{path}: a page is marked once");
}

#[tokio::test]
async fn the_menu_leads_everywhere_and_administrators_further() {
    let world = World::new().await;
    let menu = |page: &Answer| -> Vec<String> {
        let menu = page.body.split("<nav class=\"menu\"").nth(1).unwrap();
        let menu = menu.split("</nav>").next().unwrap();
        menu.split("href=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect()
    };
    let member = ["/", "/links", "/clicks", "/tags", "/account"];
    let token = world.session(ADA).await;
    for path in member {
        let page = click(&world, path, &token).await;
        assert_eq!(page.status, 200, "{path}");
        assert_eq!(menu(&page), member, "{path}");
        let here = format!("<a href=\"{path}\" aria-current=\"page\">");
        assert!(page.body.contains(&here), "{path}");
        assert_marked_once(&page, path);
    }
    let root = world.session(ROOT).await;
    world.link("mine").await;
    // These have tabs, which mark them.
    for (user, path) in [
        (&root, "/clicks"),
        (&root, "/clicks/orphans"),
        (&token, "/clicks?tag=x"),
        (&token, "/links/mine"),
        (&token, "/links/mine/edit"),
    ] {
        assert_marked_once(&click(&world, path, user).await, path);
    }
    let page = click(&world, "/links", &root).await;
    assert_eq!(menu(&page).len(), 6);
    assert!(menu(&page).contains(&"/admin/users".to_owned()));
    assert!(!world.browse("/").await.body.contains("<nav class=\"menu\""));
}
