//! How the SQLite adapter shares commits, and what it keeps from growing.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use curt_core::limits::PAGE_LINKS_MAX;
use curt_core::ports::LedgerForm;
use curt_core::ports::{ListOrder, ListQuery};
use curt_core::{Link, OwnerId};
use curt_sqlite::{Access, Sqlite, SqliteSettings, Synchronous};
use curt_testkit::sample::{NOW, SampleWrites, batch, key, keys, link};
use curt_testkit::stop::Rendezvous;
use rusqlite::Connection;

fn open(folder: &Path, synchronous: Synchronous) -> Arc<Sqlite> {
    let settings = SqliteSettings {
        synchronous,
        checkpoint_bytes: 256 << 10,
        wal_bytes_max: 2 << 20,
        ..SqliteSettings::default()
    };
    Sqlite::open(folder.join("curt.db"), settings).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_wait_together_share_commits() {
    const CALLERS: usize = 64;
    const CALLS: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), Synchronous::Full);
    let before = db.stats();
    let callers = (0..CALLERS).map(|caller| {
        let store = db.links();
        tokio::spawn(async move {
            for n in 0..CALLS {
                let request = vec![link(&format!("c{caller}-{n}"))];
                let reply = store.insert(request).await.unwrap();
                assert_eq!(reply, [true]);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    let after = db.stats();
    let commits = after.commits - before.commits;
    assert_eq!(after.calls - before.calls, (CALLERS * CALLS) as u64);
    assert!(
        commits * 4 <= (CALLERS * CALLS) as u64,
        "{commits} commits for {} calls",
        CALLERS * CALLS
    );
    assert_eq!(
        db.links().counts().await.unwrap().live,
        (CALLERS * CALLS) as u64
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_stays_bounded_under_writes_and_reads() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), Synchronous::Normal);
    let store = db.links();
    let wal = folder.path().join("curt.db-wal");
    let mut largest = 0;
    for n in 0..200 {
        let links = (0..100).map(|m| link(&format!("k{n}-{m}"))).collect();
        store.insert(links).await.unwrap();
        store
            .list(&everything(ListOrder::NewestFirst))
            .await
            .unwrap();
        largest = largest.max(wal.metadata().unwrap().len());
    }
    assert!(
        largest < 4 << 20,
        "the log grew to {largest} bytes, twice what is allowed"
    );
    assert!(db.stats().checkpoints > 0);
    db.close().await;
    assert!(!wal.exists(), "a closed file has no log");
}

/// Long before the log has its largest size, what it holds goes into the data file.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_checkpointed_beside_the_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curt.db");
    let settings = SqliteSettings {
        checkpoint_bytes: 256 << 10,
        wal_bytes_max: 1 << 40,
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    };
    let db = Sqlite::open(&path, settings).unwrap();
    for n in 0.. {
        if path.metadata().unwrap().len() > 1 << 20 {
            break;
        }
        assert!(n < 500, "nothing reaches the data file");
        insert_thousand(&db, n).await;
    }
}

async fn insert_thousand(db: &Arc<Sqlite>, n: usize) {
    let links = (0..1_000).map(|m| link(&format!("k{n}-{m}"))).collect();
    db.links().insert(links).await.unwrap();
}

/// A reader that never ends keeps the log from starting over; once it does, the log is cut back.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_cut_back_when_a_long_reader_ends() {
    let folder = tempfile::tempdir().unwrap();
    let wal = folder.path().join("curt.db-wal");
    let wal_bytes = || wal.metadata().unwrap().len();
    let db = open(folder.path(), Synchronous::Normal);
    insert_thousand(&db, 0).await;
    let reader = Connection::open(folder.path().join("curt.db")).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM links;")
        .unwrap();
    let mut n = 1;
    while wal_bytes() <= 6 << 20 {
        insert_thousand(&db, n).await;
        n += 1;
    }
    reader.execute_batch("COMMIT").unwrap();
    let ended = n;
    while wal_bytes() > 4 << 20 {
        assert!(n < ended + 100, "the log still has {} bytes", wal_bytes());
        insert_thousand(&db, n).await;
        n += 1;
    }
}

/// A copy of the data file alone, as `cp` makes one, has every commit when the server is quiet.
#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_quiet_server_is_whole_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curt.db");
    let wal = folder.path().join("curt.db-wal");
    let settings = SqliteSettings {
        checkpoint_idle: Duration::from_millis(20),
        ..SqliteSettings::default()
    };
    let db = Sqlite::open(&path, settings).unwrap();
    for round in 0..3_u64 {
        for n in 0..5 {
            let links = vec![link(&format!("r{round}n{n}"))];
            let made = db.links().insert(links).await.unwrap();
            assert_eq!(made, [true]);
        }
        // A reader in the way delays it, and is not disturbed.
        let reader = (round == 1).then(|| {
            let reader = Connection::open(&path).unwrap();
            let begin = "BEGIN; SELECT count(*) FROM links;";
            reader.execute_batch(begin).unwrap();
            reader
        });
        if let Some(reader) = reader {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(wal.metadata().unwrap().len() > 0, "the reader needs it");
            reader.execute_batch("COMMIT").unwrap();
        }
        let emptied = async {
            while wal.metadata().unwrap().len() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let emptied = tokio::time::timeout(Duration::from_secs(60), emptied).await;
        emptied.expect("the log is truncated");
        let copy = tempfile::tempdir().unwrap();
        let copied = copy.path().join("curt.db");
        std::fs::copy(&path, &copied).unwrap();
        let copied = Sqlite::open(&copied, SqliteSettings::default()).unwrap();
        let counts = copied.links().counts().await.unwrap();
        assert_eq!(counts.live, (round + 1) * 5, "round {round}");
        copied.close().await;
    }
}

/// What a command changes beside a server is in the data file when it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_beside_a_server_leaves_nothing_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curt.db");
    let wal = folder.path().join("curt.db-wal");
    let server = Sqlite::open(&path, SqliteSettings::default()).unwrap();
    let settings = SqliteSettings {
        access: Access::Command,
        ..SqliteSettings::default()
    };
    let command = Sqlite::open(&path, settings).unwrap();
    let made = command.links().insert(vec![link("made")]).await.unwrap();
    assert_eq!(made, [true]);
    assert!(wal.metadata().unwrap().len() > 0);
    command.close().await;
    assert_eq!(wal.metadata().unwrap().len(), 0);
    server.close().await;
}

