//! What the SQLite adapter does when the machine does not do as it should.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::LedgerForm;
use curt_core::ports::SeededDatabase;
use curt_core::{ErrorKind, Link, PortError, UnixMillis};
use curt_sqlite::backup::{DataFile, back_up, count_links, identify};
use curt_sqlite::{Access, Sqlite, SqliteSettings, Synchronous};
use curt_testkit::process::Guarded;
use curt_testkit::sample::{SampleWrites, api_key, id, keys, link, user};
use curt_testkit::skipped;
use rusqlite::Connection;

/// Without the syncs that only power loss would show.
fn quick() -> SqliteSettings {
    SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    }
}

fn refused(path: &Path, settings: SqliteSettings) -> PortError {
    Sqlite::open(path, settings).map(|_| ()).unwrap_err()
}

async fn add(store: &Arc<dyn SeededDatabase>, key: &str) {
    let reply = store.insert(vec![link(key)]).await.unwrap();
    assert_eq!(reply, [true]);
}

/// The rows themselves, counted behind the adapter's back.
fn links_in(path: &Path) -> u64 {
    let rows: u32 = Connection::open(path)
        .unwrap()
        .query_row("SELECT count(*) FROM links", [], |row| row.get(0))
        .unwrap();
    rows.into()
}

fn bulky(name: &str) -> Vec<Link> {
    let bulky = |n| {
        let mut link = link(&format!("{name}{n}"));
        link.title = Some("x".repeat(500).into());
        link
    };
    (0..100).map(bulky).collect()
}

// --- kill -9 ---------------------------------------------------------------------------------------------------------

/// Names the data file for a child process.
const CHILD_FILE: &str = "CURT_TEST_SQLITE_FILE";

/// This test binary again, to run one function as another process.
fn child(name: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("faults::{name}"), "--nocapture"])
        .env(CHILD_FILE, path)
        .stdout(Stdio::piped());
    command
}

/// Not a test of its own: does nothing unless it was started as the child. It inserts links until it is killed, and
/// prints the key of each once it is acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_inserts_until_killed() {
    let Some(path) = std::env::var_os(CHILD_FILE) else {
        return;
    };
    let store = Sqlite::open(path, SqliteSettings::default())
        .unwrap()
        .links();
    let callers = (0..8).map(|caller| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for n in 0.. {
                let key = format!("c{caller}-{}-{n}", std::process::id());
                add(&store, &key).await;
                writeln!(std::io::stdout(), "\nacknowledged {key}").unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_links_survive_kill_l1() {
    const ROUNDS: usize = 5;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curt.db");
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let mut child =
            Guarded::spawn(&mut child("child_that_inserts_until_killed", &path)).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let keys = lines.filter_map(|line| {
            let line = line.unwrap();
            Some(line.strip_prefix("acknowledged ")?.to_owned())
        });
        let mut keys = keys.peekable();
        for _ in 0..200 + round * 50 {
            acknowledged.push(keys.next().unwrap());
        }
        child.kill().unwrap();
        // What it said before it died counts too; its last line may be cut short.
        let mut last: Vec<String> = keys.collect();
        last.pop();
        acknowledged.extend(last);
    }
    let db = Sqlite::open(&path, quick()).unwrap();
    let store = db.links();
    for key in &acknowledged {
        assert!(
            store.get(&id(key)).await.unwrap().is_some(),
            "L-1: {key} was acknowledged and is lost"
        );
    }
    let live = store.counts().await.unwrap().live;
    assert!(live >= acknowledged.len() as u64, "{live} counted");
    assert_eq!(
        live,
        links_in(&path),
        "the totals move with what they count"
    );
}

/// What is on the disk at any instant is a whole database with every acknowledged link.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_taken_at_any_instant_holds_what_was_acknowledged_l1() {
    let folder = tempfile::tempdir().unwrap();
    let db = Sqlite::open(folder.path().join("curt.db"), SqliteSettings::default()).unwrap();
    let store = db.links();
    for n in 0..50 {
        add(&store, &format!("k{n}")).await;
    }
    let copy = folder.path().join("copy.db");
    for end in ["", "-wal"] {
        let from = folder.path().join(format!("curt.db{end}"));
        std::fs::copy(from, folder.path().join(format!("copy.db{end}"))).unwrap();
    }
    let copied = Sqlite::open(copy, quick()).unwrap().links();
    for n in 0..50 {
        assert!(copied.get(&id(&format!("k{n}"))).await.unwrap().is_some());
    }
}

