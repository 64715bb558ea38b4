//! The MySQL adapter on a real MariaDB.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::ports::KeyLedger;
use curt_core::ports::LedgerForm;
use curt_core::{ErrorKind, Key};
use curt_mysql::{Mysql, MysqlSettings};
use curt_testkit::engines::mariadb::{Server, shared};
use curt_testkit::length::time_max;
use curt_testkit::need;
use curt_testkit::sample::{NOW, batch, keys};
use tokio::task::JoinSet;

fn open(url: &str) -> Mysql {
    Mysql::open(url, &MysqlSettings::default()).unwrap()
}

macro_rules! ledger_tests {
    ($($form_name:ident = $form:expr),+) => { $(
        mod $form_name {
            use super::*;
            curt_testkit::key_ledger_tests!({
                let database = need!(shared()).database("suite").unwrap();
                let ledger = open(&database.url()).ledger($form).unwrap();
                (database, ledger)
            });
            curt_testkit::reopening_tests!(
                {
                    let database = need!(shared()).database("suite").unwrap();
                    let url = database.url();
                    (database, "", async move |_: &Path| open(&url).ledger($form).unwrap())
                },
                key_ledger,
                survives_reopening_k2
            );
        }
    )+ };
}
ledger_tests!(
    deleting = LedgerForm::Delete,
    marking = LedgerForm::Status,
    moving = LedgerForm::UsedTable
);

/// Takes until nothing is left. A call that fails is repeated under the same name.
async fn drain(ledger: Arc<dyn KeyLedger>, taker: usize, limit: usize) -> Vec<Vec<Key>> {
    let mut own = Vec::new();
    for n in 0.. {
        let name = batch(&format!("{taker}-{n}"));
        let taken = loop {
            match ledger.take(&name, limit, NOW).await {
                Ok(taken) => break taken,
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        if taken.is_empty() {
            break;
        }
        own.push(taken);
    }
    own
}

async fn drain_with(ledger: &Arc<dyn KeyLedger>, takers: usize, limit: usize) -> Vec<Vec<Key>> {
    let mut tasks = JoinSet::new();
    for taker in 0..takers {
        tasks.spawn(drain(Arc::clone(ledger), taker, limit));
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

fn assert_complete(batches: &[Vec<Key>], count: usize, limit: usize) {
    assert!(batches.iter().all(|batch| batch.len() <= limit), "K-3");
    let taken: usize = batches.iter().map(Vec::len).sum();
    let distinct: HashSet<&Key> = batches.iter().flatten().collect();
    assert_eq!((distinct.len(), taken), (count, count));
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_takers_share_the_keys_k3() {
    let server = need!(shared());
    let settings = MysqlSettings {
        connections: NonZeroUsize::new(64).unwrap(),
        ..MysqlSettings::default()
    };
    let url = server.database("takers").unwrap().url();
    let ledger = Mysql::open(&url, &settings)
        .unwrap()
        .ledger(LedgerForm::Delete)
        .unwrap();
    ledger.insert(&keys("k", 10_000)).await.unwrap();
    let batches = drain_with(&ledger, 64, 70).await;
    assert_complete(&batches, 10_000, 70);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_engine_loses_and_doubles_nothing_and_is_found_again_k2() {
    let mut server = need!(Server::start());
    server.sql("create database killed").unwrap();
    let ledger = open(&server.url("killed"))
        .ledger(LedgerForm::Delete)
        .unwrap();
    ledger.insert(&keys("k", 30_000)).await.unwrap();
    let draining = tokio::spawn({
        let ledger = Arc::clone(&ledger);
        async move { drain_with(&ledger, 8, 50).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let server = tokio::task::spawn_blocking(move || {
        server.kill().unwrap();
        server.restart().unwrap();
        server
    });
    let _server = server.await.unwrap();
    assert_complete(&draining.await.unwrap(), 30_000, 50);
    let counts = ledger.counts().await.unwrap();
    assert_eq!((counts.free, counts.open), (0, 30_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_away_or_silent_is_named_in_time() {
    let mut server = need!(Server::start());
    server.sql("create database away").unwrap();
    let settings = MysqlSettings {
        connect_timeout: Duration::from_millis(500),
        call_timeout: Duration::from_millis(500),
        ..MysqlSettings::default()
    };
    let ledger = Mysql::open(&server.url("away"), &settings)
        .unwrap()
        .ledger(LedgerForm::Delete)
        .unwrap();
    ledger.insert(&keys("k", 10)).await.unwrap();
    let refusal = async || {
        let started = Instant::now();
        let error = ledger.take(&batch("b"), 10, NOW).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
        assert!(
            started.elapsed() < time_max(Duration::from_secs(3)),
            "{error:?}"
        );
        error
    };
    server.pause().unwrap();
    refusal().await;
    server.resume().unwrap();
    server.kill().unwrap();
    refusal().await;
    let error = refusal().await;
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
    assert!(
        error.to_string().contains(&server.port().to_string()),
        "{error}"
    );
    server.restart().unwrap();
    assert_eq!(ledger.take(&batch("b"), 10, NOW).await.unwrap().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_start_together_migrate_once() {
    let server = need!(shared());
    let database = server.database("together").unwrap();
    let mut starts = JoinSet::new();
    for _ in 0..8 {
        let url = database.url();
        starts.spawn(async move { open(&url).migrate().await.unwrap().len() });
    }
    let applied: usize = starts.join_all().await.into_iter().sum();
    assert_eq!(applied, 1, "each step is applied by one of them");
    assert!(open(&database.url()).pending().await.unwrap().is_empty());
    database.sql("update curt_schema set version = 99").unwrap();
    let error = open(&database.url()).migrate().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waiting_cannot_mend_is_not_transient() {
    let server = need!(shared());
    let missing = open(&server.url("no_such_database"))
        .ledger(LedgerForm::Delete)
        .unwrap();
    let error = missing.counts().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error:?}");
    assert!(Mysql::open("mysql://", &MysqlSettings::default()).is_err());
}
