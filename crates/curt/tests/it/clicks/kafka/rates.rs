//! What a click costs between its server and the clicks database, and how it is spread. The figures are printed; `make
//! soak` judges them.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use curt_bench::cpu::{CpuReading, CpuSpent};
use curt_bench::keys::{KeySet, Pick};
use curt_bench::load::{Limit, Plan, RedirectLoad, Shape, redirect};
use curt_core::UnixMillis;
use curt_core::ports::{ClickSink as _, ProducerId, SequencedRecord};
use curt_kafka::{Kafka, KafkaSettings};
use curt_testkit::engines::{kafka, postgres};
use curt_testkit::need;
use serde_json::json;

use super::super::{COUNTED, clicks_of, metric, new_link};
use super::delivery::encode_click;
use super::{Plant, click_with_long_texts};
use crate::alone::alone;
use crate::length::{is_full, length};
use crate::site::Site;
use crate::wait::eventually;

const LAG: &str = "curt_clicks_lag_seconds";
/// Clicks that a counter is to take in for each second of CPU.
const RATE_MIN: f64 = 300_000.0;
/// Of CPU for a click, in servers beyond the redirect and in counters.
const MICROS_MAX: f64 = 10.0;
/// By how much the busiest may exceed the mean.
const LOAD_RATIO_MAX: f64 = 1.2;
const DONE_WITHIN: Duration = Duration::from_secs(300);
/// Between two looks: they cost CPU, too.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Of CPU between two looks, for a counter with nothing to do.
const IDLE_MAX: Duration = Duration::from_millis(100);
const LINKS: usize = 20;
/// Records that are appended together.
const BATCH: u64 = 4_000;
/// What a click takes in a spool, about: partitions of the topic change with the address there.
const SPOOL_BYTES: u64 = 64;
const PARTITIONS: u32 = 4;

#[test]
fn a_counter_aggregates_300_000_clicks_of_kafka_with_a_second_of_cpu() {
    let _alone = alone();
    let cluster = need!(kafka::shared());
    let database = need!(postgres::shared()).database("kafka_rate").unwrap();
    // Nothing is written before a report asks.
    let more = ["clicks.flush_every=30m", "clicks.window_memory=1GiB"];
    let plant = Plant::new(&cluster, database, &more);
    let server = plant.server();
    let keys: Vec<String> = (0..LINKS).map(|_| new_link(&server, &json!({}))).collect();
    let clicks = length(10_000, 2_000_000);
    fill_topic(&plant, &keys, clicks);
    let counter = plant.counter();
    let spent = wait_until_aggregated(&server, &counter, &keys, clicks);
    let rate = clicks as f64 / spent.as_secs_f64();
    println!("{clicks} clicks aggregated with {spent:?} of CPU: {rate:.0} for a second of it");
    assert!(rate >= RATE_MIN || !is_full(), "{rate:.0} a second");
}

/// Clicks of a minute ago, by a producer like a server's forwarder.
fn fill_topic(plant: &Plant, keys: &[String], clicks: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let kafka = Kafka::open(plant.address(), KafkaSettings::default()).unwrap();
        let sink = kafka.sink().unwrap();
        let at = UnixMillis(jiff::Timestamp::now().as_millisecond() - 60_000);
        for first in (0..clicks).step_by(BATCH as usize) {
            let numbers = first..clicks.min(first + BATCH);
            let records: Vec<SequencedRecord> = numbers
                .map(|number| SequencedRecord {
                    sequence: number * SPOOL_BYTES,
                    bytes: encode_click(&keys[number as usize % keys.len()], number, at).into(),
                })
                .collect();
            sink.append(ProducerId(1), &records).await.unwrap();
        }
    });
}

/// What the counter has spent, from its start on, when it had taken in all clicks and had written none of them yet.
fn wait_until_aggregated(server: &Site, counter: &Site, keys: &[String], clicks: u64) -> Duration {
    let (mut api, mut last) = (server.api(), Duration::ZERO);
    eventually(DONE_WITHIN, || {
        thread::sleep(LOOK_EVERY);
        let spent = Duration::from_nanos(spent_since(counter, &CpuReading::default()).all);
        let is_idle = spent - last < IDLE_MAX && metric(counter, LAG) == 0;
        last = spent;
        if !is_idle {
            return Err(format!("the counter is busy after {spent:?} of CPU"));
        }
        // Its answer has all that is in the stream, so that it is asked for when nothing is left there.
        let counted: u64 = keys
            .iter()
            .map(|key| clicks_of(&mut api, key).total())
            .sum();
        match counted {
            counted if counted == clicks => Ok(spent),
            counted => Err(format!("{counted} of {clicks} clicks")),
        }
    })
}

