//! The pages, as a browser without scripts sees them.

use std::collections::BTreeSet;

use axum::body::Body;
use http::Request;

use crate::harness::{Answer, World};
use crate::pages_links::PAGE_BYTES_MAX;

async fn submit(world: &World, fields: &[(&str, &str)]) -> Answer {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let request = Request::post("/")
        .header("accept", "text/html")
        .header("host", "sho.rt")
        .header("origin", "https://sho.rt")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(body));
    world.send(request.unwrap()).await
}

#[tokio::test]
async fn the_form_makes_a_link() {
    let world = World::new().await;
    let blank = world.browse("/").await;
    assert_eq!(blank.status, 200);
    assert!(blank.body.contains("name=\"api_key\" type=\"password\""));
    let once = blank.body.split("name=\"once\" value=\"").nth(1).unwrap();
    let once = &once[..32];
    let fields = [
        ("target", "example.com/a?b=<c>"),
        ("alias", "mine"),
        ("expires", "day"),
        ("api_key", world.key.as_str()),
        ("once", once),
    ];
    let made = submit(&world, &fields).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert!(made.body.contains("value=\"https://sho.rt/mine\""));
    assert!(
        made.body.contains(
            "until <time datetime=\"2026-01-02T00:00:00.000Z\">2026-01-02 00:00 UTC</time>"
        )
    );
    assert!(made.body.contains("https://example.com/a?b=%3Cc%3E"));
    assert!(!made.body.contains(&world.key), "it was used");
    assert_eq!(made.header("cache-control"), "no-store");
    // A reload sends the same form: no second link, and no "alias taken".
    let reloaded = submit(&world, &fields).await;
    assert_eq!(reloaded.status, 201);
    // Going back and changing the address is a new request.
    let changed = submit(
        &world,
        &[
            fields[0],
            ("alias", "other"),
            fields[2],
            fields[3],
            fields[4],
        ],
    )
    .await;
    assert_eq!(changed.status, 201);
    assert_eq!(world.browse("/other").await.status, 302);
}

#[tokio::test]
async fn mistakes_are_shown_beside_the_fields_and_nothing_typed_is_lost() {
    let world = World::new().await;
    world.link("taken").await;
    let key = world.key.as_str();
    let good = "https://a.example/";
    for (target, alias, expires, api_key, status, id) in [
        ("javascript:alert(\"x\")", "", "", key, 422, "target-error"),
        ("", "", "", key, 422, "target-error"),
        (good, "taken", "", key, 409, "alias-error"),
        (good, "a b", "", key, 422, "alias-error"),
        (good, "api", "", key, 422, "alias-error"),
        (good, "x", "", "", 401, "api_key-error"),
        (good, "x", "", "wrong", 401, "api_key-error"),
        (good, "", "soon", key, 422, "expires-error"),
    ] {
        let fields = [
            ("target", target),
            ("alias", alias),
            ("expires", expires),
            ("api_key", api_key),
        ];
        let page = submit(&world, &fields).await;
        assert_eq!(page.status.as_u16(), status, "{fields:?}");
        assert_eq!(
            page.body.matches("class=\"error\"").count(),
            1,
            "{fields:?}"
        );
        assert!(page.body.contains(&format!("id=\"{id}\"")), "{fields:?}");
        let describes = [
            format!("aria-describedby=\"{id}\""),
            format!("api_key-hint {id}\""),
        ];
        assert!(
            describes.iter().any(|text| page.body.contains(text)),
            "{fields:?}"
        );
        assert_eq!(focused(&page), id.strip_suffix("-error"), "{fields:?}");
        assert!(
            page.body.contains("<title>Error: Shorten a link"),
            "{fields:?}"
        );
        let typed = fields[0].1.replace('"', "&#34;");
        assert!(
            page.body.contains(&format!("value=\"{typed}\"")),
            "{}",
            page.body
        );
    }
    world.store.set(true);
    let page = submit(
        &world,
        &[("target", "https://a.example/"), ("api_key", key)],
    )
    .await;
    assert_eq!(page.status, 503);
    assert!(page.body.contains("role=\"alert\"") && !page.header("retry-after").is_empty());
}

/// The id of the one element that a browser begins with.
fn focused(page: &Answer) -> Option<&str> {
    assert!(
        page.body.matches(" autofocus").count() <= 1,
        "{}",
        page.body
    );
    let (before, _) = page.body.split_once(" autofocus")?;
    let element = &before[before.rfind('<')?..];
    element.split("id=\"").nth(1)?.split('"').next()
}

