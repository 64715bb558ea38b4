//! `curt copy`: from a file to PostgreSQL and back, killed on the way, and beside a server that is written to.

mod chain;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod refusals;
mod switch;

use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_core::ports::{RequestToken, SeededDatabase};
use curt_core::{Link, Revision};
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;
use curt_testkit::process::App;
use curt_testkit::sample::{SampleWrites as _, full_link, id, idempotent, later, link, plan};
use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::plant::stop;
use crate::alone::Company;
use crate::api::Api;
use crate::length::length;

const WAIT_MAX: Duration = Duration::from_secs(120);

fn app() -> App {
    App::new(env!("CARGO_BIN_EXE_curt")).unwrap()
}

fn sqlite(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// Fills a file with links in every state, and all that is kept beside them.
fn fill(path: &Path, count: u64) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let settings = SqliteSettings {
            synchronous: Synchronous::Normal,
            ..SqliteSettings::default()
        };
        let file = Sqlite::open(path, settings).unwrap();
        let links = file.links();
        fill_links(&links, count).await;
        file.close().await;
    });
}

async fn fill_links(links: &Arc<dyn SeededDatabase>, count: u64) {
    let made = |n: u64| Link {
        created_at: later(n),
        updated_at: later(n),
        max_clicks: n.is_multiple_of(3).then_some(9),
        ..link(&key(n))
    };
    for first in (0..count).step_by(1_000) {
        let last = (first + 1_000).min(count);
        links
            .insert((first..last).map(made).collect())
            .await
            .unwrap();
    }
    // Rows come in the order of creation, which PostgreSQL goes by.
    let at = |n: u64, link: Link| Link {
        created_at: later(count + n),
        updated_at: later(count + n),
        ..link
    };
    links.insert(vec![at(0, full_link("full"))]).await.unwrap();
    let token = Some(RequestToken([7; 16]));
    links
        .insert_if_absent(vec![at(1, link("token"))], token)
        .await
        .unwrap();
    for n in (0..300).step_by(3) {
        links
            .spend_click(&id(&key(n)), Revision::FIRST)
            .await
            .unwrap();
    }
    for n in 300..500 {
        links.delete(&id(&key(n)), later(count)).await.unwrap();
    }
    links.release(later(count), 100).await.unwrap();
    links
        .insert((300..320).map(|n| at(n, made(n))).collect())
        .await
        .unwrap();
    links.seed(&[id("seed1"), id("seed2")]).await.unwrap();
    for n in 0..20 {
        let request = idempotent(&format!("request {n}\n"), 1);
        links.begin(&request, &plan(1, &["x"])).await.unwrap();
    }
}

/// In another order than that of creation.
fn key(n: u64) -> String {
    format!("k{:07}", n * 7_919 % 10_000_019)
}

/// All that a file keeps of links, in text.
fn dump(path: &Path) -> Vec<Vec<Vec<Cell>>> {
    let columns = "domain, key, target, owner, state, origin, generation, version, created_at, updated_at, expires_at, \
         valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, title, tags, made_with, \
         request_token";
    let sqls = [
        &format!("SELECT {columns} FROM links WHERE state <> 3 ORDER BY key"),
        // Of seeds nothing else counts.
        "SELECT domain, key, generation, version, origin FROM links WHERE state = 3 ORDER BY key",
        // Lists are in this order.
        "SELECT key FROM links WHERE state < 2 ORDER BY id",
        "SELECT key, spent FROM link_clicks JOIN links ON id = link ORDER BY key",
        "SELECT key, tag FROM link_tags JOIN links ON id = link ORDER BY key, tag",
        "SELECT domain, key, generation FROM key_generations ORDER BY key",
        "SELECT * FROM released_keys ORDER BY shard, origin",
        "SELECT * FROM idempotency ORDER BY owner, key",
        "SELECT * FROM counters WHERE name LIKE 'links.%' AND value <> 0 ORDER BY name",
    ];
    rows_of(path, &sqls)
}

