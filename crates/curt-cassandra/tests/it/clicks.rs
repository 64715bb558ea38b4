//! The clicks database against the suites of its ports.

use std::path::Path;

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
