//! The clock may step back: nothing is lost, and nothing waits.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use curt_testkit::http::{Client, Request};
use curt_testkit::stop::SetOnDrop;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde_json::json;

use super::{CAPTURED, Class, DROPPED, metric, new_link, report, wait_until_counted};
use crate::api::Api;
use crate::length::length;
use crate::preload::build_library;
use crate::site::Site;
use crate::users::Browser;
use crate::wait::eventually;

const VISITORS: usize = 4;
const TWO_HOURS: u64 = 7_200;
/// Longer than the consumer lets clicks gather: it must read some while the clock is ahead, or their time is not believed.
const STEP: Duration = Duration::from_millis(400);
const THREE_YEARS: u64 = 3 * 365 * 86_400;

/// Stands between the server and the C library: while the file is there, it is as many seconds later as it says. The
/// monotonic clock stays as it is.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    const char *ahead = getenv("CLOCK_AHEAD_FILE");
    int result = real(id, now);
    FILE *file = id == CLOCK_REALTIME && ahead ? fopen(ahead, "r") : NULL;
    long seconds = 0;
    if (file) {
        if (fscanf(file, "%ld", &seconds) == 1) now->tv_sec += seconds;
        fclose(file);
    }
    return result;
}
"#;

#[test]
fn over_a_clock_that_steps_back_every_click_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let ahead = folder.path().join("ahead");
    let mut site = Site::with_environment(
        &["server.workers=2", "clicks.flush_every=50ms"],
        &[
            ("LD_PRELOAD", build_library(folder.path(), CLOCK).as_path()),
            ("CLOCK_AHEAD_FILE", ahead.as_path()),
        ],
    );
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    // Made while the clock is ahead: half of all clicks are dated before that.
    set_ahead(&ahead, TWO_HOURS);
    let key = new_link(&site, &json!({}));
    fs::remove_file(&ahead).unwrap();
    let http = site.http();
    let over = AtomicBool::new(false);
    let answered: u64 = thread::scope(|scope| {
        let visitors = [(); VISITORS].map(|()| {
            scope.spawn(|| {
                let mut api = Api::new(http, "");
                let mut answered = 0;
                while !over.load(Ordering::Relaxed) {
                    let asked = Class::Human.request(&format!("/{key}"));
                    assert_eq!(api.send(&asked).unwrap().status, 302);
                    answered += 1;
                }
                answered
            })
        });
        let end = SetOnDrop::of(&over);
        for _ in 0..length(5, 50) {
            set_ahead(&ahead, TWO_HOURS);
            thread::sleep(STEP);
            fs::remove_file(&ahead).unwrap();
            thread::sleep(STEP);
        }
        drop(end);
        visitors.map(|visitor| visitor.join().unwrap()).iter().sum()
    });
    wait_until_counted(&site);
    assert_eq!(
        (metric(&site, CAPTURED), metric(&site, DROPPED)),
        (answered, 0)
    );
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let range = format!("from={}&to={}", today - 1.day(), today + 1.day());
    let mut api = site.api();
    for path in [
        format!("/api/v1/links/{key}/stats"),
        "/api/v1/stats".to_owned(),
    ] {
        assert_eq!(
            report(&mut api, &format!("{path}?{range}")).human,
            answered,
            "{path}"
        );
    }
    check_without_a_range(&mut api, &key, answered);
    // The clicks of both times are there.
    let path = format!("/api/v1/links/{key}/stats?bucket=hour&{range}");
    let stats = api.get(&path).unwrap().json();
    let points = stats["series"].as_array().unwrap().iter();
    let hours = points.filter(|point| point["counts"]["human"].as_u64() > Some(0));
    assert!(hours.count() >= 2, "{stats}");
    println!("clock: {answered} clicks answered while it stepped, all counted");
}

