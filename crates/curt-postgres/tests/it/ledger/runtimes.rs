//! Connections outlive the runtime of the caller that they were opened for.

use std::num::NonZeroUsize;
use std::sync::Arc;

use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;

use crate::ledger::world::connect;

/// Whether a call of ours waits for a lock in this database.
fn is_call_waiting(database: &Database) -> bool {
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() \
        and application_name = 'curt' and wait_event_type = 'Lock'";
    database.sql(waiting).unwrap() != "0"
}

/// A redirect worker opens the connection, and the API uses it when that worker ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_does_not_end_with_the_worker_that_asked_for_it() {
    let server = need!(shared());
    let database = server.database("runtimes").unwrap();
    let settings = PostgresSettings {
        background_connections: NonZeroUsize::MIN,
        ..PostgresSettings::default()
    };
    let cursor = Postgres::open(&database.url(), &settings).unwrap().cursor();
    let (end_worker, ending) = std::sync::mpsc::channel::<()>();
    let (opened, is_open) = tokio::sync::oneshot::channel();
    let worker = std::thread::spawn({
        let cursor = Arc::clone(&cursor);
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async { cursor.advance("a", 0, 1).await.unwrap() });
            opened.send(()).unwrap();
            ending.recv().unwrap();
        }
    });
    is_open.await.unwrap();

    let lock = connect(&database).await;
    let block = "begin; select from cursors for update";
    lock.batch_execute(block).await.unwrap();
    let call = tokio::spawn(async move { cursor.advance("a", 1, 2).await });
    while !is_call_waiting(&database) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    end_worker.send(()).unwrap();
    worker.join().unwrap();
    lock.batch_execute("commit").await.unwrap();
    assert!(call.await.unwrap().unwrap(), "the answer arrived");
}
