//! The click store against the suite of its port.

use curt_testkit::engines::postgres::shared;
use curt_testkit::{conformance, need};

use crate::clicks::world::open;

#[tokio::test(flavor = "multi_thread")]
async fn click_store() {
    let server = need!(shared());
    let fresh = || server.database("clicks").unwrap();
    conformance::click_store::suite(async || open(&fresh().url())).await;
    let database = fresh();
    conformance::click_store::suite_durable("".as_ref(), async |_| open(&database.url())).await;
}
