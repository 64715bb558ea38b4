//! The SQLite adapter against the suites of its ports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use curt_core::ports::{ClickDatabase, LedgerForm, SeededDatabase};
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::conformance;
use tempfile::TempDir;

/// Opens the data file of a folder, without the syncs that only power loss would show.
fn open(folder: &Path) -> Arc<Sqlite> {
    Sqlite::open(folder.join("curt.db"), quick()).unwrap()
}

fn open_clicks(folder: &Path) -> Arc<Sqlite> {
    Sqlite::open_clicks(folder.join("clicks.db"), quick()).unwrap()
}

fn quick() -> SqliteSettings {
    SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    }
}

fn new_folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A fresh database for each clause; the folders go at the end of the test.
struct Fresh(TempDir, std::sync::atomic::AtomicUsize);

impl Fresh {
    fn new() -> Self {
        Self(new_folder(), std::sync::atomic::AtomicUsize::new(0))
    }

    fn open(&self) -> Arc<Sqlite> {
        open(&self.folder())
    }

    fn folder(&self) -> PathBuf {
        let n = self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.path().join(n.to_string())
    }
}

const FORMS: [LedgerForm; 3] = [
    LedgerForm::Delete,
    LedgerForm::Status,
    LedgerForm::UsedTable,
];

/// A links database in a folder of its own.
fn fresh_links() -> (TempDir, Arc<dyn SeededDatabase>) {
    let folder = new_folder();
    let links = open(folder.path()).links();
    (folder, links)
}

curt_testkit::link_tests!(fresh_links());
curt_testkit::seeded_link_tests!(fresh_links());

#[tokio::test(flavor = "multi_thread")]
async fn links_survive_reopening_l1() {
    let folder = new_folder();
    let open = async |folder: &Path| open(folder).links();
    let clause = conformance::links::durable::survives_reopening_l1(folder.path(), open);
    conformance::run_clause(clause).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_ledger_in_every_form() {
    for form in FORMS {
        let fresh = Fresh::new();
        conformance::key_ledger::suite(async || fresh.open().ledger(form).unwrap()).await;
        let folder = new_folder();
        conformance::key_ledger::suite_durable(folder.path(), async |folder| {
            open(folder).ledger(form).unwrap()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cursor() {
    let fresh = Fresh::new();
    conformance::cursor::suite(async || fresh.open().cursor()).await;
    let folder = new_folder();
    conformance::cursor::suite_durable(folder.path(), async |folder| open(folder).cursor()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts() {
    let fresh = Fresh::new();
    conformance::accounts::suite(async || fresh.open().accounts()).await;
    let folder = new_folder();
    conformance::accounts::suite_durable(folder.path(), async |folder| open(folder).accounts())
        .await;
}

fn fresh_clicks() -> (TempDir, Arc<dyn ClickDatabase>) {
    let folder = new_folder();
    let clicks = open_clicks(folder.path()).clicks();
    (folder, clicks)
}

curt_testkit::click_database_tests!(fresh_clicks());

#[tokio::test(flavor = "multi_thread")]
async fn clicks_survive_reopening_c1() {
    let folder = new_folder();
    let open = async |folder: &Path| open_clicks(folder).clicks();
    let clause = conformance::clicks::durable::survives_reopening_c1(folder.path(), open);
    conformance::run_clause(clause).await;
}