#[test]
fn a_click_costs_10_microseconds_of_cpu_from_the_spool_to_the_database() {
    let _alone = alone();
    let cluster = need!(kafka::shared());
    let database = need!(postgres::shared()).database("kafka_cost").unwrap();
    let plant = Plant::new(&cluster, database, &["clicks.flush_every=5s"]);
    let server = plant.server();
    let keys: KeySet = (0..LINKS).map(|_| new_link(&server, &json!({}))).collect();
    let keys = Arc::new(keys);
    let counter = plant.counter();
    let follow = |clicks| {
        let mut plan = Plan::new(server.http());
        plan.limit = Limit::requests(clicks);
        let mut load = RedirectLoad::new(plan, Arc::clone(&keys));
        (load.pick, load.shape) = (Pick::Uniform, Shape::Mixed);
        let report = redirect(&load).unwrap();
        assert_eq!(report.failed(), 0, "{report}");
        report.requests
    };
    // The first clicks have connections opened and the topic found.
    let warm = follow(1_000);
    wait_until_counted(&counter, warm);
    let before = [&server, &counter].map(reading);
    let clicks = follow(length(3_000, 2_000_000));
    wait_until_counted(&counter, warm + clicks);
    let in_server = spent_since(&server, &before[0]);
    let in_counter = spent_since(&counter, &before[1]);
    let micros = |nanos: u64| nanos as f64 / 1e3 / clicks as f64;
    let (forward, consume) = (
        micros(in_server.all - in_server.workers),
        micros(in_counter.all),
    );
    println!(
        "{clicks} clicks: a redirect {:.1} µs of CPU, to forward it {forward:.1} µs, to consume and store it {consume:.1} µs",
        micros(in_server.workers)
    );
    let whole = forward + consume;
    assert!(whole <= MICROS_MAX || !is_full(), "{whole:.1} µs a click");
}

/// By the counter's metrics: reports would cost the server CPU.
fn wait_until_counted(counter: &Site, clicks: u64) {
    eventually(DONE_WITHIN, || {
        thread::sleep(LOOK_EVERY);
        match metric(counter, COUNTED) {
            counted if counted >= clicks => Ok(()),
            counted => Err(format!("{counted} of {clicks} clicks are counted")),
        }
    });
}

fn reading(site: &Site) -> CpuReading {
    CpuReading::take(site.server().pid(), false).unwrap()
}

fn spent_since(site: &Site, before: &CpuReading) -> CpuSpent {
    reading(site).since(before)
}

#[test]
fn one_viral_link_loads_all_partitions_and_counters_alike() {
    let cluster = need!(kafka::shared());
    let kcat = need!(kafka::kcat());
    let database = need!(postgres::shared()).database("kafka_viral").unwrap();
    let partitions = format!("kafka.partitions={PARTITIONS}");
    let more = [&partitions, "clicks.flush_every=200ms"];
    let plant = Plant::new(&cluster, database, &more);
    let server = plant.server();
    let key = new_link(&server, &json!({}));
    let counters = [plant.counter(), plant.counter()];
    let counted = || counters.each_ref().map(|counter| metric(counter, COUNTED));
    let mut answered = 0;
    // Until both have their partitions.
    eventually(DONE_WITHIN, || {
        answered += click_with_long_texts(server.http(), &key, 500);
        match counted() {
            [0, _] | [_, 0] => Err(format!("a counter has nothing to do: {:?}", counted())),
            _ => Ok(()),
        }
    });
    let wait_for_all = |answered| {
        eventually(DONE_WITHIN, || match counted().iter().sum::<u64>() {
            sum if sum == answered => Ok(()),
            sum => Err(format!("{sum} of {answered} clicks are counted")),
        });
    };
    wait_for_all(answered);
    let before = (ends(&kcat, &plant), counted());
    let clicks = click_with_long_texts(server.http(), &key, length(20_000, 300_000));
    wait_for_all(answered + clicks);
    let records = differences(&ends(&kcat, &plant), &before.0);
    assert_eq!(records.iter().sum::<u64>(), clicks, "{records:?}");
    let by_counter = differences(&counted(), &before.1);
    println!("{clicks} clicks of one link: {records:?} in partitions, {by_counter:?} by counter");
    for loads in [records, by_counter] {
        let ratio = max_by_mean(&loads);
        assert!(ratio <= LOAD_RATIO_MAX, "{ratio:.2}: {loads:?}");
    }
}

/// The offsets at which the topic's partitions end.
fn ends(kcat: &Path, plant: &Plant) -> Vec<u64> {
    let mut query = std::process::Command::new(kcat);
    query.args(["-Q", "-b", &plant.hosts()]);
    for partition in 0..PARTITIONS {
        query.args(["-t", &format!("{}:{partition}:-1", plant.topic())]);
    }
    let answer = query.output().unwrap();
    let text = String::from_utf8_lossy(&answer.stdout);
    let end = |line: &str| line.rsplit_once(' ')?.1.parse().ok();
    let ends: Vec<u64> = text.lines().filter_map(end).collect();
    assert_eq!(ends.len(), PARTITIONS as usize, "{answer:?}");
    ends
}

fn differences(now: &[u64], before: &[u64]) -> Vec<u64> {
    let pairs = now.iter().zip(before);
    pairs.map(|(now, before)| now - before).collect()
}

fn max_by_mean(loads: &[u64]) -> f64 {
    let max = loads.iter().max().copied().unwrap_or_default();
    max as f64 * loads.len() as f64 / loads.iter().sum::<u64>() as f64
}
