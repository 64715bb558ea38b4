//! Other methods than `GET` and `HEAD` on links: 307 and 308 keep them, 301 and 302 refuse them.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use curt_core::Scope;
use curt_links::Blocklist;
use curt_testkit::http::{Connection, Request as Raw};
use http::{Method, Request};
use serde_json::{Value, json};

use crate::both_ways::Running;
use crate::harness::{ADA, Answer, BOB, EVE, World};

const TARGET: &str = "https://example.com/x";
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
const OTHERS: [&str; 6] = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"];

async fn create(world: &World, alias: &str, more: Value) {
    let mut link = json!({"target": TARGET, "alias": alias});
    for (name, value) in more.as_object().unwrap() {
        link[name] = value.clone();
    }
    let made = world.call(Method::POST, "/api/v1/links", Some(link)).await;
    assert_eq!(made.status, 201, "{alias}: {}", made.body);
}

async fn ask(world: &World, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.send(request.body(Body::from("body")).unwrap()).await
}

#[tokio::test]
async fn a_status_that_keeps_the_method_answers_every_method() {
    let world = World::new().await;
    for status in [301, 302, 307, 308] {
        let more = json!({"redirect_status": status, "forward_query": true});
        create(&world, &format!("l{status}"), more).await;
    }
    for method in OTHERS {
        for status in [307, 308] {
            for slash in ["", "/"] {
                let path = format!("/l{status}{slash}?a=b");
                let answer = ask(&world, method, &path, &[]).await;
                assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
                assert_eq!(answer.header("location"), format!("{TARGET}?a=b"));
                assert_eq!(answer.header("allow"), "", "{method} {path}");
                let get = ask(&world, "GET", &path, &[]).await;
                assert_eq!(answer.header("cache-control"), get.header("cache-control"));
            }
        }
        for path in ["/l301", "/l302", "/l302/"] {
            let answer = ask(&world, method, path, &[]).await;
            assert_eq!(answer.problem(), "method-not-allowed", "{method} {path}");
            assert_eq!(answer.header("allow"), "GET,HEAD", "{method} {path}");
            assert_eq!(answer.header("location"), "", "{method} {path}");
        }
        let answer = ask(&world, method, "/nope", &[]).await;
        assert_eq!(answer.problem(), "link-not-found", "{method}");
    }
    for path in ["/l307", "/l302", "/nope"] {
        let answer = ask(&world, "TRACE", path, &[]).await;
        assert_eq!(answer.problem(), "method-not-allowed", "{path}");
    }
}

/// What `GET` is refused, other methods are refused in the same way.
#[tokio::test]
async fn no_method_gets_past_what_holds_for_get() {
    let world = World::new().await;
    let kept = |more: Value| {
        let mut more = more;
        more["redirect_status"] = json!(307);
        more
    };
    create(&world, "private", kept(json!({"visibility": "private"}))).await;
    create(
        &world,
        "expired",
        kept(json!({"expires_at": "2026-01-01T00:01:00Z"})),
    )
    .await;
    create(
        &world,
        "later",
        kept(json!({"valid_since": "2027-01-01T00:00:00Z"})),
    )
    .await;
    create(&world, "deleted", kept(json!({}))).await;
    create(&world, "disabled", kept(json!({}))).await;
    create(
        &world,
        "blocked",
        kept(json!({"target": "https://blocked.example/"})),
    )
    .await;
    let locked = json!({"visibility": "password", "password": "open sesame"});
    create(&world, "locked", kept(locked)).await;
    let deleted = world
        .call(Method::DELETE, "/api/v1/links/deleted", None)
        .await;
    assert_eq!(deleted.status, 204);
    world.app.links.disable("disabled").await.unwrap();
    let blocked = Blocklist::parse(b"blocked.example").unwrap();
    assert!(world.app.policy.block(blocked));
    world.clock.advance(std::time::Duration::from_secs(61));
    let eve = world.key_for(EVE, "eve", &[Scope::Read]).await;
    for (path, key, code) in [
        ("/private", "", "sign-in-needed"),
        ("/private", eve.as_str(), "link-forbidden"),
        ("/expired", "", "link-expired"),
        ("/later", "", "link-scheduled"),
        ("/deleted", "", "link-gone"),
        ("/disabled", "", "link-disabled"),
        ("/blocked", "", "link-blocked"),
    ] {
        let headers = [("x-api-key", key)];
        let headers = &headers[..usize::from(!key.is_empty())];
        for method in ["GET"].into_iter().chain(OTHERS) {
            let answer = ask(&world, method, path, headers).await;
            assert_eq!(answer.problem(), code, "{method} {path}");
        }
    }
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        let answer = ask(&world, method, "/locked", &[]).await;
        assert_eq!(answer.problem(), "link-password-wrong", "{method}");
    }
    let owner = [("x-api-key", world.key.as_str())];
    for method in OTHERS {
        let answer = ask(&world, method, "/private", &owner).await;
        assert_eq!(answer.status, 307, "{method}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{method}");
    }
}