// --- a full disk -----------------------------------------------------------------------------------------------------

async fn fill_up(store: &Arc<dyn SeededDatabase>) -> PortError {
    for n in 0..10_000 {
        if let Err(error) = store.insert(bulky(&format!("fill{n}-"))).await {
            return error;
        }
    }
    panic!("the disk does not get full");
}

async fn expect_full_and_readable(store: &Arc<dyn SeededDatabase>, folder: &Path) {
    let before = store.counts().await.unwrap().live;
    let error = fill_up(store).await;
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    let text = format!(
        "sqlite could not insert links: the disk is full: free space under {}; redirects go on",
        folder.display()
    );
    assert_eq!(error.to_string(), text);
    assert!(store.get(&id("early")).await.unwrap().is_some());
    assert!(store.counts().await.unwrap().live > before, "some did fit");
}

#[tokio::test]
async fn a_full_file_refuses_writes_and_serves_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curt.db");
    let small = SqliteSettings {
        pages_max: Some(400),
        ..quick()
    };
    let db = Sqlite::open(&path, small).unwrap();
    let store = db.links();
    add(&store, "early").await;
    expect_full_and_readable(&store, folder.path()).await;
    db.close().await;
    let db = Sqlite::open(&path, quick()).unwrap();
    add(&db.links(), "after").await;
}

/// C6 on a real disk, where the system lets us make a small one.
#[tokio::test]
async fn a_full_disk_recovers_by_itself_when_space_is_freed() {
    let Some(disk) = SmallDisk::mount() else {
        return skipped::say("sqlite_faults", "no right to mount a small disk");
    };
    let folder = disk.0.path();
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![0; 2 << 20]).unwrap();
    let path = folder.join("curt.db");
    let db = Sqlite::open(&path, SqliteSettings::default()).unwrap();
    let store = db.links();
    add(&store, "early").await;
    expect_full_and_readable(&store, folder).await;
    std::fs::remove_file(ballast).unwrap();
    add(&store, "after").await;
    let live = store.counts().await.unwrap().live;
    db.close().await;

    let check: String = Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    assert_eq!(links_in(&path), live, "no half of a refused call is there");
}

/// A disk of a few megabytes in memory, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then(|| Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

// --- a disk that fails to sync -----------------------------------------------------------------------------------------

/// Names the file that, once it exists, makes every sync fail.
const SYNC_FAILS: &str = "CURT_TEST_SYNC_FAILS";

/// Takes the place of the system's own calls.
const FAILING_SYNC: &str = r#"
    #define _GNU_SOURCE
    #include <errno.h>
    #include <stdlib.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    static int failing(void) {
        const char *file = getenv("CURT_TEST_SYNC_FAILS");
        if (file == NULL || access(file, F_OK) != 0) return 0;
        errno = EIO;
        return 1;
    }
    int fsync(int fd) { return failing() ? -1 : (int)syscall(SYS_fsync, fd); }
    int fdatasync(int fd) { return failing() ? -1 : (int)syscall(SYS_fdatasync, fd); }
"#;

/// Not a test of its own: as the child of the next one, lives through a failed sync.
#[tokio::test]
async fn child_whose_disk_fails_to_sync() {
    let (Some(path), Some(sync_fails)) =
        (std::env::var_os(CHILD_FILE), std::env::var_os(SYNC_FAILS))
    else {
        return;
    };
    let db = Sqlite::open(path, SqliteSettings::default()).unwrap();
    let store = db.links();
    add(&store, "before").await;
    std::fs::write(&sync_fails, "").unwrap();
    // Whether the first is stored is unknown; the second has not been tried.
    for (key, kind) in [
        ("during", ErrorKind::Timeout),
        ("after", ErrorKind::Unavailable),
    ] {
        let error = store.insert(vec![link(key)]).await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(error.detail.contains("then restart"), "{error}");
        assert!(store.get(&id("before")).await.unwrap().is_some());
        assert!(store.get(&id(key)).await.unwrap().is_none());
        // The disk seems to work again, and what it lost is not known: still nothing is acknowledged.
        std::fs::remove_file(&sync_fails).ok();
    }
    writeln!(std::io::stdout(), "\nsurvived").unwrap();
}

