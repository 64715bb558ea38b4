//! Creates while keys are minted, moved and pushed: whoever makes a link does not notice.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use curt_bench::load::{CreateLoad, Limit, Plan, create};
use curt_bench::median::Spread;
use curt_testkit::length::{is_full, length};
use curt_testkit::need;
use curt_testkit::process::Server;
use curt_testkit::stop::SetOnDrop;

use super::plant::{FRONT, Plant, Shape, list, stop};
use crate::alone::alone;
use crate::wait::eventually;

const ONE: Shape = Shape {
    ledgers: 1,
    pools: 1,
};
/// The pool is always between where a refill begins and where it begins to hurry.
const SETTINGS: &[(&str, &str)] = &[
    ("keys.ledger.low", "9000"),
    ("keys.ledger.high", "10000"),
    ("keys.ledger.mint_batch", "500"),
    ("keys.pool.low", "3000"),
    ("keys.pool.high", "4000"),
    ("keys.pool.batch", "250"),
    ("keys.tick", "100ms"),
];
const TOO_FEW_KEYS: u64 = 2_999;
const ALL_KEYS: u64 = 1_000_000;
const TRIM_EVERY: Duration = Duration::from_millis(500);
const CREATES_PER_SECOND: f64 = 200.0;
const SECONDS: f64 = 3.0;
/// How much of the creates' p99 without a refill it may be with one.
const P99_RATIO_MAX: f64 = 1.2;
/// A machine that others use too has bad moments: a measurement may be taken again.
const MEASUREMENTS_MAX: usize = 3;

/// The 99th percentile of creates that fall due at fixed times, in microseconds.
fn creates_p99(plant: &Plant, front: &Server, seconds: f64) -> f64 {
    let mut plan = Plan::new(front.http().unwrap());
    plan.connections = 8;
    plan.limit = Limit::seconds(seconds);
    plan.rate = Some(CREATES_PER_SECOND);
    let report = create(&CreateLoad::new(plan, plant.token())).unwrap().load;
    assert_eq!(report.failed(), 0, "{report}");
    report.latency.p99_us
}

fn minted(plant: &Plant) -> u64 {
    let sql = "select sum(minted) from key_counts";
    plant.ledgers[0].sql(sql).unwrap().trim().parse().unwrap()
}

/// Keeps so many keys and throws the others away, again and again. On one connection, because a program that is started
/// each time is something that creates notice.
fn keep_trimming(plant: &Plant, keys: u64, stop: &AtomicBool) {
    let pool = TcpStream::connect(("127.0.0.1", plant.pools[0].port())).unwrap();
    let mut answers = BufReader::new(&pool).lines();
    while !stop.load(Ordering::Relaxed) {
        writeln!(&pool, "LTRIM {} 0 {}\r", list(0), keys - 1).unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), "+OK");
        thread::sleep(TRIM_EVERY);
    }
}

/// The p99 of creates while no more than so many keys are left in the pool.
fn p99_while_trimming(plant: &Plant, front: &Server, keys: u64) -> f64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| keep_trimming(plant, keys, &stop));
        let _end = SetOnDrop::of(&stop);
        creates_p99(plant, front, SECONDS)
    })
}

fn wait_until_full(plant: &Plant) {
    eventually(Duration::from_secs(60), || match plant.depth(0) {
        0..3_000 => Err("the pool is filling"),
        _ => Ok(()),
    });
    thread::sleep(Duration::from_millis(200));
}

/// Medians of the p99 without and with refills, in turns, and the keys that were minted in the latter.
fn measure(plant: &Plant, front: &Server, rounds: usize) -> (f64, f64, u64) {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let mut keys = 0;
    for _ in 0..rounds {
        wait_until_full(plant);
        without.push(p99_while_trimming(plant, front, ALL_KEYS));
        let before = minted(plant);
        with.push(p99_while_trimming(plant, front, TOO_FEW_KEYS));
        keys += minted(plant) - before;
    }
    let median = |values: &[f64]| Spread::of(values).unwrap().median;
    (median(&without), median(&with), keys)
}

#[test]
fn creates_take_no_longer_while_a_refill_runs() {
    let _alone = alone();
    let plant = need!(Plant::start(ONE, SETTINGS));
    let [keygen, keysync, front] =
        [&["keygen"], &["keysync"], FRONT].map(|roles| plant.process(roles));
    wait_until_full(&plant);
    creates_p99(&plant, &front, 1.0);
    let rounds = length(2, 20);
    // A refill must get ahead of the creates.
    let used = (1.5 * CREATES_PER_SECOND * SECONDS) as u64 * rounds as u64;
    let mut ratio = f64::INFINITY;
    for _ in 0..MEASUREMENTS_MAX {
        let (without, with, keys) = measure(&plant, &front, rounds);
        ratio = with / without;
        println!(
            "scale: p99 of creates at {CREATES_PER_SECOND}/s: {without:.0} µs without a refill, {with:.0} µs while \
             {keys} keys were minted and moved: {ratio:.2} (PostgreSQL without syncs)"
        );
        assert!(keys > used, "there was no refill: {keys}");
        if ratio <= P99_RATIO_MAX || !is_full() {
            break;
        }
    }
    assert!(
        ratio <= P99_RATIO_MAX || !is_full(),
        "creates notice a refill: {ratio}"
    );
    [front, keysync, keygen].into_iter().for_each(stop);
}
