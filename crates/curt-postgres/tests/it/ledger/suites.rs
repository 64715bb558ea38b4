//! The PostgreSQL adapter against the suites of its ports.

use std::sync::Arc;

use curt_testkit::engines::postgres::{Database, Server, shared};
use curt_testkit::{conformance, need};

use crate::ledger::world::{FORMS, open};

fn fresh(server: &Arc<Server>) -> Database {
    server.database("suite").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn key_ledger_in_every_form() {
    let server = need!(shared());
    for form in FORMS {
        println!("{form:?}");
        conformance::key_ledger::suite(async || open(&fresh(&server).url()).ledger(form)).await;
        let database = fresh(&server);
        conformance::key_ledger::suite_durable("".as_ref(), async |_| {
            open(&database.url()).ledger(form)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cursor() {
    let server = need!(shared());
    conformance::cursor::suite(async || open(&fresh(&server).url()).cursor()).await;
    let database = fresh(&server);
    conformance::cursor::suite_durable("".as_ref(), async |_| open(&database.url()).cursor()).await;
}
