//! `/{key}+`: where a link leads, for those who would rather know first.

use curt_http::HttpSettings;
use http::Method;
use serde_json::json;

use crate::harness::World;

async fn with_preview() -> World {
    let mut settings = HttpSettings::default();
    settings.pages = settings.pages.with_preview(true);
    World::with(settings).await
}

async fn make(world: &World, body: serde_json::Value) {
    let made = world.call(Method::POST, "/api/v1/links", Some(body)).await;
    assert_eq!(made.status, 201, "{}", made.body);
}

#[tokio::test]
async fn the_page_is_there_by_setting_alone() {
    for (world, status) in [(World::new().await, 404), (with_preview().await, 200)] {
        world.link("mine").await;
        assert_eq!(world.browse("/mine+").await.status, status);
        assert_eq!(world.browse("/mine").await.status, 302);
        assert_eq!(world.browse("/nope+").await.status, 404);
    }
}

#[tokio::test]
async fn target_and_title_are_shown_and_nothing_of_them_runs() {
    let world = with_preview().await;
    let target = "https://evil.example/%3Cscript%3Ealert(1)%3C/script%3E?a=%22%3E&b='x'";
    make(
        &world,
        json!({"target": target, "alias": "mine", "title": "<img src=x onerror=alert(1)>"}),
    )
    .await;
    let page = world.browse("/mine+").await;
    assert_eq!(page.status, 200);
    assert!(
        page.body.contains("<strong>evil.example</strong>"),
        "{}",
        page.body
    );
    assert!(page.body.contains("&#60;img src=x onerror=alert(1)&#62;"));
    assert!(!page.body.contains("<img") && !page.body.contains("href=\"https://evil"));
    assert!(page.body.contains("<a class=\"button\" href=\"/mine\""));
    assert!(
        page.header("content-security-policy")
            .starts_with("default-src 'none'")
    );
    assert_eq!(page.header("cache-control"), "no-store");
    assert_eq!(page.header("location"), "");
    let encoded = world.browse("/mine%2B").await;
    assert_eq!(encoded.status, 200, "as some programs write it");
}

#[tokio::test]
async fn links_that_keep_something_back_have_no_preview() {
    let world = with_preview().await;
    make(
        &world,
        json!({"target": "https://secret.example/", "alias": "private", "visibility": "private"}),
    )
    .await;
    make(
        &world,
        json!({"target": "https://secret.example/", "alias": "locked", "visibility": "password", "password": "open sesame"}),
    )
    .await;
    make(
        &world,
        json!({"target": "https://secret.example/", "alias": "once", "max_clicks": 1}),
    )
    .await;
    make(&world, json!({"target": "https://secret.example/", "alias": "later", "valid_since": "2030-01-01T00:00:00Z"})).await;
    for (path, status) in [
        ("/private+", 404),
        ("/locked+", 404),
        ("/once+", 404),
        ("/later+", 404),
    ] {
        let page = world.browse(path).await;
        assert_eq!(page.status, status, "{path}");
        assert!(!page.body.contains("secret.example"), "{path}");
    }
    world.link("gone").await;
    let deleted = world.call(Method::DELETE, "/api/v1/links/gone", None).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(world.browse("/gone+").await.status, 410);
    // Only reading shows it.
    world.link("mine").await;
    assert_eq!(world.call(Method::POST, "/mine+", None).await.status, 404);
}

#[tokio::test]
async fn whoever_tries_keys_is_stopped_as_when_following_them() {
    let world = with_preview().await;
    world.link("mine").await;
    let mut refused = 0;
    for number in 0..40 {
        let answer = world.browse(&format!("/none{number}+")).await;
        refused += usize::from(answer.status == 429);
    }
    assert!(refused > 0);
    assert_eq!(
        world.browse("/mine+").await.status,
        429,
        "nothing is learnt about keys"
    );
    let page = world.browse("/mine+").await;
    assert!(
        page.body
            .contains("<a class=\"button\" href=\"/mine+\">Try again</a>"),
        "{}",
        page.body
    );
}
