//! Tables that many processes make at once, and those of other versions.

use curt_core::ErrorKind;
use curt_core::ports::LedgerForm;
use curt_postgres::{CURSORS, KEYS};
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;

use crate::ledger::world::open;

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_start_together_migrate_once() {
    let server = need!(shared());
    let database = server.database("together").unwrap();
    let mut starts = Vec::new();
    for _ in 0..8 {
        let url = database.url();
        starts.push(tokio::spawn(async move { open(&url).migrate(&KEYS).await }));
    }
    let mut applied = 0;
    for start in starts {
        applied += start.await.unwrap().unwrap().len();
    }
    assert_eq!(applied, 1, "each step is applied by one of them");
    let postgres = open(&database.url());
    assert!(postgres.pending(&KEYS).await.unwrap().is_empty());
    assert_eq!(
        postgres.pending(&CURSORS).await.unwrap().len(),
        1,
        "a set of its own"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_other_versions_are_left_alone() {
    let server = need!(shared());
    let database = server.database("newer").unwrap();
    open(&database.url()).migrate(&KEYS).await.unwrap();
    for (stored, told) in [
        (1_099, "newer curt (schema 99"),
        (14, "before the first release (schema 14)"),
    ] {
        let set = format!("update curt_schema set version = {stored}");
        database.sql(&set).unwrap();
        let ledger = open(&database.url()).ledger(LedgerForm::Delete);
        let error = ledger.counts().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_leaves_nothing_behind() {
    let server = need!(shared());
    let database = server.database("half").unwrap();
    // In the way of the last table of the step.
    database.sql("create table key_counts (x int)").unwrap();
    open(&database.url()).migrate(&KEYS).await.unwrap_err();
    let tables = "select count(*) from pg_class where relname in ('keys', 'curt_schema')";
    assert_eq!(database.sql(tables).unwrap(), "0");
    database.sql("drop table key_counts").unwrap();
    assert_eq!(open(&database.url()).migrate(&KEYS).await.unwrap().len(), 1);
}
