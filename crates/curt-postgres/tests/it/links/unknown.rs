//! Inserts whose answer is lost: it is said that nobody knows, and the same request again finds out.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use curt_core::ErrorKind;
use curt_core::ports::{Inserted, LinkChange, RequestToken};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::{Server, shared};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::length::length;
use curt_testkit::need;
use curt_testkit::sample::{SampleWrites, id, link};
use tokio::task::JoinSet;

use crate::links::world::{AWAY_MAX, Links, assert_distinct, create_until_answered, open};

/// A line to the server that can be broken, and a store that is reached by it.
fn through_proxy(server: &Server, database: &str) -> (Proxy, Links) {
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let proxy = Proxy::to(target).unwrap();
    let settings = PostgresSettings {
        connect_timeout: Duration::from_millis(500),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(1))
    };
    let url = format!("postgres://postgres@{}/{database}", proxy.address());
    let links = Postgres::open(&url, &settings).unwrap().links();
    (proxy, links)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_without_an_answer_is_unknown_and_its_token_tells() {
    let server = need!(shared());
    let database = server.database("unknown").unwrap();
    let (proxy, links) = through_proxy(&server, database.name());
    // Prepares the statement, so that the next insert is sent whole.
    create_until_answered(&links, "first").await;
    proxy.set(Line::Deaf);
    let token = Some(RequestToken([9; 16]));
    let insert =
        |links: Links| async move { links.insert_if_absent(vec![link("lost")], token).await };
    let error = insert(links.clone()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error:?}");

    // The client asks another process, and then the first again.
    let another = open(&database.url());
    let before = [Inserted::CreatedBefore(LinkChange::of(&link("lost")))];
    assert_eq!(insert(another.clone()).await.unwrap(), before);
    proxy.set(Line::Sound);
    assert_eq!(insert(links).await.unwrap(), before);
    assert_eq!(another.counts().await.unwrap().live, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_line_is_unknown_to_everybody_who_shared_the_statement() {
    let server = need!(shared());
    let database = server.database("shared").unwrap();
    let (proxy, links) = through_proxy(&server, database.name());
    links.insert(vec![link("first")]).await.unwrap();
    proxy.set(Line::Deaf);
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let links = Arc::clone(&links);
        callers.spawn(async move { links.insert(vec![link(&format!("k{n}"))]).await });
    }
    // Cut when a statement has come through whose answer nobody hears.
    let another = open(&database.url());
    let started = Instant::now();
    while another.counts().await.unwrap().live == 1 {
        assert!(started.elapsed() < AWAY_MAX, "nothing comes through");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    proxy.set(Line::Cut);
    let errors: Vec<_> = callers
        .join_all()
        .await
        .into_iter()
        .map(Result::unwrap_err)
        .collect();
    // Those whose statement was under way; the rest found no connection any more, and nothing of theirs happened.
    let unknown = errors
        .iter()
        .filter(|error| error.kind == ErrorKind::Timeout);
    let unknown = unknown.count() as u64;
    assert!(unknown >= 1, "{errors:?}");
    let stored = another.counts().await.unwrap().live - 1;
    assert!(stored <= unknown, "{stored} are stored: {errors:?}");
    assert!(
        errors.iter().all(|error| error.is_transient()),
        "{errors:?}"
    );
}

/// `kill -9` of one of the engine's processes makes it end all of them and recover from its log.
#[tokio::test(flavor = "multi_thread")]
async fn killed_backends_lose_and_double_nothing_l1() {
    let server = need!(Server::start());
    server.sql("create database killed").unwrap();
    let processes = [open(&server.url("killed")), open(&server.url("killed"))];
    let killing = Arc::new(AtomicBool::new(true));
    let mut work = JoinSet::new();
    for n in 0..16 {
        let (processes, killing) = (processes.clone(), Arc::clone(&killing));
        work.spawn(async move {
            let mut ids = Vec::new();
            while killing.load(Relaxed) || ids.len() < length(150, 1_500) {
                let name = format!("c{n}k{}", ids.len());
                let links = &processes[ids.len() % 2];
                let stored = create_until_answered(links, &name).await;
                assert_eq!(stored, id(&name));
                ids.push(stored);
            }
            ids
        });
    }
    let kills = server.kill_busy_backends("killed", length(3, 20));
    killing.store(false, Relaxed);
    kills.unwrap();
    let ids: Vec<_> = work.join_all().await.into_iter().flatten().collect();
    assert_distinct(&ids);
    let links = open(&server.url("killed"));
    for id in &ids {
        assert!(links.get(id).await.unwrap().is_some(), "L-1: {id} is lost");
    }
    assert_eq!(links.counts().await.unwrap().live, ids.len() as u64);
}
