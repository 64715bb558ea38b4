//! A damaged page of the clicks database costs what is on it: everything else is counted, and health tells.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use curt_testkit::http::Client;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{Class, new_link, wait_until_counted};
use crate::api::{Api, bulk_results};
use crate::site::Site;
use crate::wait::eventually;

const SETTINGS: [&str; 2] = ["server.workers=1", "clicks.flush_every=50ms"];

#[test]
fn counting_goes_on_past_a_damaged_page_of_days() {
    count_past_damage_of("click_days", 150);
}

#[test]
fn counting_goes_on_past_a_damaged_page_of_subjects() {
    count_past_damage_of("sqlite_autoindex_click_subjects_1", 900);
}

#[test]
fn a_day_that_cannot_be_decoded_is_set_aside_and_begun_anew() {
    let mut site = Site::start(&SETTINGS);
    let (hit, spared) = (new_link(&site, &json!({})), new_link(&site, &json!({})));
    follow(&site, &[&hit, &spared]);
    wait_until_counted(&site);
    assert!(site.terminate().success());
    let sql = "UPDATE click_days SET counts = x'ff00ff' WHERE id >> 22 = \
               (SELECT id FROM click_subjects WHERE name = ?1)";
    let file = Connection::open(site.folder().join("data/clicks.db")).unwrap();
    assert_eq!(file.execute(sql, [&hit]).unwrap(), 1);
    drop(file);
    site.restart();
    follow(&site, &[&hit, &spared]);
    wait_until_counted(&site);
    assert_eq!(counted(&site, &spared), Some(2));
    assert_eq!(counted(&site, &hit), Some(1), "only what came since");
    assert!(told_damage(&site).contains("the counts of 1 days"));
}

fn count_past_damage_of(table: &str, links: usize) {
    let mut site = Site::start(&SETTINGS);
    let target = |n| format!("https://example.com/{n}");
    let targets: Vec<String> = (0..links).map(target).collect();
    let keys = bulk_results(&site.api().bulk(&targets).unwrap());
    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
    follow(&site, &all);
    wait_until_counted(&site);
    assert!(site.terminate().success());
    damage_a_leaf_of(&site.folder().join("data/clicks.db"), table);

    site.restart();
    for round in 2..=3 {
        follow(&site, &all);
        wait_until_counted(&site);
        let counts: Vec<_> = all.iter().map(|key| counted(&site, key)).collect();
        let exact = counts.iter().filter(|count| **count == Some(round));
        let exact = exact.count();
        println!("damaged {table}: {exact} of {links} links are counted exactly");
        assert!(exact >= links / 2, "round {round}: {counts:?}");
        assert!(exact < links, "no link was on the damaged page");
        // What cannot be read is not told as something else.
        let wrong = counts.iter().flatten().filter(|count| **count != round);
        assert_eq!(wrong.count(), 0, "{counts:?}");
    }
    let reason = told_damage(&site);
    assert!(reason.contains("damaged since 20"), "{reason}");
    let damaged = site.metrics();
    let days = damaged.matching(|sample| sample == "curt_clicks_damaged{what=\"days\"}");
    assert!(days.iter().any(|(_, count)| *count > 0.0), "{days:?}");
    // Once, not once a second.
    let told = site.server().logs().matches("clicks_set_aside").count();
    assert_eq!(told, 1);
    assert_eq!(
        site.api().create("https://example.com/").unwrap().status,
        201
    );
    assert!(site.terminate().success());

    // It is still told after the next start.
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

/// Overwrites the last of its leaves.
fn damage_a_leaf_of(file: &Path, table: &str) {
    let connection = Connection::open(file).unwrap();
    let leaves = "SELECT pageno FROM dbstat WHERE name = ?1 AND pagetype = 'leaf' ORDER BY path";
    let mut statement = connection.prepare(leaves).unwrap();
    let pages = statement.query_map([table], |row| row.get(0)).unwrap();
    let pages: Vec<u32> = pages.map(Result::unwrap).collect();
    assert!(pages.len() >= 3, "{table} has {} leaves", pages.len());
    let bytes: u32 = connection
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .unwrap();
    drop(statement);
    drop(connection);
    let page = pages[pages.len() / 2];
    let garbage = vec![0xa5; bytes as usize];
    let file = File::options().write(true).open(file).unwrap();
    let place = u64::from(page - 1) * u64::from(bytes);
    file.write_all_at(&garbage, place).unwrap();
    file.sync_all().unwrap();
}
