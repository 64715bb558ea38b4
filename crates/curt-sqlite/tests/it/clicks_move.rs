//! Links databases of earlier versions, which hold their clicks, opened by this one.

use std::path::{Path, PathBuf};

use curt_core::ports::{HourRange, VisitFilter, VisitQuery};
use curt_core::{ClickSubject, Day, Dimension, ErrorKind, PortError, UnixMillis};
use curt_sqlite::{Sqlite, SqliteSettings};
use curt_testkit::sample::{id, link, partition, request};
use rusqlite::{Connection, params};
use tempfile::TempDir;

/// The steps of the last version that kept clicks in the links database.
const STEPS: [&str; 5] = [
    include_str!("../../migrations/0001_first.sql"),
    include_str!("../../migrations/0002_accounts.sql"),
    include_str!("../../migrations/0003_clicks.sql"),
    include_str!("../../migrations/0004_click_streams.sql"),
    include_str!("../../migrations/0005_keys.sql"),
];
/// "curt" in ASCII.
const APPLICATION_ID: i32 = 0x6375_7274;

/// More than two batches of the copy.
const CLICKS: i64 = 25_000;
const DAYS: u32 = 40;
const FIRST_DAY: u32 = 19_000;
const POSITION: i64 = 4_711;

struct World {
    folder: TempDir,
}

impl World {
    /// A links database as the last version wrote it, with clicks of one link.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = Self { folder };
        world.fill();
        world
    }

    fn links_file(&self) -> PathBuf {
        self.folder.path().join("curt.db")
    }

    fn clicks_file(&self) -> PathBuf {
        self.folder.path().join("clicks.db")
    }

    fn fill(&self) {
        let connection = Connection::open(self.links_file()).unwrap();
        for step in STEPS {
            connection.execute_batch(step).unwrap();
        }
        for (pragma, value) in [("application_id", APPLICATION_ID), ("user_version", 5)] {
            connection.pragma_update(None, pragma, value).unwrap();
        }
        let all = connection.unchecked_transaction().unwrap();
        all.execute(
            "INSERT INTO click_positions VALUES (?1, 0, ?2)",
            params![partition(0).stream.0.cast_signed(), POSITION],
        )
        .unwrap();
        all.execute("INSERT INTO click_subjects VALUES (1, 4, 0, 'busy')", ())
            .unwrap();
        all.execute("INSERT INTO click_salts VALUES (19000, ?1)", [[7_u8; 32]])
            .unwrap();
        // One human in the first hour of each day: see the stored form in click_days.
        let counts = [&[1, 0, 8, 5][..], b"human", &[1, 1]].concat();
        for day in FIRST_DAY..FIRST_DAY + DAYS {
            all.execute(
                "INSERT INTO click_days VALUES (?1, ?2, ?3)",
                params![1_i64 << 22 | i64::from(day), counts, empty_sketch()],
            )
            .unwrap();
        }
        let mut click = all
            .prepare(
                "INSERT INTO click_visits VALUES (?1, 1, 9, NULL, NULL, 0, 'DE', 'Firefox', 'Linux', 'desktop', 'direct', \
                 'de', NULL)",
            )
            .unwrap();
        let start = Day::numbered(FIRST_DAY).start().0;
        for n in 0..CLICKS {
            click.execute([(start + n) << 15]).unwrap();
        }
        drop(click);
        all.commit().unwrap();
    }

    fn settings(&self) -> SqliteSettings {
        SqliteSettings {
            clicks_file: Some(self.clicks_file()),
            ..SqliteSettings::default()
        }
    }

    /// Opens both files and finds every click where it belongs.
    async fn holds_everything(&self) {
        let main = Sqlite::open(self.links_file(), self.settings()).unwrap();
        let links = main.links();
        links.insert(request(vec![link("new")])).await.unwrap();
        let db = Sqlite::open_clicks(self.clicks_file(), SqliteSettings::default()).unwrap();
        let clicks = db.clicks();
        let subject = ClickSubject::Link(id("busy"), 1);
        let position = clicks.position(partition(0)).await.unwrap();
        assert_eq!(position, POSITION.cast_unsigned(), "C-1");
        let top = clicks.top(&subject, Dimension::Kind, HourRange::ALL, 9);
        assert_eq!(top.await.unwrap().total(), u64::from(DAYS), "C-1");
        let salt = clicks.salt(Day::numbered(19_000), [0; 32]).await.unwrap();
        assert_eq!(salt, [7; 32]);
        let mut query = VisitQuery {
            subject,
            from: UnixMillis(0),
            before: UnixMillis(i64::MAX),
            filter: VisitFilter::default(),
            cursor: None,
            limit: 10_000,
        };
        let mut found = 0;
        loop {
            let page = clicks.visits(&query).await.unwrap();
            found += page.visits.len();
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(found as i64, CLICKS, "single clicks");
        db.close().await;
        main.close().await;
        let tables = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'click%'";
        let left: i64 = Connection::open(self.links_file())
            .unwrap()
            .query_row(tables, (), |row| row.get(0))
            .unwrap();
        assert_eq!(left, 0, "tables of clicks in the links database");
        integrity(&self.links_file());
        integrity(&self.clicks_file());
    }

    fn refused(&self, settings: SqliteSettings) -> PortError {
        Sqlite::open(self.links_file(), settings)
            .map(drop)
            .unwrap_err()
    }
}

