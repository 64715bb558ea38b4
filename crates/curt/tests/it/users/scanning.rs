//! H3: one address that tries keys, while others follow links.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_bench::keys::KeySet;
use curt_bench::load::{Limit, Plan, RedirectLoad, redirect};
use curt_bench::median::Spread;
use curt_testkit::http::Request;
use curt_testkit::stop::SetOnDrop;
use serde_json::{Value, json};

use super::{BELIEVED_PROXY, from, told_to_wait};
use crate::alone::alone;
use crate::api::{Answer, Api, bulk_results};
use crate::length::{is_full, length};
use crate::site::Site;

/// 10,000 keys a minute.
const SCAN_EVERY: Duration = Duration::from_millis(6);
/// By default, in a minute.
const MISSES_ALLOWED: usize = 30;
/// Half of them at once.
const MISSES_AT_ONCE: usize = 15;
/// A little less: answers may be on their way for different times.
const MINUTE: Duration = Duration::from_millis(59_500);
const SCANNER: &str = "203.0.113.7";
const CLICKS_PER_SECOND: f64 = 2_000.0;
const LINKS: usize = 200;
/// How much of the visitors' p99 without the scan it may be with it.
const P99_RATIO_MAX: f64 = 1.2;

/// Or by how many microseconds more: refusing a scanner takes an unoptimised build so long that a core shows it, though
/// no visitor would.
fn p99_growth_max() -> f64 {
    length(1_000.0, 0.0)
}

/// A machine that others use too has bad moments: a measurement may be taken again.
const MEASUREMENTS_MAX: usize = 3;

/// What the scanner heard.
#[derive(Default)]
struct Scan {
    /// When it was told of keys that nobody has.
    absent: Vec<Instant>,
    refused: usize,
    took: Duration,
}

impl Scan {
    /// Asks for keys that nobody has until told to stop, at a steady pace.
    fn go_on(&mut self, site: &Site, stop: &AtomicBool) {
        let mut api = site.api();
        let began = Instant::now();
        let mut due = began;
        while !stop.load(Ordering::Relaxed) {
            let key = format!("{:07x}", rand::random_range(0..0x1000_0000));
            let request = from(SCANNER, Request::get(&format!("/{key}")));
            let answer = api.send(&request).unwrap();
            match answer.status {
                404 => self.absent.push(Instant::now()),
                _ => {
                    assert!(told_to_wait(&answer) > Duration::ZERO);
                    self.refused += 1;
                }
            }
            due += SCAN_EVERY;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        self.took += began.elapsed();
    }

    fn keys(&self) -> usize {
        self.absent.len() + self.refused
    }

    /// The most that were heard within any minute.
    fn in_a_minute(&self) -> usize {
        let heard = |from: &Instant| {
            let within = |at: &&Instant| **at >= *from && **at - *from < MINUTE;
            self.absent.iter().filter(within).count()
        };
        self.absent.iter().map(heard).max().unwrap_or_default()
    }
}

fn some_links(site: &Site) -> Arc<KeySet> {
    let targets = (0..LINKS).map(|number| format!("https://example.com/{number}"));
    let targets: Vec<String> = targets.collect();
    let made = bulk_results(&site.api().bulk(&targets).unwrap());
    Arc::new(made.into_iter().collect())
}

/// The 99th percentile of clicks that fall due at fixed times, in microseconds.
fn visitors_p99(site: &Site, keys: &Arc<KeySet>, seconds: f64) -> f64 {
    let mut plan = Plan::new(site.http());
    plan.connections = 16;
    plan.limit = Limit::seconds(seconds);
    plan.rate = Some(CLICKS_PER_SECOND);
    let report = redirect(&RedirectLoad::new(plan, keys.clone())).unwrap();
    assert_eq!(report.failed(), 0, "{report}");
    report.latency.p99_us
}

/// Medians of the visitors' p99 without and with the scan, in turns.
fn measure(site: &Site, keys: &Arc<KeySet>, scan: &mut Scan) -> (f64, f64) {
    let (rounds, seconds) = length((4, 1.0), (20, 3.0));
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        without.push(visitors_p99(site, keys, seconds));
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| scan.go_on(site, &stop));
            let _end = SetOnDrop::of(&stop);
            with.push(visitors_p99(site, keys, seconds));
        });
    }
    let median = |values: &[f64]| Spread::of(values).unwrap().median;
    (median(&without), median(&with))
}

