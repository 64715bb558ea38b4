//! Takes while vacuum cannot remove what earlier ones left: one old transaction, anywhere, is enough for that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::ports::LedgerForm;
use curt_testkit::engines::postgres::{Database, SYNCED, Server};
use curt_testkit::length::{length, time_max};
use curt_testkit::need;
use curt_testkit::sample::{NOW, batch};

use super::ALONE;
use crate::ledger::world::{FORMS, Ledger, connect, mint, open};

const LIMIT: usize = 1_000;
const MEASURED: usize = 100;
const TAKE_MAX: Duration = Duration::from_millis(10);

/// A transaction that has looked at the database and stays open: what was there then is kept for it.
struct OldSnapshot {
    _client: tokio_postgres::Client,
}

async fn hold_snapshot(database: &Database) -> OldSnapshot {
    let client = connect(database).await;
    client
        .batch_execute("begin isolation level repeatable read; select count(*) from key_head")
        .await
        .unwrap();
    OldSnapshot { _client: client }
}

async fn take_and_close(ledger: &Ledger, name: &str) -> Duration {
    let started = Instant::now();
    let taken = ledger.take(&batch(name), LIMIT, NOW).await.unwrap();
    let elapsed = started.elapsed();
    assert_eq!(taken.len(), LIMIT);
    ledger.close(&[batch(name)]).await.unwrap();
    elapsed
}

/// The slowest but one of a hundred takes, with the given number of dead rows before the first unused key.
async fn p99(database: &Database, form: LedgerForm, dead: usize) -> Duration {
    let ledger = open(&database.url()).ledger(form);
    mint(&ledger, dead + MEASURED * LIMIT).await;
    let _snapshot = hold_snapshot(database).await;
    for n in 0..dead / LIMIT {
        take_and_close(&ledger, &format!("before-{n}")).await;
    }
    let mut times = Vec::new();
    for n in 0..MEASURED {
        times.push(take_and_close(&ledger, &format!("measured-{n}")).await);
    }
    times.sort_unstable();
    times[MEASURED - 2]
}

/// A machine that is busy with other work may spoil a measurement, but not all.
const TRIES: usize = 5;

async fn best_p99(server: &Arc<Server>, form: LedgerForm, dead: usize) -> Duration {
    let tries = match form {
        LedgerForm::Cursor => length(1, TRIES),
        _ => 1,
    };
    let mut best = Duration::MAX;
    for _ in 0..tries {
        let database = server.database("dead").unwrap();
        best = best.min(p99(&database, form, dead).await);
        if best <= TAKE_MAX {
            break;
        }
    }
    best
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_do_not_slow_down_behind_dead_rows() {
    let _alone = ALONE.lock().await;
    let server = Arc::new(need!(Server::start_with(&[SYNCED])));
    let dead = length(10_000, 200_000);
    for form in FORMS {
        let p99 = best_p99(&server, form, dead).await;
        println!("{form:?}: take of {LIMIT} keys, p99 {p99:?} after {dead} dead rows");
        if form == LedgerForm::Cursor {
            assert!(p99 <= time_max(TAKE_MAX), "p99 {p99:?} over {TAKE_MAX:?}");
        }
    }
}
