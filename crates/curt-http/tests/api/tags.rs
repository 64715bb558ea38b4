//! Tags: listed, renamed, merged, removed, by the API and on the page.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{ADA, BOB, NOW, World};
use crate::pages_account::{Browser, yes_in};
use crate::pages_forms::click;
use crate::stats::{HOUR, count};
use curt_core::{ClickSubject, Dimension, UnixMillis};

async fn tagged(world: &World, alias: &str, tags: Value) {
    let body = json!({"target": "https://example.com/x", "alias": alias, "tags": tags});
    let made = world.call(Method::POST, "/api/v1/links", Some(body)).await;
    assert_eq!(made.status, 201, "{}", made.body);
}

async fn tags(world: &World) -> Value {
    let listed = world.call(Method::GET, "/api/v1/tags", None).await;
    assert_eq!(listed.status, 200, "{}", listed.body);
    listed.json()
}

#[tokio::test]
async fn tags_are_counted_renamed_merged_and_removed() {
    let world = World::new().await;
    tagged(&world, "one", json!(["spring", "mail"])).await;
    tagged(&world, "two", json!(["spring", "summer"])).await;
    tagged(&world, "three", json!(["summer"])).await;
    let listed = tags(&world).await;
    assert_eq!(listed["is_complete"], true);
    assert_eq!(listed["links_read"], 3);
    assert_eq!(
        listed["tags"],
        json!([{"tag": "mail", "links": 1}, {"tag": "spring", "links": 2}, {"tag": "summer", "links": 2}])
    );
    let path = "/api/v1/tags/spring";
    let merged = world
        .call(Method::PATCH, path, Some(json!({"name": "Summer"})))
        .await;
    assert_eq!(merged.json(), json!({"changed": 2, "is_complete": true}));
    assert_eq!(
        tags(&world).await["tags"],
        json!([{"tag": "mail", "links": 1}, {"tag": "summer", "links": 3}])
    );
    let link = world
        .call(Method::GET, "/api/v1/links/two", None)
        .await
        .json();
    assert_eq!(link["tags"], json!(["summer"]), "one of two equal ones");
    let same = world
        .call(
            Method::PATCH,
            "/api/v1/tags/summer",
            Some(json!({"name": "SUMMER"})),
        )
        .await;
    assert_eq!(same.json(), json!({"changed": 0, "is_complete": true}));
    let wrong = world
        .call(Method::PATCH, path, Some(json!({"name": "a,b"})))
        .await;
    assert_eq!(wrong.refused(), "tags/tag_symbols");
    let removed = world
        .call(Method::DELETE, "/api/v1/tags/summer", None)
        .await;
    assert_eq!(removed.json()["changed"], 3);
    assert_eq!(
        tags(&world).await["tags"],
        json!([{"tag": "mail", "links": 1}])
    );
}

#[tokio::test]
async fn a_tag_of_many_links_is_replaced_in_steps() {
    let world = World::new().await;
    let links: Vec<_> = (0..1_000)
        .map(|at| json!({"target": "https://example.com/x", "alias": format!("n{at}"), "tags": ["old"]}))
        .collect();
    for part in [&links[..], &links[..205]] {
        let part: Vec<Value> = part
            .iter()
            .map(|link| {
                let mut link = link.clone();
                if part.len() < 1_000 {
                    link["alias"] = json!(format!("m{}", link["alias"].as_str().unwrap()));
                }
                link
            })
            .collect();
        let made = world
            .call(
                Method::POST,
                "/api/v1/links/bulk",
                Some(json!({"links": part})),
            )
            .await;
        assert_eq!(made.json()["failed"], 0);
    }
    let path = "/api/v1/tags/old";
    let rename = async || {
        world
            .call(Method::PATCH, path, Some(json!({"name": "new"})))
            .await
            .json()
    };
    assert_eq!(
        rename().await,
        json!({"changed": 1_000, "is_complete": false})
    );
    assert_eq!(rename().await, json!({"changed": 205, "is_complete": true}));
    assert_eq!(
        tags(&world).await["tags"],
        json!([{"tag": "new", "links": 1_205}])
    );
}

#[tokio::test]
async fn the_page_shows_tags_with_their_clicks_and_changes_them() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    let empty = click(&world, "/tags", &browser.token).await;
    assert!(empty.body.contains("None of your links has a tag"));
    tagged(&world, "one", json!(["<b>&\"'"])).await;
    tagged(&world, "two", json!(["mail"])).await;
    let at = UnixMillis(NOW.0 - HOUR);
    let subject = ClickSubject::tag(ADA, "mail");
    count(&world, &subject, at, Dimension::Class, "human", 1_234).await;
    let page = click(&world, "/tags", &browser.token).await;
    assert_eq!(page.status, 200);
    assert!(!page.body.contains("<b>&") && page.body.contains("&#60;b&#62;"));
    assert!(
        page.body.contains("href=\"/links?tag=%3Cb%3E%26%22%27\""),
        "{}",
        page.body
    );
    assert!(page.body.contains(">1,234</a>"));

    let renamed = browser
        .post("/tags/rename", &[("tag", "mail"), ("name", "post")])
        .await;
    assert_eq!(renamed.header("location"), "/tags?done=renamed&n=1");
    let page = click(&world, "/tags?done=renamed&n=1", &browser.token).await;
    assert!(page.body.contains("The tag has its new name on 1 link."));
    assert!(page.body.contains(">post</a>") && !page.body.contains(">mail</a>"));
    let refused = browser
        .post("/tags/rename", &[("tag", "post"), ("name", "a,b")])
        .await;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("id=\"name-error\"") && refused.body.contains("value=\"a,b\""));

    let asked = browser.post("/tags/remove", &[("tag", "post")]).await;
    assert!(
        asked
            .body
            .contains("Take the tag “post” off all your links?")
    );
    let removed = browser.post("/tags/remove", &yes_in(&asked)).await;
    assert_eq!(removed.header("location"), "/tags?done=removed&n=1");
    // Another's tags are not these.
    let bob = world.session(BOB).await;
    let others = click(&world, "/tags", &bob).await;
    assert!(others.body.contains("None of your links has a tag"));
}