#[test]
fn a_scanner_hears_of_30_misses_a_minute_and_other_visitors_do_not_notice() {
    let _alone = alone();
    let site = Site::start(&[BELIEVED_PROXY]);
    let keys = some_links(&site);
    visitors_p99(&site, &keys, 1.0);
    let mut scan = Scan::default();
    let (mut ratio, mut unnoticed) = (f64::INFINITY, false);
    for _ in 0..MEASUREMENTS_MAX {
        let (without, with) = measure(&site, &keys, &mut scan);
        ratio = with / without;
        unnoticed = ratio <= P99_RATIO_MAX || with - without <= p99_growth_max();
        println!(
            "people: visitors' p99 at {CLICKS_PER_SECOND}/s: {without:.0} µs without a scan, {with:.0} µs with one: {ratio:.2}"
        );
        if unnoticed || !is_full() {
            break;
        }
    }
    println!(
        "people: a scan of {} keys, {:.0} a minute: {} misses answered, at most {} in a minute",
        scan.keys(),
        scan.keys() as f64 / scan.took.as_secs_f64() * 60.0,
        scan.absent.len(),
        scan.in_a_minute()
    );
    assert!(scan.absent.len() >= MISSES_AT_ONCE, "the limit is not used");
    assert!(scan.in_a_minute() <= MISSES_ALLOWED);
    assert!(scan.keys() >= length(100, 9_000), "the scan was no scan");
    // A machine that others use, too, is no place to judge times at.
    assert!(unnoticed || !is_full(), "visitors notice the scan: {ratio}");
}

/// Asks for a key as the scanner does, over a connection of its own or over one that the router keeps.
fn scanned(api: &mut Api, request: Request) -> Answer {
    api.send(&from(SCANNER, request)).unwrap()
}

/// What an answer says, without what changes by the second.
fn shape(answer: &Answer) -> (u16, Vec<(String, bool)>, Value) {
    let headers = [
        "location",
        "retry-after",
        "ratelimit",
        "ratelimit-policy",
        "content-type",
        "cache-control",
        "allow",
    ];
    let headers = headers.map(|name| (name.to_owned(), answer.header(name).is_some()));
    let mut body = answer.json();
    body["detail"].take();
    body["instance"].take();
    (answer.status, headers.to_vec(), body)
}

#[test]
fn past_its_misses_a_scanner_cannot_tell_links_from_nothing() {
    let site = Site::start(&[BELIEVED_PROXY, "limits.misses_per_address=8/1h"]);
    let live = some_links(&site);
    let locked = json!({ "target": "https://example.com/", "visibility": "password", "password": "open sesame" });
    let locked = site.api().post("/api/v1/links", &locked).unwrap().json();
    let locked = locked["key"].as_str().unwrap().to_owned();
    // Hot, so that the fast path has a copy.
    let hot = live.text(0).to_owned();
    assert_eq!(site.api().follow(&hot).unwrap().status, 302);
    let mut api = site.api();
    assert_eq!(
        scanned(&mut api, Request::get(&format!("/{hot}"))).status,
        302
    );
    for number in 0..4 {
        let miss = scanned(&mut api, Request::get(&format!("/nothing{number}")));
        assert_eq!(miss.status, 404, "{miss:?}");
    }
    let refused = scanned(&mut api, Request::get("/nothing5"));
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(told_to_wait(&refused) > Duration::from_secs(60));
    let cold = live.text(1).to_owned();
    let paths = [
        "/nothing6".to_owned(),
        format!("/{hot}"),
        format!("/{cold}"),
        format!("/{hot}/"),
        format!("/%{:02x}{}", hot.as_bytes()[0], &hot[1..]),
        format!("/{hot}?a=b"),
        format!("/{locked}"),
    ];
    for path in &paths {
        for method in ["GET", "POST"] {
            for again in [false, true] {
                let mut fresh = site.api();
                let api = if again { &mut api } else { &mut fresh };
                let answer = scanned(api, Request::new(method, path));
                assert_eq!(shape(&answer), shape(&refused), "{method} {path}");
            }
        }
        let head = scanned(&mut site.api(), Request::new("HEAD", path));
        assert_eq!(head.status, 429, "HEAD {path}");
    }
    // Others do not notice, nor does whoever works with an account.
    assert_eq!(site.api().follow(&hot).unwrap().status, 302);
    let elsewhere = from("203.0.113.8", Request::get(&format!("/{cold}")));
    assert_eq!(site.api().send(&elsewhere).unwrap().status, 302);
    let list = Request::get("/api/v1/links").bearer(site.token());
    assert_eq!(scanned(&mut api, list).status, 200);
    let metrics = site.metrics();
    assert!(metrics.get("curt_misses_unrecorded_total").unwrap() >= 30.0);
}

#[test]
fn an_address_that_waits_as_told_is_served_again() {
    let site = Site::start(&[BELIEVED_PROXY, "limits.misses_per_address=2/2s"]);
    let live = some_links(&site).text(0).to_owned();
    let mut api = site.api();
    assert_eq!(scanned(&mut api, Request::get("/nothing")).status, 404);
    let refused = scanned(&mut api, Request::get("/nothing"));
    thread::sleep(told_to_wait(&refused));
    let click = scanned(&mut api, Request::get(&format!("/{live}")));
    assert_eq!(click.status, 302, "{click:?}");
}
