//! What is around every page: who is signed in, what is offered, how the installation looks; and what visitors of links that
//! do not lead on are told.

use std::time::Duration;

use curt_http::{HttpSettings, PageSettings, PrivateDenied};
use http::Method;
use serde_json::{Value, json};

use crate::harness::{ADA, Answer, BOB, World};
use crate::pages_forms::{click, submit};

const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

async fn make(world: &World, mut link: Value) {
    link["target"] = json!("https://example.com/x");
    let made = world.call(Method::POST, "/api/v1/links", Some(link)).await;
    assert_eq!(made.status, 201, "{}", made.body);
}

fn title(page: &Answer) -> &str {
    let (_, rest) = page.body.split_once("<h1>").unwrap();
    rest.split_once("</h1>").unwrap().0
}

/// Asks once as a browser and once as a program.
async fn told(world: &World, path: &str) -> (u16, String, String) {
    let page = world.browse(path).await;
    let request = http::Request::get(path).body(axum::body::Body::empty());
    let document = world.send(request.unwrap()).await;
    assert_eq!(page.status, document.status, "{path}");
    let code = document.problem();
    assert_eq!(document.json()["title"], title(&page), "{path}");
    (page.status.as_u16(), code, title(&page).to_owned())
}

#[tokio::test]
async fn a_link_that_leads_nowhere_says_why() {
    let world = World::new().await;
    make(
        &world,
        json!({"alias": "old", "expires_at": "2026-01-01T01:00:00Z"}),
    )
    .await;
    make(
        &world,
        json!({"alias": "young", "valid_since": "2027-01-01T00:00:00Z"}),
    )
    .await;
    make(&world, json!({"alias": "once", "max_clicks": 1})).await;
    for alias in ["off", "deleted"] {
        world.link(alias).await;
    }
    world.clock.advance(Duration::from_secs(3_600));
    world.app.links.disable("off").await.unwrap();
    world
        .call(Method::DELETE, "/api/v1/links/deleted", None)
        .await;
    let request = http::Request::get("/once")
        .header("user-agent", BROWSER)
        .header("accept", "text/html");
    let spent = world.send(request.body(axum::body::Body::empty()).unwrap());
    assert_eq!(spent.await.status, 302);
    for (path, status, code, words) in [
        ("/old", 410, "link-expired", "The link has expired"),
        (
            "/young",
            404,
            "link-scheduled",
            "The link does not work yet",
        ),
        ("/once", 410, "link-exhausted", "The link has been used up"),
        ("/off", 410, "link-disabled", "The link is switched off"),
        ("/deleted", 410, "link-gone", "The link has been removed"),
        ("/never", 404, "link-not-found", "There is no such link"),
    ] {
        let expected = (status, code.to_owned(), words.to_owned());
        assert_eq!(told(&world, path).await, expected, "{path}");
        assert_eq!(told(&world, path).await, expected, "{path}, from memory");
    }
}

/// `private_denied = 404` hides more than the target.
#[tokio::test]
async fn a_hidden_link_does_not_say_why_it_leads_nowhere() {
    let mut settings = HttpSettings::default();
    settings.redirect.private_denied = PrivateDenied::Hidden;
    let world = World::with(settings).await;
    for (alias, times) in [
        ("old", json!({"expires_at": "2026-01-01T01:00:00Z"})),
        ("young", json!({"valid_since": "2027-01-01T00:00:00Z"})),
    ] {
        let mut link = times;
        link["alias"] = json!(alias);
        link["visibility"] = json!("private");
        make(&world, link).await;
    }
    world.clock.advance(Duration::from_secs(3_600));
    let token = world.session(BOB).await;
    let expected = click(&world, "/never", &token).await;
    assert!(
        expected
            .body
            .contains("<a href=\"/account\">Your account</a>")
    );
    assert!(!expected.body.contains("Ann Example"), "looking would tell");
    for path in ["/old", "/young"] {
        assert_eq!(told(&world, path).await.1, "link-not-found");
        let page = click(&world, path, &token).await;
        assert_eq!(page.body, expected.body, "{path}");
    }
}

#[tokio::test]
async fn every_page_says_who_is_signed_in_or_how_to() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    for path in [
        "/",
        "/api",
        "/problems",
        "/problems/link-gone",
        "/sign-in",
        "/nope",
        "/a/b",
    ] {
        let page = world.browse(path).await;
        assert!(page.body.contains("href=\"/sign-in\""), "{path}");
        assert!(!page.body.contains("/sign-out"), "{path}");
        let page = click(&world, path, &token).await;
        assert!(page.body.contains(">Ann Example</a>"), "{path}");
        assert!(page.body.contains("action=\"/sign-out\""), "{path}");
        assert!(!page.body.contains("href=\"/sign-in\""), "{path}");
        assert_eq!(page.header("cache-control"), "no-store", "{path}");
    }
    // Without the accounts pages go on, and do not pretend to know.
    let page = click(&world, "/api", "curts_0123456789abcdef_x").await;
    assert!(page.body.contains("href=\"/sign-in\""));
}

