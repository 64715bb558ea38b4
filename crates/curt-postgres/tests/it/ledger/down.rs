//! Engines that are away, silent or refuse to write: a clear error in time, and no restart needed afterwards.

use std::time::{Duration, Instant};

use curt_core::ports::LedgerForm;
use curt_core::{ErrorKind, PortError};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::{Server, shared};
use curt_testkit::length::time_max;
use curt_testkit::need;
use curt_testkit::sample::{NOW, batch, keys};

use crate::ledger::world::{Ledger, mint, open, take_until_answered};

fn hasty(url: &str) -> Ledger {
    let settings = PostgresSettings {
        connect_timeout: Duration::from_millis(500),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(1))
    };
    Postgres::open(url, &settings)
        .unwrap()
        .ledger(LedgerForm::Delete)
}

/// What a take says, and that it says so in time.
async fn refusal(ledger: &Ledger) -> PortError {
    let started = Instant::now();
    let error = ledger.take(&batch("b"), 10, NOW).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert!(
        started.elapsed() < time_max(Duration::from_secs(4)),
        "{error:?}"
    );
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_away_is_named_and_found_again() {
    let mut server = need!(Server::start());
    let ledger = hasty(&server.url("postgres"));
    mint(&ledger, 10).await;
    server.kill().unwrap();
    // The first call may still meet the connection that broke.
    ledger.counts().await.unwrap_err();
    let error = refusal(&ledger).await;
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
    let port = server.port().to_string();
    assert!(error.to_string().contains(&port), "{error}");
    server.restart().unwrap();
    let taken = take_until_answered(&ledger, &batch("b"), 10).await;
    assert_eq!(taken.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_may_start_before_its_engine() {
    let mut server = need!(Server::start());
    server.kill().unwrap();
    let ledger = hasty(&server.url("postgres"));
    let callers = (0..64).map(|_| {
        let ledger = ledger.clone();
        tokio::spawn(async move { refusal(&ledger).await.kind })
    });
    for caller in callers.collect::<Vec<_>>() {
        assert_eq!(caller.await.unwrap(), ErrorKind::Unavailable);
    }
    server.restart().unwrap();
    take_until_answered(&ledger, &batch("b"), 10).await;
    assert_eq!(ledger.insert(&keys("k", 3)).await.unwrap(), 3);
}

/// A stopped process accepts connections and says nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_engine_is_not_waited_for() {
    let server = need!(Server::start());
    let ledger = hasty(&server.url("postgres"));
    mint(&ledger, 10).await;
    server.pause().unwrap();
    let error = refusal(&ledger).await;
    assert_eq!(error.kind, ErrorKind::Timeout, "it was sent: {error:?}");
    let error = refusal(&ledger).await;
    assert_eq!(error.kind, ErrorKind::Unavailable, "never sent: {error:?}");
    server.resume().unwrap();
    let taken = take_until_answered(&ledger, &batch("b"), 10).await;
    assert_eq!(taken.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_takes_no_writes_is_not_held_on_to() {
    let server = need!(shared());
    let database = server.database("demoted").unwrap();
    let ledger = hasty(&database.url());
    mint(&ledger, 10).await;
    let name = database.name().to_owned();
    let read_only = |on: &str| {
        let set = format!("alter database {name} set default_transaction_read_only = {on}");
        server.sql(&set).unwrap();
        let kick = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
        );
        server.sql(&kick).unwrap();
    };
    read_only("on");
    // The connection that was ended, and then the engine as it is now.
    ledger.take(&batch("b"), 10, NOW).await.unwrap_err();
    let error = refusal(&ledger).await;
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
    read_only("off");
    assert_eq!(
        take_until_answered(&ledger, &batch("b"), 10).await.len(),
        10
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_login_is_transient_and_every_host_is_named_with_its_cause() {
    let server = need!(shared());
    let missing = open(&server.url("no_such_database")).ledger(LedgerForm::Delete);
    let error = missing.counts().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("no_such_database"), "{error}");
    let port = server.port();
    // The host that refuses the user comes first, and one that nobody listens on last.
    let stranger = format!("postgres://stranger@127.0.0.1:{port},127.0.0.1:1/postgres");
    let error = open(&stranger).cursor().get("a").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
    let text = error.to_string();
    for part in [
        "\"stranger\" does not exist",
        &port.to_string(),
        "127.0.0.1:1: ",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
