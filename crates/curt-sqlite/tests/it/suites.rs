//! The SQLite adapter against the suites of its ports.

use std::path::Path;
use std::sync::Arc;

use curt_core::ports::{ClickDatabase, LedgerForm, SeededDatabase, StreamId};
use curt_memory::MemoryClickStore;
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::conformance;
use curt_testkit::conformance::transfer::stores::{AccountCopyPorts, ClickCopyPorts};
use curt_testkit::conformance::transfer::{LinkTransferPorts, NodeTransferPorts};
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

/// A links database in a folder of its own.
fn fresh_links() -> (TempDir, Arc<dyn SeededDatabase>) {
    fresh(|db| db.links() as _)
}

curt_testkit::link_tests!(fresh_links());
curt_testkit::seeded_link_tests!(fresh_links());
curt_testkit::link_shard_tests!({
    let folder = new_folder();
    let node = open(folder.path()).shards();
    (folder, node)
});

fn transfer_ports(db: &Arc<Sqlite>) -> LinkTransferPorts {
    LinkTransferPorts {
        links: db.links(),
        transfer: db.link_transfer(Arc::default()),
        seeded: Some(db.links()),
    }
}

curt_testkit::link_transfer_tests!(fresh(|db| transfer_ports(&db)));
curt_testkit::followed_link_tests!(fresh(|db| transfer_ports(&db)));
curt_testkit::node_transfer_tests!(fresh(|db| NodeTransferPorts {
    ports: transfer_ports(&db),
    shards: db.shards(),
}));

curt_testkit::shard_map_tests!({
    let folder = new_folder();
    let maps = open(folder.path()).shard_maps();
    (folder, maps)
});

#[tokio::test(flavor = "multi_thread")]
async fn links_survive_reopening_l1() {
    let folder = new_folder();
    let open = async |folder: &Path| open(folder).links();
    let clause = conformance::links::durable::survives_reopening_l1(folder.path(), open);
    conformance::run_clause(clause).await;
}

/// A port of a data file in a folder of its own.
fn fresh<T>(port: impl FnOnce(Arc<Sqlite>) -> T) -> (TempDir, T) {
    let folder = new_folder();
    let port = port(open(folder.path()));
    (folder, port)
}

/// A folder in which the same port can be opened again.
macro_rules! reopened {
    ($port:expr) => {{
        let folder = new_folder();
        let path = folder.path().to_path_buf();
        (folder, path, async |folder: &Path| $port(open(folder)))
    }};
}

macro_rules! ledger_tests {
    ($($form_name:ident = $form:expr),+) => { $(
        mod $form_name {
            use super::*;
            curt_testkit::key_ledger_tests!(fresh(|db| db.ledger($form).unwrap()));
            curt_testkit::reopening_tests!(
                reopened!(|db: Arc<Sqlite>| db.ledger($form).unwrap()),
                key_ledger,
                survives_reopening_k2
            );
        }
    )+ };
}
ledger_tests!(
    deleting = LedgerForm::Delete,
    marking = LedgerForm::Status,
    moving = LedgerForm::UsedTable
);

curt_testkit::cursor_tests!(fresh(|db| db.cursor()));
curt_testkit::reopening_tests!(
    reopened!(|db: Arc<Sqlite>| db.cursor()),
    cursor,
    survives_reopening
);
curt_testkit::accounts_tests!(fresh(|db| db.accounts()));
curt_testkit::durable_accounts_tests!(reopened!(|db: Arc<Sqlite>| db.accounts()));

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

curt_testkit::account_transfer_tests!({
    let folders = [0; 2].map(|_| new_folder());
    let [from, to] = folders.each_ref().map(|folder| open(folder.path()));
    let ports = AccountCopyPorts {
        from: from.accounts(),
        from_transfer: from.account_transfer(),
        to: to.accounts(),
        to_transfer: to.account_transfer(),
    };
    (folders, ports)
});

curt_testkit::click_transfer_tests!({
    const COPY: StreamId = StreamId(7_777);
    let folders = [0; 2].map(|_| new_folder());
    let [from, to] = folders.each_ref().map(|folder| open_clicks(folder.path()));
    let ports = ClickCopyPorts {
        reference: Arc::new(MemoryClickStore::new()),
        from: from.clicks(),
        from_transfer: from.click_transfer(COPY),
        to: to.clicks(),
        to_transfer: to.click_transfer(COPY),
    };
    (folders, ports)
});
