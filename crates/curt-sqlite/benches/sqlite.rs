//! What the SQLite adapter costs: rows per second against plain SQLite, bytes per link, microseconds per look-up.
//!
//! `cargo bench -p curt-sqlite --bench sqlite -- [LINKS] [FOLDER]`: one million links in a temporary folder unless
//! told otherwise. Compare figures of one run only; the disk of a virtual machine drifts.

#![expect(clippy::expect_used, reason = "a failed step ends the measurement")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use curt_core::ports::{
    BatchId, CreationOutcome, CreationPlan, IdempotentRequest, LedgerForm, PlannedKey,
    RequestToken, SeededDatabase,
};
use curt_core::{
    Alphabet, DomainId, Key, KeyOrigin, Link, LinkId, OwnerId, Target, UnixMillis, placement,
};
use curt_sqlite::{Sqlite, SqliteSettings};
use rusqlite::Connection;

const MADE_AT: i64 = 1_790_000_000_000;
const TWO_YEARS: Duration = Duration::from_secs(2 * 365 * 24 * 3_600);
const KEYS_IN_LEDGER: u64 = 100_000;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|text| text != "--bench");
    let links: u64 = arguments
        .next()
        .map_or(1_000_000, |text| text.parse().expect("LINKS is a number"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = arguments
        .next()
        .map_or_else(|| folder.path().to_path_buf(), Into::into);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(measure(&folder, links));
}

async fn measure(folder: &Path, links: u64) {
    let path = folder.join("curt.db");
    let db = Sqlite::open(&path, SqliteSettings::default()).expect("open");
    let store = db.links();
    let took = insert_in_groups(&store, 0..links, 1_000).await;
    print("filling, 1,000 links a call", links, took.iter().sum());
    measure_size(&db, &path, links).await;

    let db = Sqlite::open(&path, SqliteSettings::default()).expect("open");
    let store = db.links();
    measure_reads(&db, links).await;
    let mut next = links;
    for _round in 0..3 {
        next = measure_inserts(&db, &store, next).await;
        next = measure_plain(&path, next);
    }
    measure_idempotent(&db, &store, next).await;
    measure_ledger(&db).await;
    println!("{:?}", db.stats());
    db.close().await;
}

fn print(what: &str, count: u64, took: Duration) {
    let rate = count as f64 / took.as_secs_f64();
    println!("{what:52} {rate:12.0} /s");
}

/// Link number `n`: a random-looking key of seven symbols and a target of usual length.
fn link(n: u64) -> Link {
    let hash = placement::hash(&n.to_le_bytes());
    let key = Alphabet::Base62
        .encode(u128::from(hash) % 62_u128.pow(7), 7)
        .expect("seven symbols");
    let at = UnixMillis(MADE_AT + i64::try_from(n / 30).expect("a time"));
    let target = format!("https://www.example.com/articles/2026/{hash:016x}?n={n}");
    Link {
        id: LinkId::new(DomainId::DEFAULT, key),
        target: Target::from_serialised(target).expect("a target"),
        created_at: at,
        updated_at: at,
        expires_at: Some(at.plus(TWO_YEARS)),
        ..curt_testkit::sample::link("a")
    }
}

/// Inserts and returns the time of each call, without that of making the links.
async fn insert_in_groups(
    store: &Arc<dyn SeededDatabase>,
    numbers: std::ops::Range<u64>,
    group: usize,
) -> Vec<Duration> {
    let mut took = Vec::new();
    for first in numbers.clone().step_by(group) {
        let numbers = first..(first + group as u64).min(numbers.end);
        let links = numbers.map(link).collect();
        let start = Instant::now();
        store.insert_if_absent(links, None).await.expect("insert");
        took.push(start.elapsed());
    }
    took
}

/// A single create with an idempotency key, in three steps and at once, against one without.
async fn measure_idempotent(db: &Sqlite, store: &Arc<dyn SeededDatabase>, mut next: u64) {
    for (callers, creates) in [(1, 500), (64, 300)] {
        for _round in 0..3 {
            for way in ["plain", "three steps", "at once"] {
                let (before, cpu, start) = (db.stats(), cpu_time(), Instant::now());
                let tasks = (0..callers).map(|caller| {
                    let store = Arc::clone(store);
                    let first = next + caller * creates;
                    tokio::spawn(async move {
                        for number in first..first + creates {
                            create(&store, way, number).await;
                        }
                    })
                });
                for task in tasks.collect::<Vec<_>>() {
                    task.await.expect("a caller");
                }
                let (took, count) = (start.elapsed(), callers * creates);
                next += count;
                let cpu = (cpu_time() - cpu).as_secs_f64() * 1e6 / count as f64;
                let latency = took.as_secs_f64() * 1e6 * callers as f64 / count as f64;
                let commits = db.stats().commits - before.commits;
                println!(
                    "{callers:2} callers, {way:11} {latency:8.0} µs, {cpu:5.1} µs of CPU, {commits} commits"
                );
            }
        }
    }
}

async fn create(store: &Arc<dyn SeededDatabase>, way: &str, number: u64) {
    let link = link(number);
    if way == "plain" {
        store
            .insert_if_absent(vec![link], None)
            .await
            .expect("insert");
        return;
    }
    let request = IdempotentRequest {
        owner: OwnerId(1),
        key: format!("{number:032x}").into(),
        fingerprint: [7; 32],
    };
    let mut token = [0; 16];
    token[..8].copy_from_slice(&number.to_le_bytes());
    let plan = CreationPlan {
        token: RequestToken(token),
        version: 0,
        at: link.created_at,
        keys: vec![PlannedKey {
            id: link.id.clone(),
            origin: KeyOrigin::Ledger,
        }],
    };
    if way == "at once" {
        let created = store.create_at_once(&request, &plan, vec![link]).await;
        assert!(created.expect("create").outcome.is_some());
        return;
    }
    store.begin(&request, &plan).await.expect("begin");
    let inserted = store.insert_if_absent(vec![link], Some(plan.token)).await;
    let outcome = CreationOutcome::of(&plan, &inserted.expect("insert")).expect("a free key");
    let finished = store.finish(&request, plan.token, outcome).await;
    finished.expect("finish");
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("ticks");
    Duration::from_millis((ticks(13) + ticks(14)) * 10)
}

async fn measure_inserts(db: &Sqlite, store: &Arc<dyn SeededDatabase>, mut next: u64) -> u64 {
    for group in [1, 256, 1_000] {
        let count = if group == 1 { 2_000 } else { 50 * group };
        let took = insert_in_groups(store, next..next + count, group as usize).await;
        print(
            &format!("one caller, {group} links a call"),
            count,
            took.iter().sum(),
        );
        next += count;
    }
    for (callers, group) in [(64, 1), (16, 256)] {
        let calls = if group == 1 { 1_000 } else { 20 };
        let before = db.stats();
        let start = Instant::now();
        let mut tasks = Vec::new();
        for caller in 0..callers {
            let store = Arc::clone(store);
            let first = next + caller * calls * group;
            tasks.push(tokio::spawn(async move {
                insert_in_groups(&store, first..first + calls * group, group as usize).await
            }));
        }
        let mut took = Vec::new();
        for task in tasks {
            took.extend(task.await.expect("a caller"));
        }
        let count = callers * calls * group;
        let commits = db.stats().commits - before.commits;
        print(
            &format!("{callers} callers, {group} links a call ({commits} commits)"),
            count,
            start.elapsed(),
        );
        print_shares("    a call takes", took);
        next += count;
    }
    next
}

/// The same rows into the same tables by the shortest possible program.
fn measure_plain(path: &Path, mut next: u64) -> u64 {
    let connection = Connection::open(path).expect("open");
    connection
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -32768;")
        .expect("settings");
    for group in [1, 256, 1_000] {
        let count = if group == 1 { 2_000 } else { 50 * group };
        let mut took = Duration::ZERO;
        for first in (next..next + count).step_by(group as usize) {
            let links: Vec<Link> = (first..first + group).map(link).collect();
            let start = Instant::now();
            plain_insert(&connection, &links).expect("insert");
            took += start.elapsed();
        }
        print(
            &format!("plain SQLite, {group} links a transaction"),
            count,
            took,
        );
        next += count;
    }
    next
}

fn plain_insert(connection: &Connection, links: &[Link]) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO links (domain, key, target, owner, state, origin, generation, version, created_at, expires_at, \
         visibility, was_permanent, forward_query) VALUES (0, ?1, ?2, 1, 0, 1, 1, 1, ?3, ?4, 0, 0, 0)",
    )?;
    for link in links {
        statement.execute((
            link.id.key.as_str(),
            link.target.as_str(),
            link.created_at.0,
            link.expires_at.map(|at| at.0),
        ))?;
    }
    connection.execute_batch("COMMIT")
}

