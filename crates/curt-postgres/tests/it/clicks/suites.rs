//! The clicks database against the suites of its ports.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::StreamId;
use curt_memory::MemoryClickStore;
use curt_postgres::{CLICKS, Postgres, PostgresSettings};
use curt_testkit::conformance::transfer::stores::ClickCopyPorts;
use curt_testkit::engines::postgres::shared;
use curt_testkit::{conformance, need};

use crate::clicks::world::open;
use crate::prepared::prepared;

macro_rules! fresh {
    () => {{
        let [database] = prepared(&need!(shared()), &CLICKS);
        let clicks = open(&database.url());
        (database, clicks)
    }};
}

curt_testkit::click_database_tests!(fresh!());

#[tokio::test(flavor = "multi_thread")]
async fn clicks_survive_reopening_c1() {
    let database = need!(shared()).database("clicks").unwrap();
    let open = async |_: &Path| open(&database.url());
    let clause = conformance::clicks::durable::survives_reopening_c1("".as_ref(), open);
    conformance::run_clause(clause).await;
}

curt_testkit::click_transfer_tests!({
    const COPY: StreamId = StreamId(7_777);
    let databases = prepared::<2>(&need!(shared()), &CLICKS);
    let [from, to] = databases.each_ref().map(|database| {
        let settings = PostgresSettings::default().with_timeout(Duration::from_secs(30));
        Postgres::open(&database.url(), &settings).unwrap()
    });
    let ports = ClickCopyPorts {
        reference: Arc::new(MemoryClickStore::new()),
        from: from.clicks(),
        from_transfer: from.click_transfer(COPY),
        to: to.clicks(),
        to_transfer: to.click_transfer(COPY),
    };
    (databases, ports)
});
