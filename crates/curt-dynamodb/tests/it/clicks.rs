//! The clicks database against the suites of its ports.

use std::path::Path;
use std::sync::Arc;

use curt_core::ports::StreamId;
use curt_memory::MemoryClickStore;
use curt_testkit::conformance::transfer::stores::ClickCopyPorts;
use curt_testkit::{conformance, need};

use crate::world::fresh;

curt_testkit::click_database_tests!({
    let database = need!(fresh());
    let clicks = database.clicks();
    (database, clicks)
});

#[tokio::test(flavor = "multi_thread")]
async fn clicks_survive_reopening_c1() {
    let database = need!(fresh());
    let open = async |_: &Path| database.clicks();
    let clause = conformance::clicks::durable::survives_reopening_c1("".as_ref(), open);
    conformance::run_clause(clause).await;
}

curt_testkit::click_transfer_tests!({
    const COPY: StreamId = StreamId(7_777);
    let (from, to) = (need!(fresh()), need!(fresh()));
    let ports = ClickCopyPorts {
        reference: Arc::new(MemoryClickStore::new()),
        from: from.clicks(),
        from_transfer: from.click_transfer(COPY),
        to: to.clicks(),
        to_transfer: to.click_transfer(COPY),
    };
    ((from, to), ports)
});