#[tokio::test]
async fn only_those_who_may_shorten_are_offered_it() {
    let world = World::new().await;
    let offer = "Shorten a link</a>";
    assert!(!world.browse("/nope").await.body.contains(offer));
    assert!(!world.browse("/nope").await.body.contains(">Shorten</a>"));
    let token = world.session(ADA).await;
    assert!(click(&world, "/nope", &token).await.body.contains(offer));
    let open = World::anonymous().await;
    assert!(open.browse("/nope").await.body.contains(offer));
}

#[tokio::test]
async fn a_private_link_asks_for_an_account_that_may_follow_it() {
    let world = World::new().await;
    make(&world, json!({"alias": "mine", "visibility": "private"})).await;
    let asked = world.browse("/mine?x=1").await;
    let page = world.browse(asked.header("location")).await;
    assert!(page.body.contains("This link is private."));
    assert!(!world.browse("/sign-in").await.body.contains("private"));
    let token = world.session(BOB).await;
    let refused = click(&world, "/mine?x=1", &token).await;
    assert_eq!(refused.status, 403);
    let other = "href=\"/sign-in?next=%2Fmine%3Fx%3D1\">Change account</a>";
    assert!(refused.body.contains(other), "{}", refused.body);
    let page = click(&world, "/sign-in?next=%2Fmine", &token).await;
    assert!(page.body.contains("You are signed in as") && page.body.contains(">Ann Example</a>"));
    assert!(page.body.contains("name=\"next\" value=\"/mine\""));
}

#[tokio::test]
async fn after_too_many_wrong_passwords_the_form_is_still_there() {
    let world = World::new().await;
    make(
        &world,
        json!({"alias": "it", "visibility": "password", "password": "sesame"}),
    )
    .await;
    let mut last = submit(&world, "/it?x=1", &[("password", "wrong")], &[]).await;
    assert_eq!(last.status, 401);
    for _ in 0..60 {
        if last.status != 401 {
            break;
        }
        assert!(last.body.contains("<title>Error: Password needed"));
        last = submit(&world, "/it?x=1", &[("password", "wrong")], &[]).await;
    }
    assert_eq!(last.status, 429);
    assert!(last.body.contains("action=\"/it?x=1\""), "{}", last.body);
    assert!(last.body.contains("role=\"alert\""));
    let seconds: u64 = last.header("retry-after").parse().unwrap();
    world.clock.advance(Duration::from_secs(seconds));
    let opened = submit(&world, "/it?x=1", &[("password", "sesame")], &[]).await;
    assert_eq!(opened.status, 303);
}

async fn branded(pages: PageSettings) -> World {
    World::with(HttpSettings {
        pages,
        ..HttpSettings::default()
    })
    .await
}

#[tokio::test]
async fn an_installation_has_its_own_name_and_colour() {
    let pages = PageSettings::default().name("Ada & Co").unwrap();
    let world = branded(pages.accent("#0a5fb4").unwrap()).await;
    for path in ["/", "/nope", "/api", "/sign-in"] {
        let page = world.browse(path).await;
        assert!(page.body.contains(" · Ada &#38; Co</title>"), "{path}");
        assert!(page.body.contains(">Ada &#38; Co<span"), "{path}");
        let policy = page.header("content-security-policy");
        assert!(policy.contains("style-src 'self'") && !policy.contains("unsafe"));
        let sheet = page.body.split("/assets/theme-").nth(1).expect(path);
        let sheet = format!("/assets/theme-{}", sheet.split('"').next().unwrap());
        let style = world.browse(&sheet).await;
        assert_eq!(style.header("content-type"), "text/css; charset=utf-8");
        assert!(style.body.contains("--accent:#0a5fb4"));
    }
    assert!(world.browse("/favicon.ico").await.body.contains("#0a5fb4"));
    let plain = World::new().await.browse("/").await;
    assert!(!plain.body.contains("theme-") && plain.body.contains(" · curt</title>"));
}

#[tokio::test]
async fn browsers_are_sent_to_the_configured_address_instead_of_a_404() {
    let elsewhere = "https://example.org/help?from=links";
    let pages = PageSettings::default().not_found_url(elsewhere).unwrap();
    let world = branded(pages).await;
    for path in ["/nope", "/nope/", "/a/b", "/%ff"] {
        let sent = world.browse(path).await;
        assert_eq!(
            (sent.status.as_u16(), sent.header("location")),
            (302, elsewhere),
            "{path}"
        );
        assert_eq!(sent.header("cache-control"), "no-store");
        let request = http::Request::get(path).body(axum::body::Body::empty());
        assert_eq!(world.send(request.unwrap()).await.status, 404, "{path}");
    }
    for path in ["/setup", "/problems/nope", "/assets/nope", "/api/v1/nope"] {
        assert_eq!(world.browse(path).await.status, 404, "{path}");
    }
    // What is gone says so.
    world.link("mine").await;
    world.call(Method::DELETE, "/api/v1/links/mine", None).await;
    assert_eq!(world.browse("/mine").await.status, 410);
}
