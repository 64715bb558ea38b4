//! An installation whose clicks are in the links database is moved, and killed again and again meanwhile.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;

use crate::length::length;
use crate::site::Site;

/// The steps of the last version that kept clicks in the links database.
const STEPS: [&str; 5] = [
    include_str!("../../../../curt-sqlite/migrations/0001_first.sql"),
    include_str!("../../../../curt-sqlite/migrations/0002_accounts.sql"),
    include_str!("../../../../curt-sqlite/migrations/0003_clicks.sql"),
    include_str!("../../../../curt-sqlite/migrations/0004_click_streams.sql"),
    include_str!("../../../../curt-sqlite/migrations/0005_keys.sql"),
];

/// Everything that must not get lost, as one line: positions, counts, single clicks, and salts.
const CONTENTS: &str = "SELECT (SELECT group_concat(position) FROM click_positions) || '/' || \
     (SELECT count(*) || ':' || sum(id * length(counts)) FROM click_days) || '/' || \
     (SELECT count(*) || ':' || sum(id % 1000003) || ':' || sum(length(referrer)) FROM click_visits) || '/' || \
     (SELECT count(*) || ':' || sum(id * length(name)) FROM click_subjects) || '/' || \
     (SELECT group_concat(hex(salt)) FROM click_salts)";

#[test]
fn clicks_are_moved_over_kills_c1() {
    let mut site = Site::new(&[]);
    let data = site.folder().join("data");
    fs::create_dir_all(&data).unwrap();
    let before = fill(&data.join("curt.db"), length(60_000, 1_000_000));

    let mut killed = 0;
    for round in 1..=40_u64 {
        let mut migration = Command::new(env!("CARGO_BIN_EXE_curt"))
            .arg("migrate")
            .current_dir(site.folder())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A little longer each time, so that the kills come at every stage whatever the machine does.
        thread::sleep(Duration::from_millis(20 * round));
        match migration.try_wait().unwrap() {
            Some(_) => break,
            None => migration.kill().unwrap(),
        }
        migration.wait().unwrap();
        killed += 1;
    }
    println!("moved: {killed} migrations were killed");
    assert!(killed > 0, "no migration was killed");
    let migrated = site.output(&["migrate"]);
    assert!(migrated.status.success(), "{migrated:?}");

    let clicks = Connection::open(data.join("clicks.db")).unwrap();
    let after: String = clicks.query_row(CONTENTS, (), |row| row.get(0)).unwrap();
    assert_eq!(after, before, "C-1");
    drop(clicks);
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    let made = site.api().create("https://example.com/").unwrap();
    assert_eq!(made.status, 201, "{}", made.text());
    assert!(site.terminate().success());
}

/// A links database of the last version with that many single clicks; returns its contents.
fn fill(file: &Path, clicks: usize) -> String {
    let connection = Connection::open(file).unwrap();
    for step in STEPS {
        connection.execute_batch(step).unwrap();
    }
    connection
        .execute_batch(&format!(
            "PRAGMA application_id = 0x63757274;
             PRAGMA user_version = 5;
             BEGIN;
             CREATE TEMP TABLE numbers AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \
                 WHERE i < {clicks}) SELECT i FROM n;
             INSERT INTO click_positions VALUES (77, 0, 123456), (77, 1, 654321);
             INSERT INTO click_salts VALUES (20000, randomblob(32));
             INSERT INTO click_subjects SELECT i, 4, 0, 'key' || i FROM numbers WHERE i <= 2000;
             INSERT INTO click_days SELECT i << 22 | 20000, x'010008056875', zeroblob(40) FROM numbers WHERE i <= 2000;
             INSERT INTO click_visits SELECT (1728000000000 + i) << 15, i % 2000 + 1, 9, NULL, NULL, 0, 'DE', \
                 'Firefox', 'Linux', 'desktop', 'https://' || hex(randomblob(20)) || '.example', 'de', NULL FROM numbers;
             COMMIT"
        ))
        .unwrap();
    connection
        .query_row(CONTENTS, (), |row| row.get(0))
        .unwrap()
}