/// Nothing is left out although some clicks are dated later than now.
fn check_without_a_range(api: &mut Api, key: &str, answered: u64) {
    for path in ["", "/class"] {
        let path = format!("/api/v1/links/{key}/stats{path}");
        let stats = api.get(&path).unwrap().json();
        let human = match stats.get("totals") {
            Some(totals) => totals["human"].as_u64(),
            None => stats["values"][0]["count"].as_u64(),
        };
        assert_eq!(human, Some(answered), "{path}: {stats}");
    }
    let page = api.get(&format!("/api/v1/links/{key}/clicks?limit=1000"));
    let single = page.unwrap().json()["clicks"].as_array().unwrap().len() as u64;
    assert_eq!(single, answered.min(1_000));
}

/// A clock that was wrong for some seconds, while running or at a start, ends no link for good.
#[test]
fn a_clock_that_was_years_ahead_purges_nothing() {
    let links = length(100, 1_000);
    let folder = tempfile::tempdir().unwrap();
    let ahead = folder.path().join("ahead");
    let mut site = Site::with_environment(
        &["purge.every=100ms", "clicks.flush_every=50ms"],
        &[
            ("LD_PRELOAD", build_library(folder.path(), CLOCK).as_path()),
            ("CLOCK_AHEAD_FILE", ahead.as_path()),
        ],
    );
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    let keys: Vec<String> = (0..links).map(|_| new_link(&site, &json!({}))).collect();
    follow_all(&site, &keys, 302);
    wait_until_counted(&site);

    set_ahead(&ahead, THREE_YEARS);
    expire_all(&site, &keys);
    fs::remove_file(&ahead).unwrap();
    follow_all(&site, &keys, 302);
    wait_for_clock(&site, true);

    // The same for a process that knows the clock only as it is wrong. Sessions are looked through at its start.
    let email = "ann@example.com";
    let password = site.app().run(&["user", "add", email]).unwrap();
    let browser = Browser::sign_in(&site, email, password.trim());
    site.kill();
    set_ahead(&ahead, THREE_YEARS);
    site.restart();
    expire_all(&site, &keys);
    assert!(site.terminate().success());
    fs::remove_file(&ahead).unwrap();
    site.restart();
    follow_all(&site, &keys, 302);
    wait_for_clock(&site, true);
    // Not by its own `send`: the server has another port since then.
    let mine = browser.signed(Request::get("/api/v1/users/me"));
    let answer = Api::new(site.http(), "").send(&mine).unwrap();
    assert_eq!(answer.status, 200, "the session ended: {answer:?}");
    // Neither are single clicks removed, which are kept for 30 days.
    let page = site.api().get(&format!("/api/v1/links/{}/clicks", keys[0]));
    let clicks = page.unwrap().json()["clicks"].as_array().unwrap().len();
    assert!(clicks >= 1, "{clicks}");
}

/// Visitors meet every link while it is expired, and the schedule has many turns.
fn expire_all(site: &Site, keys: &[String]) {
    wait_for_clock(site, false);
    follow_all(site, keys, 410);
    thread::sleep(Duration::from_secs(2));
    follow_all(site, keys, 410);
    assert_eq!(metric(site, "curt_links_purged_total"), 0);
}

fn wait_for_clock(site: &Site, is_trusted: bool) {
    let admin = site.server().admin().unwrap();
    eventually(super::WAIT_MAX, || {
        let health = Client::new(admin).get("/health/ready").unwrap();
        assert_eq!(health.status, 200, "links are followed by whatever clock");
        let health = health.json().unwrap();
        let mut checks = health["checks"].as_array().unwrap().iter();
        let clock = checks.find(|check| check["name"] == "clock");
        match clock.is_some_and(|clock| clock["ok"] == is_trusted) {
            true => Ok(()),
            false => Err(health.to_string()),
        }
    });
    assert_eq!(metric(site, "curt_clock_trusted"), u64::from(is_trusted));
}

fn follow_all(site: &Site, keys: &[String], status: u16) {
    let mut api = Api::new(site.http(), "");
    for key in keys {
        let answer = api.send(&Class::Human.request(&format!("/{key}"))).unwrap();
        assert_eq!(answer.status, status, "/{key}: {answer:?}");
    }
}

/// Whole or not at all: the server reads it at any moment.
fn set_ahead(file: &Path, seconds: u64) {
    let draft = file.with_extension("new");
    fs::write(&draft, seconds.to_string()).unwrap();
    fs::rename(&draft, file).unwrap();
}
