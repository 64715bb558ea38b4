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

use super::{BELIEVED_PROXY, from, told_to_wait};
use crate::alone::alone;
use crate::api::bulk_results;
use crate::length::length;
use crate::site::Site;

/// 10,000 keys a minute.
const SCAN_EVERY: Duration = Duration::from_millis(6);
/// By default, in a minute.
const MISSES_ALLOWED: usize = 30;
const VISITS_PER_SECOND: f64 = 2_000.0;
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
    absent: usize,
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
            let request = from("203.0.113.7", Request::get(&format!("/{key}")));
            let answer = api.send(&request).unwrap();
            match answer.status {
                404 => self.absent += 1,
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
        self.absent + self.refused
    }
}

fn some_links(site: &Site) -> Arc<KeySet> {
    let targets = (0..LINKS).map(|number| format!("https://example.com/{number}"));
    let targets: Vec<String> = targets.collect();
    let made = bulk_results(&site.api().bulk(&targets).unwrap());
    Arc::new(made.into_iter().collect())
}

/// The 99th percentile of visits that fall due at fixed times, in microseconds.
fn visitors_p99(site: &Site, keys: &Arc<KeySet>, seconds: f64) -> f64 {
    let mut plan = Plan::new(site.http());
    plan.connections = 16;
    plan.limit = Limit::seconds(seconds);
    plan.rate = Some(VISITS_PER_SECOND);
    let report = redirect(&RedirectLoad::new(plan, keys.clone())).unwrap();
    assert_eq!(report.failed(), 0, "{report}");
    report.latency.p99_us
}

/// Medians of the visitors' p99 without and with the scan, in turns.
fn measure(site: &Site, keys: &Arc<KeySet>, scan: &mut Scan) -> (f64, f64) {
    let (rounds, seconds) = length((12, 1.0), (20, 3.0));
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
    let began = Instant::now();
    let (mut ratio, mut unnoticed) = (f64::INFINITY, false);
    for _ in 0..MEASUREMENTS_MAX {
        let (without, with) = measure(&site, &keys, &mut scan);
        ratio = with / without;
        unnoticed = ratio <= P99_RATIO_MAX || with - without <= p99_growth_max();
        println!(
            "people: visitors' p99 at {VISITS_PER_SECOND}/s: {without:.0} µs without a scan, {with:.0} µs with one: {ratio:.2}"
        );
        if unnoticed {
            break;
        }
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let allowed = MISSES_ALLOWED + (MISSES_ALLOWED as f64 * minutes).ceil() as usize;
    println!(
        "people: a scan of {} keys, {:.0} a minute: {} misses answered in {minutes:.1} minutes, {allowed} allowed",
        scan.keys(),
        scan.keys() as f64 / scan.took.as_secs_f64() * 60.0,
        scan.absent
    );
    assert!((MISSES_ALLOWED..=allowed).contains(&scan.absent));
    assert!(scan.keys() >= length(1_500, 9_000), "the scan was no scan");
    assert!(unnoticed, "visitors notice the scan: {ratio}");
    let live = keys.text(0);
    let own = from("203.0.113.7", Request::get(&format!("/{live}")));
    assert_eq!(
        site.api().send(&own).unwrap().status,
        302,
        "links that are there go on"
    );
}
