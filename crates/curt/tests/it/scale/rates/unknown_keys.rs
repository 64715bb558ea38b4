//! A flood of requests for keys that no link has: each asks the database, and visitors of live links must not notice. Nor
//! does the database get more look-ups at a time than the settings allow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use curt_bench::keys::KeySet;
use curt_bench::load::{Failure, Limit};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;
use curt_testkit::stop::SetOnDrop;

use super::{Installation, SMALL_CACHE, median};
use crate::alone::alone;
use crate::length::{is_full, length};

/// How much the p99 of live links may grow.
const P99_RATIO_MAX: f64 = 1.2;
/// Wider than generated keys, so that none of them is a link.
const UNKNOWN_WIDTH: usize = 9;

#[test]
fn a_flood_of_unknown_keys_slows_down_no_live_link() {
    let _alone = alone();
    let database = need!(shared()).database("unknown").unwrap();
    let url = database.url();
    let installation = Installation::start(&[("store.links", url.as_str())]).unwrap();
    judge_p99(&installation).unwrap();
}

/// The same rate of requests for links that are cached goes before, so that only the misses differ.
fn judge_p99(installation: &Installation) -> Result<()> {
    let live = Arc::new(installation.create_links(1_000)?);
    let (rounds, seconds, rate) = length((1, 0.5, 300.0), (9, 3.0, 2_000.0));
    let mut p99 = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for (is_unknown, p99) in p99.iter_mut().enumerate() {
            let flood = match is_unknown == 1 {
                true => Arc::new(KeySet::generated(100_000, UNKNOWN_WIDTH, round)),
                false => Arc::clone(&live),
            };
            let stop = AtomicBool::new(false);
            let report = thread::scope(|scope| {
                scope.spawn(|| send_flood(installation, &flood, is_unknown == 1, rate, &stop));
                let _end = SetOnDrop::of(&stop);
                installation.follow(&live, |plan| {
                    plan.connections = 32;
                    plan.rate = Some(rate);
                    plan.limit = Limit::seconds(seconds);
                })
            })?;
            anyhow::ensure!(report.failed() == 0, "{report}");
            // The first round fills the cache.
            if round > 0 {
                p99.push(report.latency.p99_us);
            }
        }
    }
    let [before, after] = [median(&p99[0])?, median(&p99[1])?];
    let ratio = after / before;
    println!(
        "rates: p99 of live links at {rate}/s beside as many cached ones {before:.0} µs, beside unknown keys {after:.0} µs: {ratio:.2}"
    );
    anyhow::ensure!(
        ratio <= P99_RATIO_MAX || !is_full(),
        "{ratio:.2} times the p99"
    );
    Ok(())
}

fn send_flood(
    installation: &Installation,
    keys: &Arc<KeySet>,
    is_unknown: bool,
    rate: f64,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::Relaxed) {
        let report = installation.follow(keys, |plan| {
            plan.rate = Some(rate);
            plan.limit = Limit::seconds(0.3);
        });
        let report = report.unwrap();
        let is_expected = |failure: &Failure| is_unknown && *failure == Failure::Status(404);
        assert!(report.failures.keys().all(is_expected), "{report}");
    }
}

#[test]
fn misses_ask_the_database_as_often_at_a_time_as_the_settings_allow() {
    const CONNECTIONS: usize = 2;
    let database = need!(shared()).database("unknown").unwrap();
    let (url, connections) = (database.url(), CONNECTIONS.to_string());
    let installation = Installation::start(&[
        ("store.links", url.as_str()),
        ("cache.bytes", SMALL_CACHE),
        ("postgres.lookup_connections", connections.as_str()),
        ("postgres.lookup_timeout", "30s"),
    ])
    .unwrap();
    let keys = Arc::new(installation.create_links(2_000).unwrap());
    // Each look-up takes a while, so that they would pile up.
    let slow = "alter table links rename to stored_links; \
        create view links as select stored_links.* from stored_links, pg_sleep(0.02) as slept";
    database.sql(slow).unwrap();
    let stop = AtomicBool::new(false);
    let most = thread::scope(|scope| {
        let watcher = scope.spawn(|| count_most_lookups(&database, &stop));
        let end = SetOnDrop::of(&stop);
        let report = installation.follow(&keys, |plan| {
            plan.limit = Limit::seconds(length(1.5, 10.0));
        });
        assert_eq!(report.as_ref().unwrap().failed(), 0, "{}", report.unwrap());
        drop(end);
        watcher.join().unwrap()
    });
    assert_eq!(most, CONNECTIONS, "at most, and all of them were used");
}

/// How many look-ups the database was seen to work at.
fn count_most_lookups(database: &Database, stop: &AtomicBool) -> usize {
    let active = "select count(*) from pg_stat_activity where datname = current_database() and state = 'active' \
        and wait_event = 'PgSleep'";
    let mut most = 0;
    while !stop.load(Ordering::Relaxed) {
        let count: usize = database.sql(active).unwrap().trim().parse().unwrap();
        most = most.max(count);
        thread::sleep(Duration::from_millis(10));
    }
    most
}
