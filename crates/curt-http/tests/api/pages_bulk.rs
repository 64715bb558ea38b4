//! `/links/bulk`: what is done with the links that were ticked.

use http::Method;
use serde_json::json;

use crate::harness::{ADA, BOB, ROOT, World};
use crate::pages_account::Browser;
use crate::pages_forms::{COOKIE, click, submit};
use crate::pages_links::{keys, make};

/// A form with two links ticked, and what is to become of them.
fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let ticked = [("key", "one"), ("key", "two"), ("back", "order=key")];
    [&ticked[..], more].concat()
}

async fn three_links(world: &World) {
    for alias in ["one", "two", "three"] {
        make(world, json!({"alias": alias})).await;
    }
}

#[tokio::test]
async fn ticked_links_are_tagged_and_ended() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    three_links(&world).await;
    let tagged = browser
        .post(
            "/links/bulk",
            &with(&[("action", "tag"), ("tags", "Spring, mail")]),
        )
        .await;
    assert_eq!(tagged.status, 303, "{}", tagged.body);
    assert_eq!(tagged.header("location"), "/links?order=key&done=tag&n=2");
    let page = click(&world, tagged.header("location"), &browser.token).await;
    assert!(page.body.contains("2 links were tagged."));
    assert_eq!(
        keys(&world, &browser.token, "?tag=spring,mail&order=key").await,
        ["one", "two"]
    );
    browser
        .post(
            "/links/bulk",
            &with(&[("action", "untag"), ("tags", "mail")]),
        )
        .await;
    assert!(keys(&world, &browser.token, "?tag=mail").await.is_empty());
    let ended = browser
        .post(
            "/links/bulk",
            &with(&[("action", "expire"), ("expires", "day")]),
        )
        .await;
    assert_eq!(ended.status, 303);
    let link = world
        .call(Method::GET, "/api/v1/links/one", None)
        .await
        .json();
    assert_eq!(link["expires_at"], "2026-01-02T00:00:00.003Z");
}

#[tokio::test]
async fn ticked_links_are_deleted_after_a_question_and_restored() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    three_links(&world).await;
    let asked = browser
        .post("/links/bulk", &with(&[("action", "delete")]))
        .await;
    assert_eq!(asked.status, 200);
    assert!(asked.body.contains("<h1>Delete these 2 links?</h1>"));
    assert_eq!(
        world.browse("/one").await.status,
        302,
        "a question comes first"
    );
    let confirmed = with(&[("action", "delete"), ("confirmed", "yes")]);
    assert_eq!(browser.post("/links/bulk", &confirmed).await.status, 303);
    assert_eq!(world.browse("/one").await.status, 410);
    let again = browser.post("/links/bulk", &confirmed).await;
    assert_eq!(again.status, 200);
    assert!(
        again.body.contains("Not everything was done") && again.body.contains("<code>one</code>")
    );
    let restored = browser
        .post("/links/bulk", &with(&[("action", "restore")]))
        .await;
    assert_eq!(restored.status, 303);
    assert_eq!(world.browse("/one").await.status, 302);
    let entries = world.accounts.audit.list(None, 10).await.unwrap();
    assert!(
        entries
            .iter()
            .any(|(_, entry)| &*entry.action == "links_deleted"
                && &*entry.subject == "2 deleted: one two")
    );
}

#[tokio::test]
async fn bulk_forms_say_what_is_missing_and_refuse_what_is_not_theirs() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    make(&world, json!({"alias": "one"})).await;
    for (form, words) in [
        (
            &[("action", "tag"), ("tags", "a")][..],
            "Tick the links that you mean",
        ),
        (
            &[("key", "one"), ("action", "tag"), ("tags", " , ")],
            "Type a tag",
        ),
        (
            &[("key", "one"), ("action", "expire"), ("expires", "soon")],
            "Choose from the list",
        ),
        (
            &[("key", "one"), ("action", "burn")],
            "Choose what is to become",
        ),
    ] {
        let page = browser.post("/links/bulk", form).await;
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    let off = browser
        .post("/links/bulk", &[("key", "one"), ("action", "disable")])
        .await;
    assert_eq!(off.status, 403);
    let bob = Browser::of(&world, world.session(BOB).await).await;
    let refused = bob
        .post(
            "/links/bulk",
            &[("key", "one"), ("action", "tag"), ("tags", "mine")],
        )
        .await;
    assert!(refused.body.contains("Not everything was done"));
    let file = bob
        .post("/links/bulk", &[("key", "one"), ("action", "export")])
        .await;
    assert_eq!(file.body.lines().count(), 1, "the head alone");
    let file = browser
        .post("/links/bulk", &[("key", "one"), ("action", "export")])
        .await;
    assert!(
        file.body
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("one,https://sho.rt/one,")
    );
    let all = click(&world, "/links/export?search=one", &browser.token).await;
    assert_eq!(all.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(all.body.lines().count(), 2);
    let root = Browser::of(&world, world.session(ROOT).await).await;
    let off = root
        .post("/links/bulk", &[("key", "one"), ("action", "disable")])
        .await;
    assert_eq!(off.status, 303);
    assert_eq!(world.browse("/one").await.status, 410);
}

/// Without the token of a page of ours, and from a page of another site, nothing happens.
#[tokio::test]
async fn forms_of_other_sites_change_nothing() {
    let world = World::new().await;
    let token = world.session(ADA).await;
    make(&world, json!({"alias": "one"})).await;
    let cookie = format!("{}={token}", COOKIE);
    for path in [
        "/links/bulk",
        "/links/one/edit",
        "/links/one/delete",
        "/links/one/permissions",
        "/tags/rename",
    ] {
        let form = [
            ("key", "one"),
            ("action", "delete"),
            ("confirmed", "yes"),
            ("tag", "a"),
            ("name", "b"),
        ];
        for origin in ["https://sho.rt", "https://evil.example"] {
            let headers = [("origin", origin), ("cookie", cookie.as_str())];
            let answer = submit(&world, path, &form, &headers).await;
            assert_eq!(answer.status, 403, "{path} {origin}");
        }
    }
    assert_eq!(world.browse("/one").await.status, 302);
}