/// C7: no false acknowledgement after a failed sync, and nothing is written until a restart.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_failed_sync_stops_writing_until_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("sync.c"), folder.path().join("sync.so"));
    std::fs::write(&source, FAILING_SYNC).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(compiled.success());
    let path = folder.path().join("curt.db");
    let output = child("child_whose_disk_fails_to_sync", &path)
        .env("LD_PRELOAD", library)
        .env(SYNC_FAILS, folder.path().join("sync-fails"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("\nsurvived"), "{said}");
    let store = Sqlite::open(&path, quick()).unwrap().links();
    assert!(store.get(&id("before")).await.unwrap().is_some());
    assert!(store.get(&id("after")).await.unwrap().is_none());
    add(&store, "after").await;
}

// --- other processes -------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_second_server_is_refused_and_a_command_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curt.db");
    let server = Sqlite::open(&path, quick()).unwrap();
    let error = refused(&path, quick());
    assert_eq!(error.kind, ErrorKind::Unavailable);
    let text = format!(
        "{} is in use by process {}: stop that server, or give this one a data file of its own",
        path.display(),
        std::process::id()
    );
    assert_eq!(error.detail, text);
    assert_eq!(Sqlite::migrate(&path).unwrap_err().detail, text);

    let command = SqliteSettings {
        access: Access::Command,
        ..quick()
    };
    let beside = Sqlite::open(&path, command).unwrap();
    let accounts = beside.accounts();
    let ann = user(1, "ann@example.com");
    assert!(accounts.add_user(&ann).await.unwrap());
    let key = api_key("abcd", 1, "laptop");
    let number = accounts.add_api_key(&key).await.unwrap();
    beside.close().await;
    let seen = server.accounts().api_key("abcd").await.unwrap();
    assert_eq!(seen, number.map(|number| key.numbered(number)));
    assert!(seen.is_some());

    server.close().await;
    Sqlite::open(&path, quick()).unwrap().close().await;
}

/// Not a test of its own: as the child of the next one, holds the write lock until its input ends.
#[test]
fn child_that_holds_the_write_lock() {
    let Some(path) = std::env::var_os(CHILD_FILE) else {
        return;
    };
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    writeln!(std::io::stdout(), "\nlocked").unwrap();
    std::io::stdin().lines().for_each(drop);
}

#[tokio::test]
async fn a_writer_that_does_not_let_go_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curt.db");
    let impatient = SqliteSettings {
        busy_timeout: Duration::from_millis(50),
        ..quick()
    };
    let db = Sqlite::open(&path, impatient).unwrap();
    let store = db.links();
    add(&store, "early").await;
    let mut holding = child("child_that_holds_the_write_lock", &path);
    let mut other = Guarded::spawn(holding.stdin(Stdio::piped())).unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "locked"));

    let error = store.insert(vec![link("k")]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    let text = format!(
        "process {} is writing to {} and does not let go: end it, or wait",
        other.id(),
        path.display()
    );
    assert_eq!(error.detail, text);
    assert!(store.get(&id("early")).await.unwrap().is_some());
    drop(other.stdin.take());
    other.wait().unwrap();
    add(&store, "k").await;
}

#[tokio::test]
async fn a_closed_file_refuses_everybody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curt.db");
    let db = Sqlite::open(&path, quick()).unwrap();
    let store = db.links();
    add(&store, "k").await;
    db.close().await;
    db.close().await;
    assert!(
        !folder.path().join("curt.db-wal").exists(),
        "the log is folded"
    );
    for error in [
        store.insert(vec![link("l")]).await.map(drop),
        store.get(&id("k")).await.map(drop),
        store.ping().await,
    ] {
        let error = error.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert_eq!(error.detail, "the data file has been closed");
    }
}

