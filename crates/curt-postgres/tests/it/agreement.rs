//! The engine answers random histories as the memory adapter does.

use std::sync::Arc;
use std::time::Duration;

use curt_memory::{MemoryClickStore, MemoryLinkStore};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::conformance::{clicks, links};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;

/// Histories that the engine is asked, and their length.
const HISTORIES: u64 = 8;
const STEPS: usize = 400;

fn open(database: &Database) -> Postgres {
    let settings = PostgresSettings {
        // The machine may be busy with other tests.
        connect_timeout: Duration::from_secs(30),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    };
    Postgres::open(&database.url(), &settings).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_in_postgres_agree() {
    let server = need!(shared());
    for seed in 0..HISTORIES {
        let memory = Arc::new(MemoryLinkStore::new());
        let database = server.database("agreement").unwrap();
        links::agreement(seed, STEPS, memory, open(&database).links()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clicks_in_postgres_agree() {
    let server = need!(shared());
    for seed in 0..HISTORIES {
        let memory = Arc::new(MemoryClickStore::new());
        let database = server.database("agreement").unwrap();
        clicks::agreement(seed, STEPS, memory, open(&database).clicks()).await;
    }
}
