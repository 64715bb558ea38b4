//! A damaged page of the clicks database costs what is on it: everything else is counted, and health tells.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use curt_testkit::http::Client;
use rusqlite::Connection;
use serde_json::Value;

use super::{Class, wait_until_counted};
use crate::api::{Api, bulk_results};
use crate::site::Site;
use crate::wait::eventually;

const SETTINGS: [&str; 2] = ["server.workers=1", "clicks.flush_every=50ms"];

/// Runs of one size that are put together.
const FAN_IN: usize = 8;

#[test]
fn counting_goes_on_past_a_damaged_page_of_counts() {
    let mut site = Site::start(&SETTINGS);
    let links = 2_000;
    let target = |n| format!("https://example.com/{n}");
    let targets: Vec<String> = (0..links).map(target).collect();
    let keys: Vec<String> = targets
        .chunks(1_000)
        .flat_map(|targets| bulk_results(&site.api().bulk(targets).unwrap()))
        .collect();
    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
    follow(&site, &all);
    wait_until_counted(&site);
    assert!(site.terminate().success());
    let file = site.folder().join("data/clicks.db");
    let damaged_run = damage_a_chunk_of_the_largest_run(&file);

    site.restart();
    // Some of those on the damaged page, and as many that are not.
    let sample: Vec<&str> = all.iter().step_by(10).copied().collect();
    for round in 2..=3 {
        follow(&site, &sample);
        wait_until_counted(&site);
        let counts: Vec<_> = sample.iter().map(|key| counted(&site, key)).collect();
        let exact = counts.iter().filter(|count| **count == Some(round));
        let exact = exact.count();
        println!(
            "damaged: {exact} of {} links are counted exactly",
            sample.len()
        );
        assert!(exact >= sample.len() / 2, "round {round}: {counts:?}");
        assert!(exact < sample.len(), "no link was on the damaged page");
        // What cannot be read is not told as something else.
        let wrong = counts.iter().flatten().filter(|count| **count != round);
        assert_eq!(wrong.count(), 0, "{counts:?}");
    }
    assert!(site.terminate().success());

    // Found when it was to be merged with others of its size; told of once, and after the next start, too.
    add_runs_like(&file, damaged_run, FAN_IN - 1);
    site.restart();
    follow(&site, &sample[..1]);
    let reason = told_damage(&site);
    assert!(reason.contains("damaged since 20"), "{reason}");
    assert!(reason.contains("1 runs of counts"), "{reason}");
    let damaged = site.metrics();
    let runs = damaged.matching(|sample| sample == "curt_clicks_damaged{what=\"runs\"}");
    assert!(runs.iter().any(|(_, count)| *count == 1.0), "{runs:?}");
    let told = site.server().logs().matches("clicks_set_aside").count();
    assert_eq!(told, 1);
    assert_eq!(
        site.api().create("https://example.com/").unwrap().status,
        201
    );
    assert!(site.terminate().success());
    site.restart();
    told_damage(&site);
}

/// The reason on the operators' port; the public one tells that there is one, and stays ready.
fn told_damage(site: &Site) -> String {
    let check = |health: &Value| -> Option<Value> {
        let checks = health["checks"].as_array()?.iter();
        let mut named = checks.filter(|check| check["name"] == "clicks_database");
        named.next().filter(|check| check["ok"] == false).cloned()
    };
    let admin = site.server().admin().unwrap();
    let reason = eventually(super::WAIT_MAX, || {
        let health = Client::new(admin).get("/health/ready").unwrap();
        let health = health.json().unwrap();
        check(&health).ok_or_else(|| health.to_string())
    });
    let public = site.api().get("/health/ready").unwrap();
    assert_eq!(public.status, 200);
    let public = check(&public.json()).unwrap();
    assert!(public["reason"].is_null(), "{public}");
    reason["reason"].as_str().unwrap().to_owned()
}

fn follow(site: &Site, keys: &[&str]) {
    let mut api = Api::new(site.http(), "");
    for key in keys {
        let answer = api.send(&Class::Human.request(&format!("/{key}"))).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
    }
}

/// What the link's report says; `None` when it cannot be made.
fn counted(site: &Site, key: &str) -> Option<u64> {
    let answer = site
        .api()
        .get(&format!("/api/v1/links/{key}/stats"))
        .unwrap();
    (answer.status == 200).then(|| answer.json()["totals"]["total"].as_u64().unwrap())
}

/// Overwrites a page that holds the middle of a chunk's content, and says whose.
fn damage_a_chunk_of_the_largest_run(file: &Path) -> i64 {
    let connection = Connection::open(file).unwrap();
    let largest = "SELECT run, id FROM rollup_chunks WHERE run = (SELECT id FROM rollup_runs ORDER BY bytes DESC LIMIT 1) \
                   ORDER BY first_key LIMIT 1 OFFSET 1";
    let (run, chunk): (i64, i64) = connection
        .query_row(largest, (), |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    // The overflow pages of a row are numbered behind the path of its cell; a chunk's own are found by its bytes.
    let content: Vec<u8> = connection
        .query_row(
            "SELECT content FROM rollup_chunks WHERE id = ?1",
            [chunk],
            |row| row.get(0),
        )
        .unwrap();
    drop(connection);
    let bytes = std::fs::read(file).unwrap();
    let piece = &content[content.len() - 64..];
    let place = bytes.windows(piece.len()).position(|found| found == piece);
    let place = place.expect("the end of the chunk lies in one page");
    let file = File::options().write(true).open(file).unwrap();
    file.write_all_at(&[0xa5; 64], place as u64).unwrap();
    file.sync_all().unwrap();
    run
}

/// Adds runs of the same day and size that hold nothing, so that all of them are merged.
fn add_runs_like(file: &Path, run: i64, count: usize) {
    let connection = Connection::open(file).unwrap();
    let copy = "INSERT INTO rollup_runs (day, subjects, bytes) SELECT day, 0, bytes FROM rollup_runs WHERE id = ?1";
    for _ in 0..count {
        connection.execute(copy, [run]).unwrap();
    }
}
