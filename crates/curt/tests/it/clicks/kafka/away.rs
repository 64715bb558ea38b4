//! Kafka goes away under load: redirects do not notice, and the spool keeps clicks up to its bound (C-2).

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use curt_bench::keys::{KeySet, Pick};
use curt_bench::load::{Limit, LoadReport, Plan, RedirectLoad, redirect};
use curt_testkit::engines::kafka::Cluster;
use curt_testkit::engines::postgres;
use curt_testkit::need;
use serde_json::json;

use super::super::{CAPTURED, DROPPED, clicks_of, metric, new_link};
use super::{Plant, click_with_long_texts, wait_for_within};
use crate::alone::alone;
use crate::length::{is_full, length};
use crate::site::Site;
use crate::wait::eventually;

const FORWARDED: &str = "curt_clicks_forwarded_total";
const DROPPED_FULL: &str = "curt_clicks_dropped_total{reason=\"full\"}";
/// How much slower redirects may be without Kafka.
const P99_RATIO_MAX: f64 = 1.2;
const FULL_WITHIN: Duration = Duration::from_secs(120);
const DRAINED_WITHIN: Duration = Duration::from_secs(300);

#[test]
fn while_kafka_is_away_redirects_stay_fast_and_only_clicks_beyond_the_spool_are_dropped_c2() {
    let _alone = alone();
    let mut cluster = need!(Cluster::start(1));
    let database = need!(postgres::shared()).database("kafka_stopped").unwrap();
    let more = ["clicks.flush_every=1s", "kafka.delivery_timeout=2s"];
    let plant = Plant::new(&cluster, database, &more);
    let server = plant.server();
    let small = plant.server_with(&["clicks.spool_max=1536KiB"]);
    let keys = [new_link(&server, &json!({}))];
    let keys_of_small = [new_link(&server, &json!({}))];
    let _counter = plant.counter();
    let with_seconds = length(0.5, 100.0);
    // The first requests are slower, which would excuse the others.
    let warm = load(&server, &keys[0], length(0.3, 5.0)).requests;
    let before = load(&server, &keys[0], with_seconds);
    wait_for_within(DRAINED_WITHIN, &server, &keys, warm + before.requests);

    cluster.broker_mut(0).unwrap().stop().unwrap();
    let away = load(&server, &keys[0], length(1.0, 300.0));
    let answered_by_small = click_until_full(&small, &keys_of_small[0]);
    cluster.broker_mut(0).unwrap().restart().unwrap();

    let is_back = Instant::now();
    let answered = warm + before.requests + away.requests;
    let forwarded = wait_until_forwarded(&server, is_back);
    wait_for_within(DRAINED_WITHIN, &server, &keys, answered);
    let drained = is_back.elapsed();
    let captured = metric(&small, CAPTURED);
    wait_for_within(DRAINED_WITHIN, &server, &keys_of_small, captured);
    let after = load(&server, &keys[0], with_seconds);
    let answered = answered + after.requests;
    wait_for_within(DRAINED_WITHIN, &server, &keys, answered);

    assert_eq!(metric(&server, DROPPED), 0, "below clicks.spool_max");
    assert_eq!(clicks_of(&mut server.api(), &keys[0]).total(), answered);
    let (counted, dropped) = (
        clicks_of(&mut small.api(), &keys_of_small[0]).total(),
        metric(&small, DROPPED),
    );
    assert_eq!(
        counted + dropped,
        answered_by_small,
        "C-2: {counted} counted, {dropped} dropped"
    );
    println!(
        "{answered} clicks, {} of them without Kafka, forwarded {forwarded:?} and counted {drained:?} after it was back, 0 lost; of {answered_by_small} \
         over a small spool {counted} counted and {dropped} dropped",
        away.requests
    );
    judge_latency(&before, &away, &after);
}

/// Returns how long it took until Kafka had all that the server has written down.
fn wait_until_forwarded(server: &Site, since: Instant) -> Duration {
    eventually(DRAINED_WITHIN, || {
        let (captured, forwarded) = (metric(server, CAPTURED), metric(server, FORWARDED));
        match forwarded >= captured {
            true => Ok(since.elapsed()),
            false => Err(format!("{forwarded} of {captured} clicks are forwarded")),
        }
    })
}

/// By the mean of the time before and the time after: the machine may have become slower meanwhile.
fn judge_latency(before: &LoadReport, away: &LoadReport, after: &LoadReport) {
    let [before, away, after] = [before, away, after].map(|report| report.latency.p99_us);
    let ratio = away * 2.0 / (before + after);
    println!(
        "redirects without Kafka: p99 {away:.0} µs, with it {before:.0} µs before and {after:.0} µs after: {ratio:.2} times"
    );
    assert!(
        ratio <= P99_RATIO_MAX || !is_full(),
        "{ratio:.2} times as slow"
    );
}

/// Visitors at a fixed rate.
fn load(server: &Site, key: &str, seconds: f64) -> LoadReport {
    let mut plan = Plan::new(server.http());
    (plan.connections, plan.limit) = (16, Limit::seconds(seconds));
    plan.rate = Some(length(500.0, 2_000.0));
    let keys: KeySet = [key].into_iter().collect();
    let mut load = RedirectLoad::new(plan, Arc::new(keys));
    load.pick = Pick::Uniform;
    let report = redirect(&load).unwrap();
    assert_eq!(report.failed(), 0, "{report}");
    report
}

/// Clicks until many are dropped; says how many were answered.
fn click_until_full(site: &Site, key: &str) -> u64 {
    let mut answered = 0;
    eventually(FULL_WITHIN, || {
        answered += click_with_long_texts(site.http(), key, 1_000);
        match metric(site, DROPPED_FULL) {
            0..200 => Err(format!("the spool is not full after {answered} clicks")),
            _ => Ok(()),
        }
    });
    // Nobody asks any more, so that what was dropped stays as it is.
    let dropped = metric(site, DROPPED);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(metric(site, DROPPED), dropped);
    answered
}