#[tokio::test]
async fn all_mistakes_are_told_at_once_and_the_first_one_has_the_focus() {
    let world = World::new().await;
    for api_key in ["", "wrong"] {
        let fields = [
            ("target", "foo"),
            ("alias", "a b"),
            ("expires", "soon"),
            ("visibility", "private"),
            ("password", "sesame"),
            ("api_key", api_key),
        ];
        let page = submit(&world, &fields).await;
        assert_eq!(page.status, 401);
        for field in ["target", "alias", "expires", "password", "api_key"] {
            let error = format!("id=\"{field}-error\"");
            assert!(page.body.contains(&error), "{field}: {}", page.body);
        }
        assert_eq!(focused(&page), Some("target"));
        assert!(
            page.body.contains("<a href=\"/sign-in\">sign in</a>"),
            "a way out"
        );
        assert!(!page.body.contains("sesame"));
    }
    // What a good key's owner typed wrong is told at once, too.
    let fields = [
        ("target", "foo"),
        ("expires", "soon"),
        ("api_key", world.key.as_str()),
    ];
    let page = submit(&world, &fields).await;
    assert_eq!(page.status, 422);
    for error in ["target-error", "expires-error"] {
        assert!(page.body.contains(&format!("id=\"{error}\"")), "{error}");
    }
    assert_eq!(focused(&world.browse("/").await), Some("target"));
}

/// The list of blocked targets is nobody's to try out.
#[tokio::test]
async fn without_a_key_nobody_learns_which_targets_are_blocked() {
    let world = World::new().await;
    let list = curt_links::Blocklist::parse(b"evil.example").unwrap();
    world.app.policy.block(list);
    for (api_key, is_told) in [("", false), (world.key.as_str(), true)] {
        let fields = [("target", "https://evil.example/"), ("api_key", api_key)];
        let page = submit(&world, &fields).await;
        assert_eq!(page.body.contains("id=\"target-error\""), is_told);
    }
}

/// H6: whatever is typed is text.
#[tokio::test]
async fn markup_is_escaped() {
    let world = World::new().await;
    let attack = "\"><script>alert(1)</script>";
    let fields = [
        ("target", attack),
        ("alias", attack),
        ("api_key", attack),
        ("expires", attack),
    ];
    let page = submit(&world, &fields).await;
    assert!(!page.body.contains("<script>alert"), "{}", page.body);
    let page = world.browse("/%22%3E%3Cscript%3Ealert(1)").await;
    assert!(!page.body.contains("<script>alert"));
}

#[tokio::test]
async fn without_keys_the_form_asks_for_none_and_refuses_other_sites() {
    let world = World::anonymous().await;
    assert!(!world.browse("/").await.body.contains("api_key"));
    let made = submit(&world, &[("target", "https://a.example/")]).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let request = Request::post("/")
        .header("accept", "text/html")
        .header("host", "sho.rt")
        .header("origin", "https://evil.example")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from("target=https://a.example/"));
    let page = world.send(request.unwrap()).await;
    assert_eq!(page.status, 403);
}

#[tokio::test]
async fn assets_are_kept_for_ever_under_names_that_change() {
    let world = World::new().await;
    let page = world.browse("/").await.body;
    let mut found = 0;
    for part in page.split("\"/assets/").skip(1) {
        found += 1;
        let path = format!("/assets/{}", part.split('"').next().unwrap());
        let asset = world.browse(&path).await;
        assert_eq!(asset.status, 200, "{path}");
        assert_eq!(
            asset.header("cache-control"),
            "public, max-age=31536000, immutable"
        );
        let request = Request::get(&path).header("if-none-match", asset.header("etag"));
        let again = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!((again.status.as_u16(), again.body.as_str()), (304, ""));
    }
    assert_eq!(found, 3);
    let policy = world.browse("/").await;
    let policy = policy.header("content-security-policy");
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"));
}

#[tokio::test]
async fn the_api_pages_show_every_operation_and_object() {
    let world = World::new().await;
    let list = world.browse("/api").await;
    assert_eq!(list.status, 200);
    assert!(list.body.len() <= PAGE_BYTES_MAX, "{}", list.body.len());
    let document = world.browse("/api/openapi.json").await.json();
    let mut missing: BTreeSet<&String> = document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            let address = format!("/api/operations/{id}");
            assert!(list.body.contains(&format!("href=\"{address}\"")), "{id}");
            let page = world.browse(&address).await;
            assert_eq!(page.status, 200, "{address}");
            assert!(
                page.body.len() <= PAGE_BYTES_MAX,
                "{id}: {}",
                page.body.len()
            );
            assert!(page.body.contains(path), "{address}");
            assert!(!page.body.contains("{base}"), "{address}");
            for part in page.body.split("href=\"#").skip(1) {
                let (anchor, _) = part.split_once('"').unwrap();
                let target = format!("id=\"{anchor}\"");
                assert!(page.body.contains(&target), "{address}: {anchor}");
            }
            missing.retain(|name| !page.body.contains(&format!("id=\"object-{name}\"")));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    let page = world.browse("/api/operations/createLink").await;
    assert!(
        page.body
            .contains("curl -X POST https://sho.rt/api/v1/links")
    );
}
