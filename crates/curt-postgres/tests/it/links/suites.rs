//! The link store against the suite of its port.

use curt_testkit::engines::postgres::shared;
use curt_testkit::{conformance, need};

use crate::links::world::open;

#[tokio::test(flavor = "multi_thread")]
async fn link_store() {
    let server = need!(shared());
    let fresh = || server.database("links").unwrap();
    conformance::link_store::suite(async || open(&fresh().url())).await;
    let database = fresh();
    conformance::link_store::suite_durable("".as_ref(), async |_| open(&database.url())).await;
}
