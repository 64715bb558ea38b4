//! Invented values do not push real ones out of reports, whoever comes first.

use std::net::SocketAddr;
use std::thread;

use serde_json::json;

use super::{Class, new_link, wait_until_counted};
use crate::api::Api;
use crate::length::length;
use crate::site::Site;

const VISITORS: usize = 4;
const REAL: u64 = 500;

#[test]
fn a_flood_of_invented_referrers_hides_no_real_one() {
    let junk = length(3_000, 20_000);
    let site = Site::start(&["server.workers=2", "clicks.flush_every=50ms"]);
    let (flooded, other) = (new_link(&site, &json!({})), new_link(&site, &json!({})));
    click(site.http(), &flooded, junk, |n| {
        format!("https://junk-{n}.example/")
    });
    wait_until_counted(&site);
    for key in [&other, &flooded] {
        click(site.http(), key, REAL, |_| {
            "https://news.example/today".to_owned()
        });
    }
    wait_until_counted(&site);
    // One more flood must not bring down what is known.
    click(site.http(), &flooded, junk, |n| {
        format!("https://more-{n}.example/")
    });
    wait_until_counted(&site);
    let all = 2 * junk + 2 * REAL;
    for (path, clicks, real) in [
        (format!("/api/v1/links/{flooded}/stats"), all - REAL, REAL),
        (format!("/api/v1/links/{other}/stats"), REAL, REAL),
        ("/api/v1/stats".to_owned(), all, 2 * REAL),
    ] {
        let report = site.api().get(&format!("{path}/referrer?limit=10"));
        let report = report.unwrap().json();
        let values = report["values"].as_array().unwrap();
        let news = values.iter().find(|value| value["value"] == "news.example");
        let count = news.and_then(|news| news["count"].as_u64());
        let count = count.unwrap_or_else(|| panic!("{path}: no news.example in {report}"));
        // A thousandth of the day's clicks is what a count may lack.
        let error = clicks / 1_000;
        assert!(
            count <= real && count + error >= real,
            "{path}: {count} of {real}, {error} may lack"
        );
        let total = site.api().get(&path).unwrap().json();
        assert_eq!(total["totals"]["human"], clicks, "{path}");
        let listed: u64 = values
            .iter()
            .map(|value| value["count"].as_u64().unwrap())
            .sum();
        let rest = report["rest"].as_u64().unwrap();
        assert_eq!(listed + rest, clicks, "{path}: {report}");
    }
}

fn click(http: SocketAddr, key: &str, clicks: u64, referrer: impl Fn(u64) -> String + Sync) {
    thread::scope(|scope| {
        for visitor in 0..VISITORS as u64 {
            let referrer = &referrer;
            scope.spawn(move || {
                let mut api = Api::new(http, "");
                for n in (visitor..clicks).step_by(VISITORS) {
                    let asked = Class::Human.request(&format!("/{key}"));
                    let answer = api.send(&asked.header("Referer", referrer(n))).unwrap();
                    assert_eq!(answer.status, 302, "{answer:?}");
                }
            });
        }
    });
}
