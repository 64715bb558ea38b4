//! Memcached that is killed, cut off, silent and slow, and callers that leave.

use std::time::{Duration, Instant};

use curt_core::ports::CachedLink;
use curt_core::{ErrorKind, Revision, ServedLink};
use curt_testkit::engines::memcached::Server;
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::length::time_max;
use curt_testkit::need;
use curt_testkit::sample::{NOW, id, link};

use crate::open;

const LASTING: Duration = Duration::from_secs(300);

fn entry(key: &str) -> CachedLink {
    CachedLink::Present(ServedLink::new(&link(key), NOW))
}

async fn once_back<T, F: Future<Output = Result<T, curt_core::PortError>>>(
    call: impl Fn() -> F,
) -> T {
    let begun = Instant::now();
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                assert!(
                    begun.elapsed() < time_max(Duration::from_secs(20)),
                    "{error}"
                );
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_comes_back_empty() {
    let mut server = need!(Server::start(64));
    let cache = open(&server.url()).link_cache();
    cache
        .set_if_newer(&id("a"), entry("a"), LASTING)
        .await
        .unwrap();
    server.kill().unwrap();
    let error = cache.get_many(&[id("a")]).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    server.restart().unwrap();
    let found = once_back(|| async { cache.get_many(&[id("a")]).await }).await;
    assert_eq!(found, [None]);
    cache
        .set_if_newer(&id("a"), entry("a"), LASTING)
        .await
        .unwrap();
    assert_eq!(
        cache.get_many(&[id("a")]).await.unwrap(),
        [Some(entry("a"))]
    );
}

/// A caller's answer must never reach another one.
#[tokio::test(flavor = "multi_thread")]
async fn callers_that_leave_take_no_answer_of_others() {
    let server = need!(Server::start(64));
    let proxy = Proxy::to(server.address()).unwrap();
    let cache = open(&format!("memcached://{}", proxy.address())).link_cache();
    for key in ["a", "b"] {
        cache
            .set_if_newer(&id(key), entry(key), LASTING)
            .await
            .unwrap();
    }
    proxy.set(Line::SlowAnswers(Duration::from_millis(30)));
    for _ in 0..20 {
        let ids = [id("a")];
        let left = cache.get_many(&ids);
        let left = tokio::time::timeout(Duration::from_millis(5), left).await;
        assert!(left.is_err(), "the line is slow");
        let found = cache.get_many(&[id("b")]).await.unwrap();
        assert_eq!(found, [Some(entry("b"))]);
    }
}

/// Callers with short deadlines of their own have left long before.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_answers_is_replaced_although_nobody_waits() {
    let server = need!(Server::start(64));
    let proxy = Proxy::to(server.address()).unwrap();
    let cache = open(&format!("memcached://{}", proxy.address())).link_cache();
    cache
        .set_if_newer(&id("a"), entry("a"), LASTING)
        .await
        .unwrap();
    proxy.set(Line::Deaf);
    let ids = [id("a")];
    let left = cache.get_many(&ids);
    let left = tokio::time::timeout(Duration::from_millis(10), left).await;
    assert!(left.is_err());
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    // The old connection is gone, and no other can be made.
    let begun = Instant::now();
    let error = cache.get_many(&[id("a")]).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(begun.elapsed() < time_max(Duration::from_secs(3)));
    proxy.set(Line::Sound);
    let found = once_back(|| async { cache.get_many(&[id("a")]).await }).await;
    assert_eq!(found, [Some(entry("a"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_voids_is_gone_here() {
    let server = need!(Server::start(64));
    let (one, other) = (
        open(&server.url()).link_cache(),
        open(&server.url()).link_cache(),
    );
    one.set_if_newer(&id("a"), entry("a"), LASTING)
        .await
        .unwrap();
    one.invalidate(&id("b"), Some(Revision::FIRST), LASTING)
        .await
        .unwrap();
    assert_eq!(one.get_many(&[id("a")]).await.unwrap(), [Some(entry("a"))]);
    other.clear().await.unwrap();
    assert_eq!(one.get_many(&[id("a")]).await.unwrap(), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn something_else_than_memcached_is_unavailable() {
    let web = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = web.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::Write as _;
        for stream in web.incoming().take(3) {
            stream
                .unwrap()
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .ok();
        }
    });
    let cache = open(&format!("memcached://{address}"));
    assert_eq!(cache.ping().await.unwrap_err().kind, ErrorKind::Unavailable);
}
