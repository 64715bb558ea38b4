//! What the tests share: one keyspace and one session, and a namespace for each test. Making tables takes longer than most
//! tests.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Result;
use curt_cassandra::{Cassandra, CassandraSettings};
use curt_testkit::engines::{cassandra, unique};
use tokio::runtime::Runtime;

pub(crate) fn settings() -> CassandraSettings {
    CassandraSettings {
        // The machine may be busy with other tests.
        connect_timeout: Duration::from_secs(30),
        call_timeout: Duration::from_secs(30),
        background_timeout: Duration::from_secs(30),
        totals_interval: Duration::ZERO,
        ..CassandraSettings::default()
    }
}

/// A namespace of its own, on the connections that all tests share.
pub(crate) fn fresh() -> Result<Cassandra> {
    static SHARED: OnceLock<(Runtime, Cassandra)> = OnceLock::new();
    let address = format!("cassandra://{}/curt", cassandra::shared()?.addresses());
    let (_, shared) = SHARED.get_or_init(|| {
        // Outlives the runtimes of the tests, which end with them.
        let runtime = Runtime::new().unwrap();
        let shared = {
            let _entered = runtime.enter();
            Cassandra::open(&address, &settings()).unwrap()
        };
        let links = shared.links();
        std::thread::scope(|scope| {
            let connect = || runtime.block_on(links.ping()).unwrap();
            scope.spawn(connect).join().unwrap();
        });
        (runtime, shared)
    });
    Ok(shared.in_namespace(&unique("test")))
}
