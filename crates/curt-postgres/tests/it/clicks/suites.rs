//! The clicks database against the suites of its ports.

use std::path::Path;

use curt_testkit::engines::postgres::shared;
use curt_testkit::{conformance, need};

use crate::clicks::world::open;

macro_rules! fresh {
    () => {{
        let database = need!(shared()).database("clicks").unwrap();
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
