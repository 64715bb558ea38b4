//! The engine answers random histories as the memory adapter does.

use std::sync::Arc;

use curt_memory::{MemoryClickStore, MemoryLinkStore};
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::conformance::{clicks, links};

fn quick() -> SqliteSettings {
    SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    }
}

/// Histories that the engine is asked, and their length.
const HISTORIES: u64 = 8;
const STEPS: usize = 400;

#[tokio::test(flavor = "multi_thread")]
async fn links_in_sqlite_agree() {
    for seed in 0..HISTORIES {
        let folder = tempfile::tempdir().unwrap();
        let memory = Arc::new(MemoryLinkStore::new());
        let db = Sqlite::open(folder.path().join("curt.db"), quick()).unwrap();
        links::agreement(seed, STEPS, memory, db.links()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clicks_in_sqlite_agree() {
    for seed in 0..HISTORIES {
        let folder = tempfile::tempdir().unwrap();
        let memory = Arc::new(MemoryClickStore::new());
        let db = Sqlite::open_clicks(folder.path().join("clicks.db"), quick()).unwrap();
        clicks::agreement(seed, STEPS, memory, db.clicks()).await;
    }
}
