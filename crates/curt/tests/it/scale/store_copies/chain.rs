//! From a file over several databases and Cassandra back to a file, killed on the way.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use curt_cassandra::{Cassandra, CassandraSettings};
use curt_core::ports::ClickDatabase;
use curt_memory::MemoryClickStore;
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::conformance::clicks::agreement;
use curt_testkit::conformance::transfer::stores::fill_accounts;
use curt_testkit::engines::{cassandra, postgres, unique};
use curt_testkit::need;
use curt_testkit::process::App;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::{Way, app, assert_same_links, copy_over_kills, fill, noted_in, rows_of, sqlite};
use crate::alone::Company;
use crate::length::length;

/// What a copy has noted in Cassandra.
struct Noted {
    runtime: Runtime,
    database: Cassandra,
}

impl Noted {
    fn open(url: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let settings = CassandraSettings {
            connect_timeout: super::WAIT_MAX,
            call_timeout: super::WAIT_MAX,
            ..CassandraSettings::default()
        };
        let database = Cassandra::open(url, &settings).unwrap();
        Self { runtime, database }
    }

    fn text(&self) -> Option<String> {
        let note = async { self.database.notes().note("copy").await };
        let note = self.runtime.block_on(note).ok()?;
        Some(note.text).filter(|text| !text.is_empty())
    }
}

pub(super) fn tell(what: &str, begun: Instant, report: &Value) {
    let seconds = begun.elapsed().as_secs_f64();
    let copied = report["links"]["items"].as_u64().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let rate = copied as f64 / seconds;
    println!("{what}: {copied} items in {seconds:.1} s, {rate:.0} in a second, compared");
}

#[test]
fn everything_copied_over_four_databases_and_cassandra_back_is_the_same_k1_k2_l3_c1() {
    let _company = Company::join();
    let server = need!(postgres::shared());
    let cluster = need!(cassandra::shared());
    let databases = [0; 4].map(|_| server.database("copy").unwrap());
    let urls = databases.each_ref().map(|database| database.url());
    let namespace = unique("copy");
    let wide = format!(
        "cassandra://{}/curt?namespace={namespace}",
        cluster.addresses()
    );
    // The machine may be busy.
    let app = app()
        .setting("cassandra.connect_timeout", "30s")
        .setting("cassandra.background_timeout", "60s")
        .setting("cassandra.call_timeout", "30s");
    let path = |name: &str| app.folder().join(name);
    let (first, last) = (path("first/curt.db"), path("last/curt.db"));
    let count = length(4_000, 1_000_000);
    fill(&first, count);
    let reference: Arc<dyn ClickDatabase> = Arc::new(MemoryClickStore::new());
    fill_stores(&first, &reference);
    let (first_url, last_url) = (sqlite(&first), sqlite(&last));
    let nodes: Vec<&str> = urls.iter().map(String::as_str).collect();
    let noted = Noted::open(&wide);
    let noted_in_nodes = || {
        let noted = databases[0].sql("SELECT text FROM shard_map_notes WHERE name = 'copy'");
        noted.ok().filter(|text| !text.is_empty())
    };
    let mut checksums = Vec::new();
    let mut copy = |what: &str, way: Way<'_>, kills, noted: &dyn Fn() -> Option<String>| {
        let begun = Instant::now();
        let report = copy_over_kills(&app, way, count, kills, noted);
        tell(what, begun, &report);
        checksums.push(["links", "accounts", "clicks"].map(|part| {
            let checksum = report[part]["checksum"].as_str();
            checksum.unwrap_or_else(|| panic!("{report}")).to_owned()
        }));
    };
    let there = Way::new(&[&first_url], &nodes);
    copy("SQLite to 4 PostgreSQL", there, 2, &noted_in_nodes);
    let further = Way::new(&nodes, &[&wide]);
    copy("4 PostgreSQL to Cassandra", further, 2, &|| noted.text());
    let back = Way::new(&[&wide], &[&last_url]);
    copy("Cassandra to SQLite", back, 1, &|| noted_in(&last));
    assert!(
        checksums.iter().all(|one| *one == checksums[0]),
        "{checksums:?}"
    );
    for database in &databases {
        let links = database.sql("SELECT count(*) FROM links").unwrap();
        let links: u64 = links.trim().parse().unwrap();
        assert!(
            links > length(400, 200_000),
            "a node has {links} links only"
        );
    }
    refuse_what_cannot_be(&app, &wide, &nodes);
    assert_same_links(&first, &last);
    assert_same_accounts(&first, &last);
    go_on_with_clicks(&last, &reference);
}

/// A source that does not tell changes, a part of one, and clicks that would count twice.
fn refuse_what_cannot_be(app: &App, wide: &str, nodes: &[&str]) {
    let new = sqlite(&app.folder().join("new/curt.db"));
    let newer = sqlite(&app.folder().join("newer/curt.db"));
    let counted = sqlite(&app.folder().join("last/clicks.db"));
    for (arguments, said) in [
        (
            Way::new(&[wide], &[&new]).with(&["--follow"]),
            "does not tell what changes",
        ),
        (Way::new(&nodes[..1], &[&new]).with(&[]), "one of 4 nodes"),
        (
            Way::new(&[wide], &[&new]).with(&["--resume", "--what", "accounts", "--follow"]),
            "--what leaves links out",
        ),
        (
            Way::new(nodes, &[&newer]).with(&["--to-clicks", &counted]),
            "count clicks twice",
        ),
    ] {
        let output = app.output(&arguments).unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}

fn settings() -> SqliteSettings {
    SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    }
}

/// Fills accounts, and clicks as they are in the reference.
pub(super) fn fill_stores(path: &Path, reference: &Arc<dyn ClickDatabase>) {
    Runtime::new().unwrap().block_on(async {
        let file = Sqlite::open(path, settings()).unwrap();
        fill_accounts(&*file.accounts()).await.unwrap();
        file.close().await;
        let clicks = Sqlite::open_clicks(path.with_file_name("clicks.db"), settings()).unwrap();
        agreement(1, 200, Arc::clone(reference), clicks.clicks()).await;
        clicks.close().await;
    });
}

/// Every report is the same, and what is counted on is, too.
pub(super) fn go_on_with_clicks(path: &Path, reference: &Arc<dyn ClickDatabase>) {
    Runtime::new().unwrap().block_on(async {
        let clicks = Sqlite::open_clicks(path.with_file_name("clicks.db"), settings()).unwrap();
        agreement(2, 200, Arc::clone(reference), clicks.clicks()).await;
        clicks.close().await;
    });
}

pub(super) fn assert_same_accounts(first: &Path, last: &Path) {
    let tables = [
        "SELECT * FROM users ORDER BY id",
        "SELECT * FROM api_keys ORDER BY seq",
        "SELECT * FROM invites ORDER BY secret_hash",
        "SELECT domain, key, generation, user, granted_at FROM permissions ORDER BY key, generation, id",
        "SELECT * FROM audit ORDER BY seq",
    ];
    let [before, after] = [first, last].map(|path| rows_of(path, &tables));
    for (table, (before, after)) in tables.iter().zip(before.iter().zip(&after)) {
        assert!(!before.is_empty(), "{table}: nothing");
        assert_eq!(before, after, "{table}");
    }
}