async fn measure_size(db: &Arc<Sqlite>, path: &Path, links: u64) {
    db.close().await;
    let targets: usize = (0..links).map(|n| link(n).target.as_str().len()).sum();
    let file = path.metadata().expect("the file").len();
    let beyond = (file as f64 - targets as f64) / links as f64;
    println!("bytes on disk per link beyond its target: {beyond:.1}");
}

async fn measure_reads(db: &Arc<Sqlite>, links: u64) {
    let store = db.links();
    read(&store, links, "look-up on the caller's thread", Hop::None).await;
    read(&store, links, "look-up on another thread", Hop::Thread).await;
    let stop = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicU64::new(0));
    let writer = {
        let (stop, written, db) = (Arc::clone(&stop), Arc::clone(&written), Arc::clone(db));
        tokio::spawn(async move {
            let cursor = db.cursor();
            while !stop.load(Ordering::Relaxed) {
                let n = written.load(Ordering::Relaxed);
                cursor.advance("bench", n, n + 1).await.expect("advance");
                written.store(n + 1, Ordering::Relaxed);
            }
        })
    };
    let what = "look-up on the caller's thread, beside a writer";
    read(&store, links, what, Hop::None).await;
    stop.store(true, Ordering::Relaxed);
    writer.await.expect("the writer");
}

