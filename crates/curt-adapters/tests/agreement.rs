//! The engines answer random histories as the memory adapter does.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::sync::Arc;

use curt_adapters::sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_memory::{MemoryClickStore, MemoryLinkStore};
use curt_testkit::conformance::{click_store, link_store};

fn quick() -> SqliteSettings {
    SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    }
}

/// Histories that every engine is asked, and their length.
const HISTORIES: u64 = 8;
const STEPS: usize = 400;

#[tokio::test(flavor = "multi_thread")]
async fn links_in_sqlite_agree() {
    for seed in 0..HISTORIES {
        let folder = tempfile::tempdir().unwrap();
        let memory = Arc::new(MemoryLinkStore::new());
        let db = Sqlite::open(folder.path().join("curt.db"), quick()).unwrap();
        link_store::agreement(seed, STEPS, memory, db.links()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clicks_in_sqlite_agree() {
    for seed in 0..HISTORIES {
        let folder = tempfile::tempdir().unwrap();
        let memory = Arc::new(MemoryClickStore::new());
        let db = Sqlite::open_clicks(folder.path().join("clicks.db"), quick()).unwrap();
        click_store::agreement(seed, STEPS, memory, db.clicks()).await;
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use curt_adapters::postgres::{Postgres, PostgresSettings};
    use curt_testkit::engines::postgres::{Server, shared};
    use curt_testkit::need;

    use super::*;

    fn open(server: &Arc<Server>) -> Postgres {
        let database = server.database("agreement").unwrap();
        let settings = PostgresSettings {
            // The machine may be busy with other tests.
            connect_timeout: std::time::Duration::from_secs(30),
            ..PostgresSettings::default().with_timeout(std::time::Duration::from_secs(30))
        };
        Postgres::open(&database.url(), &settings).unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn links_in_postgres_agree() {
        let server = need!(shared());
        for seed in 0..HISTORIES {
            let memory = Arc::new(MemoryLinkStore::new());
            link_store::agreement(seed, STEPS, memory, open(&server).links()).await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn clicks_in_postgres_agree() {
        let server = need!(shared());
        for seed in 0..HISTORIES {
            let memory = Arc::new(MemoryClickStore::new());
            click_store::agreement(seed, STEPS, memory, open(&server).clicks()).await;
        }
    }
}
