//! `GET /{key}` without a cached live link, over real sockets: one read of the store, and the connection stays with its
//! worker.

use std::net::SocketAddr;
use std::sync::Arc;

use curt_http::metrics::{RedirectLabels, RedirectOutcome};
use curt_testkit::http::{Connection, Request, Response};
use http::Method;
use serde_json::{Value, json};

use crate::both_ways::Running;
use crate::harness::World;

const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

async fn create(world: &World, body: Value) {
    let made = world.call(Method::POST, "/api/v1/links", Some(body)).await;
    assert_eq!(made.status, 201, "{}", made.body);
}

async fn world() -> Arc<World> {
    let world = World::new().await;
    let target = "https://example.com/x";
    world.link("plain").await;
    for body in [
        json!({"target": target, "alias": "private", "visibility": "private"}),
        json!({"target": target, "alias": "locked", "visibility": "password", "password": "open sesame"}),
        json!({"target": target, "alias": "counted", "max_clicks": 3}),
    ] {
        create(&world, body).await;
    }
    world.store.take_gets();
    Arc::new(world)
}

async fn over_sockets(world: &Arc<World>, test: impl FnOnce(&World, SocketAddr) + Send + 'static) {
    let running = Running::of(world);
    let (address, inside) = (running.address, Arc::clone(world));
    let tested = tokio::task::spawn_blocking(move || test(&inside, address));
    tested.await.unwrap();
    running.stop().await;
}

