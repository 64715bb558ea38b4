//! Calls whose answer is lost: it is said that nobody knows, and the same call again finds out.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use curt_core::ErrorKind;
use curt_core::ports::LedgerForm;
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::{Server, shared};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::length::length;
use curt_testkit::need;
use curt_testkit::sample::{NOW, batch, later};

use crate::ledger::world::{FORMS, Ledger, assert_complete, drain, mint, open};

fn through(proxy: &Proxy, database: &str, form: LedgerForm) -> Ledger {
    let settings = PostgresSettings {
        connect_timeout: Duration::from_millis(500),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(1))
    };
    let url = format!("postgres://postgres@{}/{database}", proxy.address());
    Postgres::open(&url, &settings).unwrap().ledger(form)
}

/// The crash between take and push: the taker never hears of its keys. They are found, and handed out once.
#[tokio::test(flavor = "multi_thread")]
async fn a_take_without_an_answer_is_found_and_delivered_again() {
    let server = need!(shared());
    for form in FORMS {
        let database = server.database("unknown").unwrap();
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
        let proxy = Proxy::to(target).unwrap();
        let ledger = through(&proxy, database.name(), form);
        mint(&ledger, 30).await;
        // Prepares the statement, so that the next take is sent whole.
        ledger.take(&batch("first"), 10, NOW).await.unwrap();
        proxy.set(Line::Deaf);
        let error = ledger.take(&batch("lost"), 10, NOW).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout, "{form:?}: {error:?}");
        proxy.set(Line::Sound);

        let another = open(&database.url()).ledger(form);
        let open = another.open_batches(later(1), 10).await.unwrap();
        let names: Vec<_> = open.iter().map(|open| open.id.clone()).collect();
        assert_eq!(names, [batch("first"), batch("lost")], "{form:?}");
        let again = ledger.take(&batch("lost"), 10, later(9)).await.unwrap();
        assert_eq!(again, open[1].keys, "{form:?}");
        let counts = another.counts().await.unwrap();
        assert_eq!((counts.free, counts.open), (10, 20), "{form:?}");
        another.give_back(&batch("lost"), &again).await.unwrap();
        let counts = another.counts().await.unwrap();
        assert_eq!((counts.free, counts.open), (20, 10), "{form:?}");
    }
}

/// `kill -9` of one of the engine's processes makes it end all of them and recover from its log.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_backend_loses_and_doubles_nothing_k2() {
    let server = need!(Server::start());
    for form in FORMS {
        let mut killed = 0;
        for _ in 0..TRIES {
            killed = drain_under_kills(&server, form).await;
            if killed > 0 {
                break;
            }
        }
        assert!(killed > 0, "{form:?}: nobody was killed");
    }
}

/// The takers may be done before the first is killed.
const TRIES: usize = 20;

/// Takes all keys of a new ledger and returns how many backends were killed meanwhile.
async fn drain_under_kills(server: &Server, form: LedgerForm) -> usize {
    let kills = length(2, 10);
    let count = length(24_000, 60_000);
    server.sql("drop database if exists killed").unwrap();
    server.sql("create database killed").unwrap();
    let ledger = open(&server.url("killed")).ledger(form);
    mint(&ledger, count).await;
    let draining = tokio::spawn({
        let ledger = Arc::clone(&ledger);
        async move { drain(&ledger, 8, 100).await }
    });
    let mut killed = 0;
    while killed < kills && !draining.is_finished() {
        tokio::time::sleep(Duration::from_millis(10)).await;
        killed += usize::from(server.kill_busy_backend("killed").unwrap());
    }
    assert_complete(&draining.await.unwrap(), count, 100);
    // On a new line: the last kill may have come when all was taken, and cut the old ones.
    let ledger = open(&server.url("killed")).ledger(form);
    let counts = ledger.counts().await.unwrap();
    assert_eq!((counts.free, counts.open), (0, count as u64), "{form:?}");
    killed
}
