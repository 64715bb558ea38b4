//! H1: a host that is listed while the server runs.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::api::Api;
use crate::length::{length, time_max};
use crate::site::Site;

const BLOCKED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Puts a new list in the place of the old one.
fn list(site: &Site, text: &str) {
    let (new, used) = (site.folder().join("new"), site.folder().join("blocked"));
    fs::write(&new, text).unwrap();
    fs::rename(new, used).unwrap();
}

/// How long the key is answered otherwise than with this status.
fn time_until(api: &mut Api, key: &str, status: u16) -> Duration {
    let began = Instant::now();
    while api.follow(key).unwrap().status != status {
        let waited = began.elapsed();
        assert!(
            waited < time_max(BLOCKED_WITHIN),
            "/{key} is not {status} after {waited:?}"
        );
        thread::sleep(LOOK_EVERY);
    }
    began.elapsed()
}

#[test]
fn a_listed_host_is_led_to_no_more_within_5_seconds_and_by_no_new_link() {
    let times = length(2, 20);
    let mut site = Site::new(&["links.blocklist=blocked"]);
    list(&site, "# nothing yet\n");
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    let mut api = site.api();
    let make = |api: &mut Api, host: &str| {
        let answer = api.create(&format!("https://{host}/page")).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["key"].as_str().unwrap().to_owned()
    };
    let harmless = make(&mut api, "harmless.example");
    let mut waits = Vec::new();
    for time in 0..times {
        let host = format!("evil-{time}.example");
        let bad = make(&mut api, &format!("www.{host}"));
        assert_eq!(api.follow(&bad).unwrap().status, 302);
        // At any moment between two looks at the file.
        thread::sleep(Duration::from_millis(rand::random_range(0..2_000)));
        list(&site, &format!("{host}\n"));
        waits.push(time_until(&mut api, &bad, 410));
        let refused = api.create(&format!("https://{host}/")).unwrap();
        assert_eq!(refused.status, 422, "{refused:?}");
        assert_eq!(refused.json()["errors"][0]["field"], "target");
        let change = json!({ "target": format!("https://a.{host}/") });
        assert_eq!(api.edit(&harmless, &change).unwrap().status, 422);
        assert_eq!(api.follow(&harmless).unwrap().status, 302);
        list(&site, "");
        time_until(&mut api, &bad, 302);
    }
    println!(
        "people: {times} listed hosts were led to no more after {:?} at worst, allowed {BLOCKED_WITHIN:?}",
        waits.iter().max().unwrap()
    );
}
