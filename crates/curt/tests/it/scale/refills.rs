//! Creates while keys are minted, moved and pushed: whoever makes a link does not notice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_bench::load::{CreateLoad, Limit, Plan, create};
use curt_bench::median::Spread;
use curt_testkit::process::Server;
use curt_testkit::{need, skipped};

use super::plant::{FRONT, Plant, Shape, stop};
use crate::alone::alone;
use crate::length::is_full;
use crate::wait::{awake, eventually};

const ONE: Shape = Shape {
    ledgers: 1,
    pools: 1,
};
/// Two refills a second, of a thousand keys each, are ten times what the creates use.
const SETTINGS: &[(&str, &str)] = &[
    ("keys.ledger.low", "9000"),
    ("keys.ledger.high", "10000"),
    ("keys.ledger.mint_batch", "500"),
    ("keys.pool.low", "3000"),
    ("keys.pool.high", "4000"),
    ("keys.pool.batch", "250"),
    ("keys.tick", "100ms"),
];
const REFILL_EVERY: Duration = Duration::from_millis(500);
const CREATES_PER_SECOND: f64 = 200.0;
/// A difference of the clocks that a busy machine may make.
const HALT_MAX: Duration = Duration::from_secs(1);
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
    loop {
        let (begun, ran) = (Instant::now(), awake());
        let report = create(&CreateLoad::new(plan, plant.token())).unwrap().load;
        // A turn in which the machine was halted says nothing.
        if begun.elapsed() < awake() - ran + HALT_MAX {
            assert_eq!(report.failed(), 0, "{report}");
            return report.latency.p99_us;
        }
    }
}

fn minted(plant: &Plant) -> u64 {
    let sql = "select sum(minted) from key_counts";
    plant.ledgers[0].sql(sql).unwrap().trim().parse().unwrap()
}

/// Throws keys away, so that there is always one refill after another.
fn keep_refilling(plant: &Plant, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        plant.trim(0, 2_999);
        thread::sleep(REFILL_EVERY);
    }
}

fn wait_until_full(plant: &Plant) {
    eventually(Duration::from_secs(60), || match plant.depth(0) {
        0..3_000 => Err("the pool is filling"),
        _ => Ok(()),
    });
    thread::sleep(Duration::from_millis(200));
}

/// Medians of the p99 without and with refills, in turns, and the keys that were minted in the latter.
fn measure(plant: &Plant, front: &Server) -> (f64, f64, u64) {
    let (rounds, seconds) = (20, 3.0);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let mut keys = 0;
    for _ in 0..rounds {
        wait_until_full(plant);
        without.push(creates_p99(plant, front, seconds));
        let before = minted(plant);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| keep_refilling(plant, &stop));
            with.push(creates_p99(plant, front, seconds));
            stop.store(true, Ordering::Relaxed);
        });
        keys += minted(plant) - before;
    }
    let median = |values: &[f64]| Spread::of(values).unwrap().median;
    (median(&without), median(&with), keys)
}

#[test]
fn creates_take_no_longer_while_a_refill_runs() {
    if !is_full() {
        // Two cores that run an unoptimised build of every process, and the engines, are what creates would notice.
        return skipped::say(
            "scale::refills",
            "times are for an optimised build: make soak",
        );
    }
    let _alone = alone();
    let plant = need!(Plant::start(ONE, SETTINGS));
    let [keygen, keysync, front] =
        [&["keygen"], &["keysync"], FRONT].map(|roles| plant.process(roles));
    wait_until_full(&plant);
    creates_p99(&plant, &front, 1.0);
    let mut ratio = f64::INFINITY;
    for _ in 0..MEASUREMENTS_MAX {
        let (without, with, keys) = measure(&plant, &front);
        ratio = with / without;
        println!(
            "scale: p99 of creates at {CREATES_PER_SECOND}/s: {without:.0} µs without a refill, {with:.0} µs while \
             {keys} keys were minted and moved: {ratio:.2}"
        );
        assert!(keys >= 50_000, "there was no refill: {keys}");
        if ratio <= P99_RATIO_MAX {
            break;
        }
    }
    assert!(ratio <= P99_RATIO_MAX, "creates notice a refill: {ratio}");
    [front, keysync, keygen].into_iter().for_each(stop);
}
