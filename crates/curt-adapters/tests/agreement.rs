//! SQLite answers random histories as the memory adapter does.

#![cfg(feature = "sqlite")]

use std::sync::Arc;

use curt_adapters::memory::MemoryLinkStore;
use curt_adapters::sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::conformance::link_store::agreement;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_agrees_with_memory() {
    for seed in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let settings = SqliteSettings {
            synchronous: Synchronous::Normal,
            ..SqliteSettings::default()
        };
        let database = Sqlite::open(folder.path().join("curt.db"), settings).unwrap();
        let memory = Arc::new(MemoryLinkStore::new());
        agreement(seed, 400, memory, database.links()).await;
    }
}
