//! Answers in gzip: which, for whom, and that they say the same.

use std::io::Read;

use axum::body::Body;
use curt_http::HttpSettings;
use flate2::read::GzDecoder;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use serde_json::json;

use crate::harness::{ADA, NOW, World};
use crate::stats::{apply, click, id};
use curt_core::ClickOutcome;

const GZIP: (&str, &str) = ("accept-encoding", "gzip, deflate, br");
const HTML: (&str, &str) = ("accept", "text/html");

struct Sent {
    head: Response<()>,
    body: Vec<u8>,
}

impl Sent {
    fn header(&self, name: &str) -> &str {
        let value = self.head.headers().get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    fn is_gzip(&self) -> bool {
        self.header("content-encoding") == "gzip"
    }

    fn text(&self) -> String {
        let mut text = String::new();
        match self.is_gzip() {
            true => GzDecoder::new(&*self.body).read_to_string(&mut text),
            false => (&*self.body).read_to_string(&mut text),
        }
        .unwrap();
        text
    }
}

async fn ask(world: &World, method: &Method, path: &str, headers: &[(&str, &str)]) -> Sent {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    let response = tower::ServiceExt::oneshot(world.router.clone(), request).await;
    let (parts, body) = response.unwrap().into_parts();
    Sent {
        head: Response::from_parts(parts, ()),
        body: body.collect().await.unwrap().to_bytes().to_vec(),
    }
}

async fn get(world: &World, path: &str, headers: &[(&str, &str)]) -> Sent {
    ask(world, &Method::GET, path, headers).await
}

/// A world with so many links of Ada's.
async fn world(links: usize) -> World {
    let world = World::new().await;
    let links: Vec<_> = (0..links)
        .map(|number| json!({"target": format!("https://example.com/products/{number:x}?id={}", number * 7_919)}))
        .collect();
    for links in links.chunks(1_000) {
        let body = json!({ "links": links });
        let made = world
            .call(Method::POST, "/api/v1/links/bulk", Some(body))
            .await;
        assert_eq!(made.status, 200, "{}", made.body);
    }
    world
}

fn style_address(page: &str) -> String {
    let mut links = page.split("rel=\"stylesheet\" href=\"");
    links.nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn long_answers_are_compressed_for_whoever_takes_it_and_say_the_same() {
    let world = world(100).await;
    let key = ("x-api-key", world.key.as_str());
    let style = style_address(&world.browse("/").await.body);
    for (path, credentials) in [
        ("/api/v1/links?limit=100", &[key][..]),
        ("/api/openapi.json", &[]),
        ("/api", &[HTML]),
        ("/sign-in", &[HTML]),
        ("/problems", &[HTML]),
        (&style, &[]),
    ] {
        let plain = get(&world, path, credentials).await;
        let packed = get(&world, path, &[credentials, &[GZIP]].concat()).await;
        assert!(!plain.is_gzip() && packed.is_gzip(), "{path}");
        assert_eq!(plain.text(), packed.text(), "{path}");
        assert!(packed.body.len() * 4 < plain.body.len() * 3, "{path}");
        assert_eq!(
            packed.header("content-length"),
            packed.body.len().to_string(),
            "{path}"
        );
        for answer in [&plain, &packed] {
            assert!(answer.header("vary").contains("accept-encoding"), "{path}");
        }
        for refusing in ["gzip;q=0", "br", "identity, gzip;q=0.5"] {
            let headers = [credentials, &[("accept-encoding", refusing)]].concat();
            let refused = get(&world, path, &headers).await;
            assert_eq!(refused.body, plain.body, "{path}: {refusing}");
        }
    }
}

#[tokio::test]
async fn head_tells_what_get_would_send_compressed_or_not() {
    let world = world(100).await;
    let style = style_address(&world.browse("/").await.body);
    for path in [
        "/api/v1/links?limit=100",
        "/api/openapi.json",
        "/api",
        "/nope",
        "/api/v1/clicks.csv",
        &style,
    ] {
        for encoding in ["gzip", "identity"] {
            let headers = [
                ("x-api-key", world.key.as_str()),
                ("accept-encoding", encoding),
                ("x-request-id", "same"),
                HTML,
            ];
            let get = ask(&world, &Method::GET, path, &headers).await;
            let head = ask(&world, &Method::HEAD, path, &headers).await;
            assert!(head.body.is_empty(), "{path}");
            assert_eq!(get.head.headers(), head.head.headers(), "{path} {encoding}");
        }
    }
}

#[tokio::test]
async fn short_answers_redirects_single_links_and_feeds_are_sent_as_they_are() {
    let world = world(1).await;
    world.link("mine").await;
    let long =
        json!({"target": format!("https://example.com/{}", "a".repeat(1_500)), "alias": "long"});
    let made = world.call(Method::POST, "/api/v1/links", Some(long)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let headers = [("x-api-key", world.key.as_str()), GZIP];
    for (path, status) in [
        ("/mine", 302),
        ("/api/v1", 200),
        ("/api/v1/links?limit=1", 200),
        ("/api/v1/links/nope", 404),
        // An edit compares its tag byte for byte.
        ("/api/v1/links/long", 200),
        ("/api/v1/live?seconds=0", 200),
        ("/favicon.ico", 200),
    ] {
        let answer = get(&world, path, &headers).await;
        assert_eq!(answer.head.status(), status, "{path}");
        assert!(!answer.is_gzip(), "{path}");
    }
    let tag = get(&world, "/api/v1/links/long", &headers).await;
    assert_eq!(tag.header("etag"), "\"1.1\"");
    assert!(tag.body.len() > 1_024);
}

/// BREACH: a page that holds the token of a session's forms must not tell by its length what is in it.
#[tokio::test]
async fn what_a_signed_in_browser_gets_is_compressed_only_where_nobody_can_put_guesses_into_it() {
    let world = world(100).await;
    let cookie = format!("__Host-curt_session={}", world.session(ADA).await);
    let signed_in = [("cookie", cookie.as_str()), GZIP, HTML];
    for path in [
        "/",
        "/account",
        "/nope",
        "/api/v1/links?limit=100",
        "/problems",
    ] {
        let answer = get(&world, path, &signed_in).await;
        assert!(answer.body.len() > 1_024, "{path}");
        assert!(!answer.is_gzip(), "{path}");
    }
    let style = style_address(&world.browse("/").await.body);
    for path in ["/api", "/api/openapi.json", &style] {
        let answer = get(&world, path, &signed_in).await;
        assert!(answer.is_gzip(), "{path}");
        // Whatever else the request says, it is not in the answer.
        let guess = format!("{path}?q=0123456789abcdef-guess");
        let guessed = [
            &signed_in[..],
            &[("referer", "https://evil.example/0123456789abcdef-guess")],
        ];
        let guessed = get(&world, &guess, &guessed.concat()).await;
        assert_eq!(guessed.text(), answer.text(), "{path}");
    }
    assert!(
        get(&world, "/api", &signed_in)
            .await
            .text()
            .contains("name=\"csrf\"")
    );
}

#[tokio::test]
async fn an_export_is_compressed_as_it_is_read_and_whole() {
    let world = world(1).await;
    world.link("mine").await;
    let clicks: Vec<_> = (0..5_000)
        .map(|_| click(NOW, ClickOutcome::Link(id("mine"), 1), Some(ADA)))
        .collect();
    apply(&world, Vec::new(), clicks).await;
    let key = ("x-api-key", world.key.as_str());
    let path = "/api/v1/clicks.csv?from=2025-12-31T00:00:00Z&to=2026-01-02T00:00:00Z";
    let plain = get(&world, path, &[key]).await;
    let packed = get(&world, path, &[key, GZIP]).await;
    assert_eq!(plain.text().lines().count(), 5_001, "{}", plain.text());
    assert_eq!(
        packed.header("content-length"),
        "",
        "its length is not known yet"
    );
    assert!(packed.is_gzip());
    assert_eq!(plain.text(), packed.text());
    assert!(packed.body.len() * 10 < plain.body.len());
}

#[tokio::test]
async fn each_form_of_an_asset_has_a_tag_of_its_own() {
    let world = World::new().await;
    let style = style_address(&world.browse("/").await.body);
    let plain = get(&world, &style, &[]).await;
    let packed = get(&world, &style, &[GZIP]).await;
    assert_ne!(plain.header("etag"), packed.header("etag"));
    for (encoding, form, other) in [("gzip", &packed, &plain), ("identity", &plain, &packed)] {
        let known = |tag| [("accept-encoding", encoding), ("if-none-match", tag)];
        let same = get(&world, &style, &known(form.header("etag"))).await;
        assert_eq!(same.head.status(), 304, "{encoding}");
        assert_eq!(same.header("etag"), form.header("etag"));
        assert_eq!(same.header("vary"), "accept-encoding");
        let changed = get(&world, &style, &known(other.header("etag"))).await;
        assert_eq!(changed.head.status(), 200, "{encoding}");
    }
}

#[tokio::test]
async fn compression_can_be_turned_off() {
    let mut settings = HttpSettings::default();
    settings.api.compression = false;
    let world = World::with(settings).await;
    let style = style_address(&world.browse("/").await.body);
    for path in ["/api", "/api/openapi.json", "/nope", &style] {
        let answer = get(&world, path, &[GZIP, HTML]).await;
        assert!(!answer.is_gzip(), "{path}");
        assert!(!answer.header("vary").contains("accept-encoding"), "{path}");
    }
}
