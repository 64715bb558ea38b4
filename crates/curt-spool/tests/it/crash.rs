//! kill -9, as often as asked.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use curt_core::ports::ClickSource;
use curt_testkit::length::length;
use curt_testkit::process::Guarded;

use crate::world::{World, drain, numbers, open_at, open_capture, record_surely};

const CHILD_FOLDER: &str = "CURT_TEST_SPOOL_FOLDER";
const CHILD_START: &str = "CURT_TEST_SPOOL_START";
const ACKNOWLEDGED: &str = "acknowledged";

/// This test binary again, to run one function as another process.
fn child(name: &str, folder: &Path, start: u32) -> Guarded {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name, "--nocapture"])
        .env(CHILD_FOLDER, folder)
        .env(CHILD_START, start.to_string())
        .stdout(Stdio::null());
    Guarded::spawn(&mut command).unwrap()
}

/// Not a test of its own: does nothing unless it was started as the child. It records clicks until it is killed, and
/// acknowledges each, after it was recorded, by one byte in a file.
#[test]
fn child_that_records_until_killed() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let start: u32 = std::env::var(CHILD_START).unwrap().parse().unwrap();
    let mut world = World::new();
    world.settings.segment_bytes = 256 << 10;
    let spool = open_at(&folder.join("spool"), &world.settings);
    let mut capture = open_capture(&spool, 0).unwrap();
    let mut acknowledged = File::create(folder.join(ACKNOWLEDGED)).unwrap();
    for number in start.. {
        record_surely(&mut capture, number);
        acknowledged.write_all(&[1]).unwrap();
    }
}

fn acknowledged(folder: &Path) -> u32 {
    fs::metadata(folder.join(ACKNOWLEDGED)).map_or(0, |found| found.len() as u32)
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_clicks_survive_kill_exactly_once_and_in_order_c1() {
    let rounds = length(12, 50);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let settings = World::new().settings;
    let (mut read, mut position) = (Vec::new(), 0);
    let (mut recorded, mut unread) = (0, Vec::new());
    for round in 0..rounds {
        fs::remove_file(folder.join(ACKNOWLEDGED)).ok();
        let mut child = child("crash::child_that_records_until_killed", folder, recorded);
        wait_until(|| acknowledged(folder) > 1_000 + round * 777 % 5_000);
        child.kill().unwrap();
        let acknowledged = recorded + acknowledged(folder);

        let spool = open_at(&folder.join("spool"), &settings);
        unread = drain(&spool, 0, position).await;
        let found = read.len() as u32 + unread.len() as u32;
        // The one that was being recorded may be there or not.
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "round {round}: {acknowledged} acknowledged, {found} found"
        );
        recorded = found;
        // Sometimes it stays for later rounds, with the remains of more crashes.
        if round % 4 != 1 {
            position = unread.last().unwrap().offset + 1;
            read.extend(numbers(&unread));
            unread.clear();
            spool.commit(0, position).await.unwrap();
        }
        assert_eq!(
            spool
                .counts()
                .dead_letters
                .keys()
                .find(|reason| **reason != "torn"),
            None
        );
    }
    read.extend(numbers(&unread));
    assert_eq!(read, (0..recorded).collect::<Vec<_>>());
    println!("spool: {rounds} kills, {recorded} clicks, none lost, none twice");
}

#[test]
fn a_second_process_is_refused_and_a_killed_one_is_not_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut child = child("crash::child_that_records_until_killed", folder, 0);
    wait_until(|| acknowledged(folder) > 10);
    let world = World::new();
    let path = folder.join("spool");
    let metrics = curt_spool::SpoolMetrics::default();
    let now = crate::world::NOW;
    let refused = curt_spool::Spool::open(&path, &world.settings, now, &metrics);
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains(&format!("process {}", child.id())),
        "{refused}"
    );
    child.kill().unwrap();
    drop(open_at(&path, &world.settings));
}

fn wait_until(holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "nothing happens"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}