#[derive(Clone, Copy, PartialEq)]
enum Hop {
    None,
    Thread,
}

async fn read(store: &Arc<dyn SeededDatabase>, links: u64, what: &str, hop: Hop) {
    const READS: u64 = 100_000;
    let mut took = Vec::with_capacity(READS as usize);
    for n in 0..READS {
        let id = link(placement::hash(&(n + links).to_le_bytes()) % links).id;
        let start = Instant::now();
        let found = if hop == Hop::None {
            store.get(&id).await
        } else {
            let store = Arc::clone(store);
            let handle = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || handle.block_on(store.get(&id)))
                .await
                .expect("a read")
        };
        took.push(start.elapsed());
        assert!(found.expect("read").is_some());
    }
    print_shares(what, took);
}

fn print_shares(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |share: f64| took[(took.len() as f64 * share) as usize].as_secs_f64() * 1e6;
    println!(
        "{what:52} p50 {:8.1} us  p99 {:8.1} us  p99.9 {:8.1} us",
        at(0.5),
        at(0.99),
        at(0.999)
    );
}

async fn measure_ledger(db: &Arc<Sqlite>) {
    for form in [
        LedgerForm::Delete,
        LedgerForm::Status,
        LedgerForm::UsedTable,
    ] {
        let ledger = db.ledger(form).expect("a form");
        let keys: Vec<Key> = (0..KEYS_IN_LEDGER)
            .map(|n| link(u64::MAX / 2 + n + KEYS_IN_LEDGER * form as u64).id.key)
            .collect();
        let start = Instant::now();
        for part in keys.chunks(1_000) {
            ledger.insert(part).await.expect("insert");
        }
        print(
            &format!("ledger {form:?}: insert by 1,000"),
            KEYS_IN_LEDGER,
            start.elapsed(),
        );
        let start = Instant::now();
        let mut taken = 0;
        for n in 0.. {
            let batch = BatchId(format!("{form:?}{n}").into());
            let keys = ledger
                .take(&batch, 1_000, UnixMillis(0))
                .await
                .expect("take");
            if keys.is_empty() {
                break;
            }
            taken += keys.len() as u64;
            ledger.close(&[batch]).await.expect("close");
        }
        print(
            &format!("ledger {form:?}: take and close by 1,000"),
            taken,
            start.elapsed(),
        );
    }
}