// --- files that are not ours -----------------------------------------------------------------------------------------

#[tokio::test]
async fn newer_files_and_those_from_before_the_release_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curt.db");
    let pending = Sqlite::pending(&path).unwrap();
    assert!(!pending.is_empty());
    assert_eq!(Sqlite::migrate(&path).unwrap(), pending);
    assert_eq!(Sqlite::pending(&path).unwrap().len(), 0);
    assert_eq!(Sqlite::migrate(&path).unwrap().len(), 0);
    for (stored, told) in [
        (
            1_099,
            "was written by a newer curt (schema 99, this one knows",
        ),
        (
            14,
            "was written by a build of curt from before the first release",
        ),
    ] {
        Connection::open(&path)
            .unwrap()
            .pragma_update(None, "user_version", stored)
            .unwrap();
        for error in [
            refused(&path, quick()),
            Sqlite::pending(&path).unwrap_err(),
            Sqlite::migrate(&path).unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::Invalid);
            assert!(error.detail.contains(told), "{error}");
        }
    }
}

#[tokio::test]
async fn files_of_others_and_damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let garbage = folder.path().join("garbage.db");
    std::fs::write(
        &garbage,
        "not a database, whatever its name says. ".repeat(200),
    )
    .unwrap();
    let error = refused(&garbage, quick());
    assert_eq!(error.kind, ErrorKind::Corrupt);
    assert!(
        error.detail.contains("is not a data file of curt"),
        "{error}"
    );

    let foreign = folder.path().join("foreign.db");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (x)")
        .unwrap();
    let error = refused(&foreign, quick());
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.detail.contains("another program"), "{error}");

    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = refused(&folder.path().join("file/curt.db"), quick());
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.detail.contains("cannot be made"), "{error}");
}

/// C8: a damaged page is an error, never an absent link.
#[tokio::test]
async fn a_damaged_page_is_reported_and_not_taken_for_an_absent_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curt.db");
    let db = Sqlite::open(&path, quick()).unwrap();
    for n in 0..20 {
        db.links().insert(bulky(&format!("b{n}-"))).await.unwrap();
    }
    db.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    for page in bytes.chunks_mut(4_096).skip(1) {
        page[..64].fill(0xA5);
    }
    std::fs::write(&path, bytes).unwrap();
    let error = match Sqlite::open(&path, quick()) {
        Ok(db) => db.links().get(&id("b7-7")).await.map(drop).unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
    assert!(
        error.detail.contains("restore the file from a backup"),
        "{error}"
    );
}

// --- backups ---------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_backup_taken_while_open_is_a_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let db = Sqlite::open(folder.path().join("curt.db"), quick()).unwrap();
    add(&db.links(), "k").await;
    db.ledger(LedgerForm::Delete)
        .unwrap()
        .insert(&keys("m", 10))
        .await
        .unwrap();
    let copy = folder.path().join("copy.db");
    let data = folder.path().join("curt.db");
    back_up(&data, &copy, |_, _| {}).unwrap();
    let again = back_up(&data, &copy, |_, _| {}).unwrap_err();
    assert_eq!(again.kind, ErrorKind::Invalid);
    assert!(copy.exists(), "the first copy is untouched");
    assert_eq!(copy.metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(identify(&copy).unwrap(), DataFile::Main);
    assert_eq!(count_links(&copy).unwrap(), 1);
    add(&db.links(), "later").await;

    let copy = Sqlite::open(&copy, quick()).unwrap();
    assert!(copy.links().get(&id("k")).await.unwrap().is_some());
    assert!(copy.links().get(&id("later")).await.unwrap().is_none());
    let counts = copy
        .ledger(LedgerForm::Delete)
        .unwrap()
        .counts()
        .await
        .unwrap();
    assert_eq!((counts.minted, counts.free), (10, 10));
    let taken = copy.ledger(LedgerForm::Delete).unwrap();
    let batch = curt_testkit::sample::batch("b");
    assert_eq!(
        taken.take(&batch, 99, UnixMillis(0)).await.unwrap().len(),
        10
    );
}
