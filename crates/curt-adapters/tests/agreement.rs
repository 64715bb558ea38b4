//! SQLite answers random histories as the memory adapter does.

#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::sync::Arc;

use curt_adapters::memory::{MemoryClickStore, MemoryLinkStore};
use curt_adapters::sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::conformance::{click_store, link_store};
use tempfile::TempDir;

fn open(folder: &TempDir) -> Arc<Sqlite> {
    let settings = SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    };
    Sqlite::open(folder.path().join("curt.db"), settings).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_agree() {
    for seed in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let memory = Arc::new(MemoryLinkStore::new());
        link_store::agreement(seed, 400, memory, open(&folder).links()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clicks_agree() {
    for seed in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let memory = Arc::new(MemoryClickStore::new());
        click_store::agreement(seed, 400, memory, open(&folder).clicks()).await;
    }
}