/// What each statement finds in a file.
fn rows_of(path: &Path, sqls: &[&str]) -> Vec<Vec<Vec<Cell>>> {
    let file = Connection::open(path).unwrap();
    let rows = sqls.iter().map(|sql| {
        let mut statement = file.prepare(sql).unwrap();
        let width = statement.column_count();
        let cells = |row: &rusqlite::Row<'_>| (0..width).map(|n| row.get(n)).collect();
        let rows = statement.query_map((), cells).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    });
    rows.collect()
}

fn spawn(app: &App, arguments: &[&str]) -> Child {
    let mut command = app.command();
    command.args(arguments);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn json_of(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The options of a copy.
struct Way<'a>(Vec<&'a str>);

impl<'a> Way<'a> {
    fn new(from: &[&'a str], to: &[&'a str]) -> Self {
        let from = from.iter().flat_map(|url| ["--from", url]);
        let to = to.iter().flat_map(|url| ["--to", url]);
        Self(["copy"].into_iter().chain(from).chain(to).collect())
    }

    fn with(&self, more: &[&'a str]) -> Vec<&'a str> {
        self.0.iter().chain(more).copied().collect()
    }
}

/// How many links a copy that is to be killed may copy in a second: few enough that it is met in the middle of them.
fn rate_of(links: u64) -> String {
    (links / 8).clamp(100, 50_000).to_string()
}

/// Copies so many links, and is killed so often before it comes to its end, each time after it has come further.
fn copy_over_kills(
    app: &App,
    way: Way<'_>,
    links: u64,
    kills: usize,
    noted: impl Fn() -> Option<String>,
) -> Value {
    let rate = rate_of(links);
    for _ in 0..kills {
        let before = noted();
        let mut copy = spawn(app, &way.with(&["--rate", &rate, "--resume"]));
        let deadline = Instant::now() + WAIT_MAX;
        let is_further = |now: &String| now.contains("at links") && Some(now) != before.as_ref();
        while !noted().is_some_and(|now| is_further(&now)) {
            if copy.try_wait().unwrap().is_some() || Instant::now() >= deadline {
                copy.kill().unwrap();
                let output = copy.wait_with_output().unwrap();
                panic!("the copy was not met in the middle: {output:?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        copy.kill().unwrap();
        copy.wait().unwrap();
    }
    let resumed = way.with(&["--json", "--resume"]);
    json_of(&spawn(app, &resumed).wait_with_output().unwrap())
}

/// What a copy has noted in the file that it copies to.
fn noted_in(path: &Path) -> Option<String> {
    let text = |file: Connection| {
        file.query_row(
            "SELECT text FROM shard_map_notes WHERE name = 'copy'",
            (),
            |row| row.get(0),
        )
    };
    path.exists()
        .then(|| Connection::open(path).and_then(text).ok())?
}

#[test]
fn links_copied_to_postgres_and_back_over_kills_are_the_same_k1_k2_l3() {
    let _company = Company::join();
    let database = need!(shared()).database("copy").unwrap();
    let app = app();
    let (first, last) = (app.folder().join("first.db"), app.folder().join("last.db"));
    let count = length(8_000, 1_000_000);
    fill(&first, count);
    let (first_url, last_url, url) = (sqlite(&first), sqlite(&last), database.url());
    let way = Way::new(&[&first_url], &[&url]);
    let there = copy_over_kills(&app, way, count, length(2, 5), || {
        let noted = database.sql("SELECT text FROM shard_map_notes");
        noted.ok().filter(|text| !text.is_empty())
    });
    let items = there["links"]["items"].as_u64().unwrap();
    assert!(items > count, "{there}");
    let copied = there["links"]["copied"].as_u64().unwrap();
    assert!(
        copied < items,
        "nothing was copied before the last kill: {there}"
    );
    let back = Way::new(&[&url], &[&last_url]);
    let back = copy_over_kills(&app, back, count, 1, || noted_in(&last));
    assert_eq!(back["links"]["checksum"], there["links"]["checksum"]);
    assert_same_links(&first, &last);
}

/// Compares all that two files keep of links.
fn assert_same_links(first: &Path, last: &Path) {
    let (before, after) = (dump(first), dump(last));
    for (part, (before, after)) in before.iter().zip(&after).enumerate() {
        assert!(!before.is_empty(), "part {part} is empty");
        let differs = before
            .iter()
            .zip(after)
            .position(|(before, after)| before != after);
        assert_eq!(
            differs,
            None,
            "part {part}: {:?}",
            differs.map(|n| (&before[n], &after[n]))
        );
        assert_eq!(before.len(), after.len(), "part {part}");
    }
}

/// Creates, edits and deletes until told to stop, and returns the links with their targets; `None`: deleted.
fn write_all_the_time(mut api: Api, ended: &AtomicBool) -> Vec<(String, Option<String>)> {
    let mut made: Vec<(String, Option<String>)> = Vec::new();
    while !ended.load(Ordering::SeqCst) {
        let n = made.len();
        let target = format!("https://example.com/{n}");
        let answer = api.create(&target).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        made.push((
            answer.json()["key"].as_str().unwrap().to_owned(),
            Some(target),
        ));
        // Of links that were copied long ago, too.
        let (key, target) = &mut made[n / 2];
        match n % 10 {
            4 => {
                api.delete(key).unwrap();
                *target = None;
            }
            7 if target.is_some() => {
                let edited = format!("https://example.com/edited/{n}");
                let changes = serde_json::json!({ "target": edited });
                assert_eq!(api.edit(key, &changes).unwrap().status, 200);
                *target = Some(edited);
            }
            _ => {}
        }
    }
    made
}

#[test]
fn a_copy_beside_a_server_is_identical_after_the_switch_l1() {
    let _company = Company::join();
    let database = need!(shared()).database("copy").unwrap();
    let old = app()
        .setting("server.drain_delay", "0s")
        .ready_within(WAIT_MAX);
    old.run(&["migrate", "--new"]).unwrap();
    let path = old.folder().join("data/curt.db");
    old.run(&["user", "add", "tests@example.com"]).unwrap();
    let token = old
        .run(&["api-key", "add", "tests", "--user", "tests@example.com"])
        .unwrap();
    let server = old.start().unwrap();
    let api = Api::new(server.http().unwrap(), token.trim());
    let ended = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let ended = Arc::clone(&ended);
        move || write_all_the_time(api, &ended)
    });
    thread::sleep(Duration::from_millis(500));
    let (from, to) = (sqlite(&path), database.url());
    let arguments = ["copy", "--from", &from, "--to", &to, "--follow", "--json"];
    for _ in 0..length(1, 5) {
        let resumed: Vec<&str> = arguments.iter().copied().chain(["--resume"]).collect();
        let mut killed = spawn(&old, &resumed);
        thread::sleep(Duration::from_millis(900));
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    let resumed: Vec<&str> = arguments.iter().copied().chain(["--resume"]).collect();
    let copy = spawn(&old, &resumed);
    thread::sleep(length(Duration::from_secs(2), Duration::from_secs(30)));
    ended.store(true, Ordering::SeqCst);
    let made = writer.join().unwrap();
    stop(server);
    let pid = Pid::from_raw(copy.id().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let report = json_of(&copy.wait_with_output().unwrap());
    assert!(report["links"]["checksum"].is_string(), "{report}");
    assert!(
        report["links"]["followed"].as_u64().unwrap() > 0,
        "{report}"
    );
    assert_eq!(triggers(&path), 0, "the source still remembers changes");
    let new = app()
        .setting("store.links", &to)
        .setting("server.drain_delay", "0s")
        .setting("limits.misses_per_address", "")
        .ready_within(WAIT_MAX);
    let server = new.start().unwrap();
    let mut api = Api::new(server.http().unwrap(), "");
    assert!(made.len() > 50, "too few writes: {}", made.len());
    for (key, target) in &made {
        let answer = api.follow(key).unwrap();
        assert_eq!(
            answer.header("location"),
            target.as_deref(),
            "{key}: {answer:?}"
        );
    }
    stop(server);
}

fn triggers(path: &Path) -> i64 {
    let file = Connection::open(path).unwrap();
    let count = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'";
    file.query_row(count, (), |row| row.get(0)).unwrap()
}