/// A browser sends the cookie with a form of any site of ours; a foreign page must not act with it.
#[tokio::test]
async fn a_private_link_is_not_posted_to_by_other_sites_with_a_session() {
    let world = World::new().await;
    let private = json!({"visibility": "private", "redirect_status": 307});
    create(&world, "private", private).await;
    let cookie = format!("__Host-curt_session={}", world.session(ADA).await);
    for (origin, status) in [("https://sho.rt", 307), ("https://evil.example", 403)] {
        let headers = [("cookie", cookie.as_str()), ("origin", origin)];
        let answer = ask(&world, "POST", "/private", &headers).await;
        assert_eq!(answer.status, status, "{origin}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_limit_on_clicks_counts_every_method() {
    let world = World::new().await;
    create(
        &world,
        "few",
        json!({"redirect_status": 307, "max_clicks": 3}),
    )
    .await;
    create(
        &world,
        "other",
        json!({"redirect_status": 302, "max_clicks": 1}),
    )
    .await;
    let browser = [("user-agent", BROWSER)];
    let program = ask(&world, "POST", "/few", &[("user-agent", "curl/8.0")]).await;
    assert_eq!(program.problem(), "browser-needed");
    for method in ["POST", "GET", "DELETE"] {
        let answer = ask(&world, method, "/few", &browser).await;
        assert_eq!(answer.status, 307, "{method}");
    }
    for method in ["POST", "GET", "PUT"] {
        let answer = ask(&world, method, "/few", &browser).await;
        assert_eq!(answer.problem(), "link-exhausted", "{method}");
    }
    // A method that is refused takes no click.
    for _ in 0..3 {
        assert_eq!(ask(&world, "PUT", "/other", &browser).await.status, 405);
    }
    assert_eq!(ask(&world, "GET", "/other", &browser).await.status, 302);
}

/// Whoever tries keys by another method is throttled like everybody else.
#[tokio::test]
async fn misses_by_other_methods_are_counted() {
    let world = World::new().await;
    create(&world, "there", json!({"redirect_status": 307})).await;
    let mut statuses = Vec::new();
    for number in 0..16 {
        let path = format!("/miss{number}");
        let answer = ask(&world, OTHERS[number % OTHERS.len()], &path, &[]).await;
        statuses.push(answer.status.as_u16());
    }
    assert_eq!(statuses, [vec![404; 15], vec![429]].concat());
    assert_eq!(ask(&world, "PUT", "/there", &[]).await.status, 429);
}

#[tokio::test]
async fn a_permission_counts_for_every_method() {
    let world = World::new().await;
    let private = json!({"visibility": "private", "redirect_status": 307});
    create(&world, "private", private).await;
    let body = Some(json!({"email": "bob@example.com"}));
    let granted = world
        .call(Method::POST, "/api/v1/links/private/permissions", body)
        .await;
    assert_eq!(granted.status, 201, "{}", granted.body);
    let bob = world.key_for(BOB, "read", &[Scope::Read]).await;
    let blind = world.key_for(BOB, "make", &[Scope::Create]).await;
    for method in OTHERS {
        let permitted = ask(&world, method, "/private", &[("x-api-key", &bob)]).await;
        assert_eq!(permitted.status, 307, "{method}");
        let refused = ask(&world, method, "/private", &[("x-api-key", &blind)]).await;
        assert_eq!(refused.problem(), "scope-missing", "{method}");
    }
}

async fn over_sockets(world: &Arc<World>, test: impl FnOnce(SocketAddr) + Send + 'static) {
    let running = Running::of(world);
    let address = running.address;
    tokio::task::spawn_blocking(move || test(address))
        .await
        .unwrap();
    running.stop().await;
}

/// The body is the target's. A short one is read over, behind a long one the connection ends; the answer arrives.
#[tokio::test(flavor = "multi_thread")]
async fn the_body_of_a_kept_method_is_left_and_the_connection_stays_right() {
    let world = World::new().await;
    create(&world, "kept", json!({"redirect_status": 307})).await;
    over_sockets(&Arc::new(world), |address| {
        let kind = "application/octet-stream";
        let mut connection = Connection::open(address).unwrap();
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            for bytes in [0, 1, 10_000, 60_000] {
                let request = Raw::new(method, "/kept").body(kind, vec![b'G'; bytes]);
                let answer = connection.send(&request).unwrap();
                assert_eq!(answer.status, 307, "{method} with {bytes} bytes");
                assert_eq!(answer.header("location"), Some(TARGET));
                assert!(answer.keeps_alive(), "{method} with {bytes} bytes");
            }
        }
        connection
            .write_raw(b"PUT /kept HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
            .unwrap();
        assert_eq!(connection.read_response("PUT").unwrap().status, 307);
        assert_eq!(connection.send(&Raw::get("/kept")).unwrap().status, 307);
        let long = Raw::new("PUT", "/kept").body(kind, vec![b'G'; 3_000_000]);
        let answer = Connection::open(address).unwrap().send(&long).unwrap();
        assert_eq!((answer.status, answer.keeps_alive()), (307, false));
        // One that is announced and not sent.
        let mut waiting = Connection::open(address).unwrap();
        waiting
            .write_raw(b"PUT /kept HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\nExpect: 100-continue\r\n\r\n")
            .unwrap();
        let answer = waiting.read_response("PUT").unwrap();
        assert_eq!((answer.status, answer.keeps_alive()), (307, false));
    })
    .await;
}