fn get(connection: &mut Connection, path: &str) -> Response {
    let request = Request::get(path).header("user-agent", BROWSER);
    connection.send(&request).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_miss_reads_the_store_once() {
    let world = world().await;
    let test = |world: &World, address| {
        // Each on a connection of its own, as the first request is the one that a worker reads.
        let status_of = |path| get(&mut Connection::open(address).unwrap(), path).status;
        for (path, status) in [
            ("/absent", 404),
            ("/private", 401),
            ("/locked", 401),
            ("/counted", 302),
            ("/private", 401),
            ("/counted", 302),
            ("/plain", 302),
        ] {
            assert_eq!(status_of(path), status, "{path}");
            assert_eq!(world.store.take_gets(), 1, "{path}");
        }
        world.store.set(true);
        for _ in 0..3 {
            assert_eq!(status_of("/unread"), 503);
            assert_eq!(world.store.take_gets(), 1);
        }
        world.store.set(false);
        assert_eq!(status_of("/unread"), 404);
    };
    over_sockets(&world, test).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_link_reads_the_store_once() {
    let world = world().await;
    let test = |world: &World, address| {
        let mut connection = Connection::open(address).unwrap();
        for left in (0..3).rev() {
            assert_eq!(get(&mut connection, "/counted").status, 302, "{left} left");
        }
        assert_eq!(get(&mut connection, "/counted").status, 410);
        world.store.take_gets();
        assert_eq!(get(&mut connection, "/counted").status, 410);
        assert_eq!(world.store.take_gets(), 1);
    };
    over_sockets(&world, test).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_stays_on_the_fast_path_after_a_miss() {
    let world = world().await;
    over_sockets(&world, |_, address| {
        let mut connection = Connection::open(address).unwrap();
        assert_eq!(get(&mut connection, "/plain").status, 302);
        for miss in ["/absent", "/private", "/absent"] {
            assert!(get(&mut connection, miss).keeps_alive());
            assert_eq!(get(&mut connection, "/plain").status, 302);
        }
        let head = Request::new("HEAD", "/absent");
        let answer = connection.send(&head).unwrap();
        assert_eq!((answer.status, answer.body.len()), (404, 0));
        assert_eq!(get(&mut connection, "/plain").status, 302);
    })
    .await;
    let outcome = RedirectOutcome::Hit;
    let hits = world
        .app
        .metrics
        .redirects
        .get_or_create(&RedirectLabels { outcome });
    assert_eq!(hits.get(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_keep_their_order_around_misses() {
    let world = world().await;
    over_sockets(&world, |_, address| {
        let plain = "GET /plain HTTP/1.1\r\nHost: h\r\n\r\n";
        let private = "GET /private HTTP/1.1\r\nHost: h\r\n\r\n";
        let head = "HEAD /private HTTP/1.1\r\nHost: h\r\n\r\n";
        let home = "GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n";
        let last = "GET /absent HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        let pipeline = [
            plain, private, plain, head, private, plain, home, private, plain, last,
        ];
        let expected = [302, 401, 302, 401, 401, 302, 200, 401, 302, 404];
        let bytes = pipeline.concat();
        // Whatever the first read ends with is kept for the answer after it.
        for cut in [
            0,
            1,
            plain.len() + 7,
            plain.len() + private.len() + 3,
            bytes.len() - 1,
        ] {
            let mut connection = Connection::open(address).unwrap();
            let (first, second) = bytes.as_bytes().split_at(cut);
            connection.write_raw(first).unwrap();
            std::thread::yield_now();
            connection.write_raw(second).unwrap();
            for (request, status) in pipeline.iter().zip(expected) {
                let method = request.split(' ').next().unwrap();
                let response = connection.read_response(method).unwrap();
                assert_eq!(response.status, status, "{request:?}, cut at {cut}");
            }
            assert!(connection.read_to_close().unwrap().is_empty());
        }
    })
    .await;
}

/// The names and values that do not change from answer to answer.
fn steady_fields(response: &Response) -> Vec<(String, String)> {
    let fields = response.headers.iter();
    let mut fields: Vec<_> = fields
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .filter(|(name, _)| !matches!(&**name, "date" | "x-request-id"))
        .collect();
    fields.sort();
    fields
}

/// The first request loads the link, the second meets the copy, the third comes behind a request to the router.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_request_for_a_link_and_later_ones_get_the_same_answer() {
    let world = world().await;
    for (alias, status) in [
        ("found", 302),
        ("moved", 301),
        ("kept", 307),
        ("for-good", 308),
    ] {
        for method in ["GET", "HEAD"] {
            let alias = format!("{alias}-{method}");
            let target = "https://example.com/x?a=b";
            let body = json!({"target": target, "alias": alias, "redirect_status": status, "forward_query": true});
            create(&world, body).await;
        }
    }
    over_sockets(&world, |_, address| {
        for alias in ["found", "moved", "kept", "for-good"] {
            for method in ["GET", "HEAD"] {
                let request = Request::new(method, &format!("/{alias}-{method}?c=d"));
                let mut connection = Connection::open(address).unwrap();
                let first = connection.send(&request).unwrap();
                let second = connection.send(&request).unwrap();
                connection.send(&Request::get("/health/live")).unwrap();
                let third = connection.send(&request).unwrap();
                assert_eq!(
                    first.header("location"),
                    Some("https://example.com/x?a=b&c=d")
                );
                for (later, has_id) in [(&second, false), (&third, true)] {
                    assert_eq!(first.status, later.status, "{request:?}");
                    assert_eq!(steady_fields(&first), steady_fields(later), "{request:?}");
                    assert_eq!(later.header("x-request-id").is_some(), has_id);
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_answers_a_miss_as_hyper_does() {
    let world = world().await;
    over_sockets(&world, |_, address| {
        for request in [
            Request::get("/absent"),
            Request::get("/absent?q=\"a\""),
            Request::get("/absent").header("accept", "text/html"),
            Request::new("HEAD", "/absent"),
            Request::get("/private"),
            Request::get("/private").header("accept", "text/html"),
            Request::get("/locked?a=b").header("accept", "text/html"),
            Request::get("/counted"),
            Request::get("/absent").header("x-request-id", "mine"),
            Request::get("/absent").header("connection", "close"),
        ] {
            let by_worker = Connection::open(address).unwrap().send(&request).unwrap();
            let mut with_hyper = Connection::open(address).unwrap();
            with_hyper.send(&Request::get("/health/live")).unwrap();
            let by_hyper = with_hyper.send(&request).unwrap();
            assert_eq!(by_worker.header_values("date").count(), 1);
            assert_eq!(by_worker.status, by_hyper.status, "{request:?}");
            assert_eq!(by_worker.text(), by_hyper.text(), "{request:?}");
            assert_eq!(
                steady_fields(&by_worker),
                steady_fields(&by_hyper),
                "{request:?}"
            );
        }
    })
    .await;
}
