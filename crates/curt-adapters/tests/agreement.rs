//! The engines answer random histories as the memory adapter does.

use std::sync::Arc;

use curt_adapters::memory::MemoryLinkStore;
use curt_testkit::conformance::link_store::agreement;

/// Histories that every engine is asked, and their length.
const HISTORIES: u64 = 8;
const STEPS: usize = 400;

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_agrees_with_memory() {
    use curt_adapters::sqlite::{Sqlite, SqliteSettings, Synchronous};

    for seed in 0..HISTORIES {
        let folder = tempfile::tempdir().unwrap();
        let settings = SqliteSettings {
            synchronous: Synchronous::Normal,
            ..SqliteSettings::default()
        };
        let database = Sqlite::open(folder.path().join("curt.db"), settings).unwrap();
        let memory = Arc::new(MemoryLinkStore::new());
        agreement(seed, STEPS, memory, database.links()).await;
    }
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn postgres_agrees_with_memory() {
    use curt_adapters::postgres::{Postgres, PostgresSettings};

    let server = curt_testkit::need!(curt_testkit::engines::postgres::shared());
    for seed in 0..HISTORIES {
        let database = server.database("agreement").unwrap();
        let settings = PostgresSettings::default();
        let postgres = Postgres::open(&database.url(), &settings).unwrap();
        let memory = Arc::new(MemoryLinkStore::new());
        agreement(seed, STEPS, memory, postgres.links()).await;
    }
}