fn everything(order: ListOrder) -> ListQuery {
    ListQuery {
        order,
        limit: PAGE_LINKS_MAX,
        ..ListQuery::default()
    }
}

/// One page never reads the whole table, and a walk over pages still finds the needle.
#[tokio::test]
async fn a_search_over_many_links_pages_on() {
    const LINKS: usize = 120_000;
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), Synchronous::Normal);
    let store = db.links();
    for first in (0..LINKS).step_by(1_000) {
        let made = |n: usize| Link {
            owner: OwnerId(u64::from(n != 10)),
            ..link(&format!("k{n:06}"))
        };
        let links = (first..first + 1_000).map(made).collect();
        store.insert(links).await.unwrap();
    }
    for order in [
        ListOrder::NewestFirst,
        ListOrder::OldestFirst,
        ListOrder::KeyRising,
        ListOrder::KeyFalling,
    ] {
        let mut query = everything(order);
        query.search = Some("K000010".into());
        let (mut pages, mut found) = (0, Vec::new());
        loop {
            let page = store.list(&query).await.unwrap();
            pages += 1;
            found.extend(page.links.into_iter().map(|link| link.id.key));
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, [key("k000010")], "{order:?}");
        assert_eq!(pages, 3, "{order:?}: 120,000 rows by 50,000");
        // The owner of a single link gets it in one page, however many links others have.
        let own = ListQuery {
            owner: Some(OwnerId(0)),
            ..everything(order)
        };
        let page = store.list(&own).await.unwrap();
        assert_eq!((page.links.len(), page.next), (1, None), "{order:?}");
    }
}

/// D1: "select an unused key, then mark it as used" on `keys(key, status)` hands a key out twice.
#[test]
fn select_then_update_hands_out_a_key_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("naive.db");
    let setup = Connection::open(&path).unwrap();
    setup
        .execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE keys (key TEXT PRIMARY KEY, status TEXT NOT NULL);
             INSERT INTO keys VALUES ('abc', 'unused'), ('def', 'unused');",
        )
        .unwrap();
    let both_have_selected = Arc::new(Rendezvous::of(2));
    let takers: Vec<_> = (0..2)
        .map(|_| {
            let (path, barrier) = (path.clone(), Arc::clone(&both_have_selected));
            std::thread::spawn(move || {
                let connection = Connection::open(path).unwrap();
                connection.busy_timeout(Duration::from_secs(5)).unwrap();
                let key: String = connection
                    .query_row(
                        "SELECT key FROM keys WHERE status = 'unused' ORDER BY key LIMIT 1",
                        [],
                        |row| row.get(0),
                    )
                    .unwrap();
                barrier.wait();
                connection
                    .execute("UPDATE keys SET status = 'used' WHERE key = ?1", [&key])
                    .unwrap();
                key
            })
        })
        .collect();
    let taken: Vec<String> = takers
        .into_iter()
        .map(|taker| taker.join().unwrap())
        .collect();
    assert_eq!(
        taken,
        ["abc", "abc"],
        "the race that the adapter must close"
    );
}

/// D1, closed: the same table in the adapter's way, by two processes' worth of connections at once.
#[tokio::test(flavor = "multi_thread")]
async fn takers_on_two_connections_never_share_a_key_d1() {
    const KEYS: usize = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let server = open(folder.path(), Synchronous::Normal);
    let beside = Sqlite::open(
        folder.path().join("curt.db"),
        SqliteSettings {
            access: curt_sqlite::Access::Command,
            synchronous: Synchronous::Normal,
            ..SqliteSettings::default()
        },
    )
    .unwrap();
    let form = LedgerForm::Status;
    for part in keys("k", KEYS).chunks(500) {
        server.ledger(form).unwrap().insert(part).await.unwrap();
    }
    let takers = [&server, &beside]
        .into_iter()
        .enumerate()
        .map(|(taker, db)| {
            let ledger = db.ledger(form).unwrap();
            tokio::spawn(async move {
                let mut own = Vec::new();
                for n in 0.. {
                    let name = batch(&format!("{taker}-{n}"));
                    let taken = ledger.take(&name, 7, NOW).await.unwrap();
                    if taken.is_empty() {
                        break;
                    }
                    own.extend(taken);
                }
                own
            })
        });
    let mut taken = Vec::new();
    for taker in takers.collect::<Vec<_>>() {
        taken.extend(taker.await.unwrap());
    }
    assert_eq!(taken.len(), KEYS, "every key was taken");
    let distinct: HashSet<_> = taken.into_iter().collect();
    assert_eq!(distinct.len(), KEYS, "and none twice");
}
