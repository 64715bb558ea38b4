//! Windows last, and reports do not wait for them: they have the server write first what it has aggregated.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use curt_testkit::engines::postgres::shared;
use curt_testkit::need;
use serde_json::json;

use super::kills::{Diary, click_until_killed, judge};
use super::{Class, WAIT_MAX, clicks_of, new_link};
use crate::api::Api;
use crate::length::length;
use crate::site::Site;
use crate::wait::eventually;

/// No window ends by itself.
pub(super) const LONG: &str = "clicks.flush_every=1h";

#[test]
fn a_click_is_in_the_next_reports_though_its_window_goes_on() {
    let site = Site::start(&["server.workers=2", LONG]);
    let key = new_link(&site, &json!({ "tags": ["spring"] }));
    let mut api = site.api();
    for clicks in 1..=3 {
        let answer = api.send(&Class::Human.request(&format!("/{key}"))).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
        eventually(WAIT_MAX, || match clicks_of(&mut api, &key).human {
            human if human == clicks => Ok(()),
            human => Err(format!("{human} of {clicks} clicks are reported")),
        });
        let mut get = |path: &str| api.get(path).unwrap();
        for path in ["/api/v1/stats", "/api/v1/stats?tag=spring"] {
            assert_eq!(get(path).json()["totals"]["human"], clicks, "{path}");
        }
        let single = get(&format!("/api/v1/links/{key}/clicks")).json();
        assert_eq!(single["clicks"].as_array().unwrap().len() as u64, clicks);
        let file = get(&format!("/api/v1/links/{key}/clicks.csv")).text();
        assert_eq!(file.lines().count() as u64, 1 + clicks, "{file}");
        let ranked = get("/api/v1/stats/browser").json();
        assert_eq!(ranked["values"][0]["count"], clicks, "{ranked}");
        assert_eq!(ranked["lag_max_seconds"], 1, "{ranked}");
    }
}

/// Nobody waits for others' windows, which a report says.
#[test]
fn a_report_says_how_late_the_clicks_of_other_servers_may_be() {
    let server = need!(shared());
    let database = server.database("lag").unwrap();
    let sites = [server_over(&database.url()), server_over(&database.url())];
    let key = new_link(&sites[0], &json!({}));
    let path = format!("/api/v1/links/{key}/stats");
    let mut other = Api::new(sites[1].http(), "");
    let answer = other.send(&Class::Human.request(&format!("/{key}")));
    assert_eq!(answer.unwrap().status, 302);
    let told = sites[0].api().get(&path).unwrap().json();
    assert_eq!(told["totals"]["total"], 0, "{told}");
    assert_eq!(told["lag_max_seconds"], 3_600, "{told}");
    eventually(WAIT_MAX, || {
        match clicks_of(&mut sites[1].api(), &key).human {
            1 => Ok(()),
            human => Err(format!("{human} clicks are reported")),
        }
    });
    assert_eq!(
        clicks_of(&mut sites[0].api(), &key).human,
        1,
        "it is stored"
    );
}

/// Servers are killed while others report, from windows that only reports end.
#[test]
fn totals_never_go_down_while_two_servers_count_and_are_killed_c1() {
    let server = need!(shared());
    let database = server.database("monotone").unwrap();
    let mut killed = server_over(&database.url());
    let witness = server_over(&database.url());
    let keys = [new_link(&killed, &json!({}))];
    let mut diary = Diary::default();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| watch(&witness, &keys[0], &is_over));
        for kill in 0..length(3, 30) {
            if kill > 0 {
                killed.restart_as(ROLES);
            }
            let before = clicks_of(&mut killed.api(), &keys[0]).total();
            let alive = Duration::from_millis(300);
            for seen in click_until_killed(&mut killed, &keys, kill, alive) {
                diary.add(seen);
            }
            let after = clicks_of(&mut witness.api(), &keys[0]).total();
            assert!(after >= before, "C-1: {after} clicks after {before}");
        }
        is_over.store(true, Ordering::Relaxed);
        diary.add(watching.join().unwrap());
    });
    killed.restart_as(ROLES);
    assert!(
        killed.terminate().success(),
        "what is in the spool is counted"
    );
    killed.restart_as(ROLES);
    eventually(WAIT_MAX, || {
        let counted = clicks_of(&mut witness.api(), &keys[0]).total();
        match counted >= diary.answered.len() as u64 {
            true => Ok(()),
            false => Err(format!("lost: {counted} of {}", diary.answered.len())),
        }
    });
    judge(&witness, &keys, &diary);
}

/// Clicks at a server that goes on, and reports at it all the time.
fn watch(site: &Site, key: &str, is_over: &AtomicBool) -> Diary {
    let (mut api, mut diary, mut last) = (site.api(), Diary::default(), 0);
    while !is_over.load(Ordering::Relaxed) {
        let referrer = format!("witness-{}.example", diary.answered.len());
        let request = Class::Human.request(&format!("/{key}"));
        let request = request.header("Referer", format!("https://{referrer}/"));
        assert_eq!(api.send(&request).unwrap().status, 302);
        diary.answered.push(referrer);
        let told = clicks_of(&mut api, key).total();
        assert!(told >= last, "C-1: {told} clicks after {last}");
        last = told;
    }
    diary
}

pub(super) const ROLES: &[&str] = &["redirect", "api", "clicks"];

pub(super) fn server_over(links: &str) -> Site {
    let store = [("CURT_STORE_LINKS", Path::new(links))];
    let mut site = Site::with_environment(&["server.workers=2", LONG], &store);
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart_as(ROLES);
    site
}
