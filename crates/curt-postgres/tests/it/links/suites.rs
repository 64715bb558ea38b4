//! The link store against the suite of its port.

use std::path::Path;
use std::sync::Arc;

use curt_postgres::{LINKS, Postgres};
use curt_testkit::conformance::transfer::{LinkTransferPorts, NodeTransferPorts};
use curt_testkit::engines::postgres::shared;
use curt_testkit::{conformance, need};

use crate::links::world::{open, settings};
use crate::prepared::prepared;

macro_rules! fresh {
    () => {{
        let [database] = prepared(&need!(shared()), &LINKS);
        let links = open(&database.url());
        (database, links)
    }};
}

curt_testkit::link_tests!(fresh!());
curt_testkit::seeded_link_tests!(fresh!());
curt_testkit::link_shard_tests!({
    let [database] = prepared(&need!(shared()), &LINKS);
    let node = Postgres::open(&database.url(), &settings()).unwrap();
    (database, node.shards())
});

fn transfer_ports(node: &Postgres) -> LinkTransferPorts {
    LinkTransferPorts {
        links: node.links(),
        transfer: node.link_transfer(Arc::default()),
        seeded: Some(node.links()),
    }
}

macro_rules! fresh_transfer {
    ($ports:expr) => {{
        let [database] = prepared(&need!(shared()), &LINKS);
        let node = Postgres::open(&database.url(), &settings()).unwrap();
        (database, $ports(&node))
    }};
}

curt_testkit::link_transfer_tests!(fresh_transfer!(transfer_ports));
curt_testkit::followed_link_tests!(fresh_transfer!(transfer_ports));
curt_testkit::node_transfer_tests!(fresh_transfer!(|node: &Postgres| NodeTransferPorts {
    ports: transfer_ports(node),
    shards: node.shards(),
}));

curt_testkit::shard_map_tests!({
    let database = need!(shared()).database("map").unwrap();
    let node = Postgres::open(&database.url(), &settings()).unwrap();
    (database, node.shard_maps())
});

#[tokio::test(flavor = "multi_thread")]
async fn links_survive_reopening_l1() {
    let database = need!(shared()).database("links").unwrap();
    let open = async |_: &Path| open(&database.url());
    let clause = conformance::links::durable::survives_reopening_l1("".as_ref(), open);
    conformance::run_clause(clause).await;
}