fn empty_sketch() -> Vec<u8> {
    curt_core::Sketch::new().to_bytes()
}

fn integrity(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let said: String = connection
        .query_row("PRAGMA integrity_check", (), |row| row.get(0))
        .unwrap();
    assert_eq!(said, "ok", "{}", path.display());
}

#[tokio::test]
async fn clicks_move_with_the_first_opening_c1() {
    let world = World::new();
    world.holds_everything().await;
    // Called again: no change.
    world.holds_everything().await;
}

/// What a crash in the middle of the copy leaves: a part of the clicks, and counts that an earlier version added since.
#[tokio::test]
async fn an_interrupted_copy_goes_on_c1() {
    let world = World::new();
    Sqlite::migrate_clicks(world.clicks_file()).unwrap();
    let connection = Connection::open(world.clicks_file()).unwrap();
    connection
        .execute(
            "ATTACH DATABASE ?1 AS old",
            [world.links_file().to_string_lossy()],
        )
        .unwrap();
    connection
        .execute_batch(
            "INSERT INTO click_move VALUES (1, 0);
             INSERT INTO click_subjects SELECT * FROM old.click_subjects;
             INSERT INTO click_days SELECT id, x'00', visitors FROM old.click_days;
             INSERT INTO click_visits SELECT * FROM old.click_visits ORDER BY id LIMIT 12000;",
        )
        .unwrap();
    drop(connection);
    world.holds_everything().await;
}

/// What a crash between the copy and the dropping of the originals leaves.
#[tokio::test]
async fn a_finished_copy_is_not_made_again_c1() {
    let world = World::new();
    Sqlite::migrate_with_clicks(world.links_file(), world.clicks_file()).unwrap();
    // The originals are back, as a restored backup brings them.
    std::fs::remove_file(world.links_file()).unwrap();
    world.fill();
    world.holds_everything().await;
}

#[tokio::test]
async fn clicks_are_neither_mixed_nor_lost() {
    let world = World::new();
    let alone = world.refused(SqliteSettings::default());
    assert_eq!(alone.kind, ErrorKind::Invalid);
    assert!(alone.detail.contains("curt migrate"), "{alone}");

    let db = Sqlite::open_clicks(world.clicks_file(), SqliteSettings::default()).unwrap();
    let flush = curt_core::ports::ClickFlush {
        partition: partition(0),
        from: 0,
        to: 1,
        days: Vec::new(),
        visits: Vec::new(),
    };
    assert!(db.clicks().apply(flush).await.unwrap());
    db.close().await;
    let both = world.refused(world.settings());
    assert!(both.detail.contains("both"), "{both}");

    std::fs::remove_file(world.clicks_file()).unwrap();
    world.holds_everything().await;
}

#[tokio::test]
async fn a_file_is_for_links_or_for_clicks() {
    let folder = tempfile::tempdir().unwrap();
    let (main, clicks) = (folder.path().join("a.db"), folder.path().join("b.db"));
    Sqlite::migrate(&main).unwrap();
    Sqlite::migrate_clicks(&clicks).unwrap();
    let settings = SqliteSettings::default;
    let refusals = [
        Sqlite::open_clicks(&main, settings())
            .map(drop)
            .unwrap_err(),
        Sqlite::open(&clicks, settings()).map(drop).unwrap_err(),
    ];
    for (refusal, holds) in refusals.iter().zip(["links", "clicks"]) {
        assert_eq!(refusal.kind, ErrorKind::Invalid);
        let told = format!("holds {holds} of curt");
        assert!(refusal.detail.contains(&told), "{refusal}");
    }
}
