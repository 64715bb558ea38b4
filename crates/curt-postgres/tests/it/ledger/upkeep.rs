//! What keeps a ledger quick for years: dead rows go early, and nobody's open transaction stays.

use std::time::{Duration, Instant};

use curt_core::ports::LedgerForm;
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::{Server, shared};
use curt_testkit::length::time_max;
use curt_testkit::need;
use curt_testkit::sample::{NOW, batch};

use crate::ledger::world::{FORMS, connect, mint, open};

/// Where a fifth of the table would have to be dead by default, some thousand rows are enough here.
#[tokio::test(flavor = "multi_thread")]
async fn dead_rows_are_cleaned_away_early() {
    let server = need!(Server::start_with(&[("autovacuum_naptime", "1s")]));
    let ledger = open(&server.url("postgres")).ledger(LedgerForm::Delete);
    ledger.counts().await.unwrap();
    // New rows are no reason here.
    let only_dead = "alter table keys set (autovacuum_vacuum_insert_threshold = -1)";
    server.sql(only_dead).unwrap();
    mint(&ledger, 60_000).await;
    server.sql("analyze keys").unwrap();
    ledger.take(&batch("b"), 6_000, NOW).await.unwrap();
    let cleaned = "select autovacuum_count > 0 from pg_stat_user_tables where relname = 'keys'";
    let started = Instant::now();
    while server.sql(cleaned).unwrap() != "t" {
        assert!(
            started.elapsed() < time_max(Duration::from_secs(60)),
            "dead rows stay"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// A process that is stopped in the middle of a take would keep vacuum, and in one form every other taker, waiting.
#[tokio::test(flavor = "multi_thread")]
async fn the_engine_ends_what_a_stopped_process_left_open() {
    let server = need!(shared());
    for form in FORMS {
        let database = server.database("limits").unwrap();
        let ledger = open(&database.url()).ledger(form);
        mint(&ledger, 10).await;
        let note = "create table seen (idle text, statement text); \
            create function note() returns trigger language plpgsql as $$ begin \
            insert into seen values (current_setting('idle_in_transaction_session_timeout'), \
            current_setting('statement_timeout')); return null; end $$; \
            create trigger note after insert on key_batches execute function note()";
        database.sql(note).unwrap();
        ledger.take(&batch("b"), 10, NOW).await.unwrap();
        let seen = database.sql("select * from seen").unwrap();
        assert_eq!(seen, "10s|5s", "{form:?}");
    }
}

/// The form whose takers wait for each other does not let them wait for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_taker_behind_a_stuck_one_gives_up_in_time() {
    let server = need!(shared());
    let database = server.database("stuck").unwrap();
    let settings = PostgresSettings {
        background_timeout: Duration::from_millis(600),
        ..PostgresSettings::default()
    };
    let ledger = Postgres::open(&database.url(), &settings)
        .unwrap()
        .ledger(LedgerForm::Cursor);
    mint(&ledger, 20).await;
    let stuck = connect(&database).await;
    let hold = "begin; select head from key_head for update";
    stuck.batch_execute(hold).await.unwrap();
    let started = Instant::now();
    let error = ledger.take(&batch("b"), 10, NOW).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert!(
        started.elapsed() < time_max(Duration::from_secs(4)),
        "{error:?}"
    );
    stuck.batch_execute("rollback").await.unwrap();
    let taken = ledger.take(&batch("b"), 10, NOW).await.unwrap();
    assert_eq!(taken.len(), 10, "the batch that was given up, anew");
}
