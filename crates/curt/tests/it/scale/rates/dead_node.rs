//! One of four databases dies: visitors of the other links must not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Result;
use curt_bench::keys::KeySet;
use curt_bench::load::{Failure, Limit};
use curt_core::{DomainId, Key, LinkId, ShardId};
use curt_testkit::engines::postgres::{Server as Postgres, shared};
use curt_testkit::need;
use curt_testkit::stop::SetOnDrop;

use super::{Installation, SMALL_CACHE, median};
use crate::alone::alone;
use crate::length::{is_full, length};

const NODES: u16 = 4;
const DOOMED: u16 = 3;
/// How much the p99 of the others may grow.
const P99_RATIO_MAX: f64 = 1.2;

#[test]
fn one_dead_database_of_four_slows_down_nobody_elses_links() {
    let _alone = alone();
    let server = need!(shared());
    let databases = [0; 3].map(|_| server.database("node").unwrap());
    let mut urls: Vec<String> = databases.iter().map(|database| database.url()).collect();
    let mut doomed = need!(Postgres::start());
    doomed.sql("create database node").unwrap();
    urls.push(doomed.url("node"));
    judge_p99(&urls, &mut doomed).unwrap();
}

fn judge_p99(urls: &[String], doomed: &mut Postgres) -> Result<()> {
    let installation = Installation::start(&[
        ("store.links", &urls.join(",")),
        ("cache.bytes", SMALL_CACHE),
    ])?;
    let keys = installation.create_links(length(2_000, 20_000))?;
    let (of_doomed, of_others): (Vec<String>, Vec<String>) = (0..keys.len())
        .map(|place| keys.text(place))
        .partition(|key| node_of(key) == DOOMED);
    let of_doomed: Arc<KeySet> = Arc::new(of_doomed.into_iter().collect());
    let of_others: Arc<KeySet> = Arc::new(of_others.into_iter().collect());
    let (rounds, seconds, rate) = length((1, 0.5, 300.0), (9, 3.0, 2_000.0));
    // Links of all four are asked for, before and after: what the dead one's visitors do is in both.
    let mut p99 = [Vec::new(), Vec::new()];
    for (is_dead, p99) in p99.iter_mut().enumerate() {
        if is_dead == 1 {
            doomed.kill()?;
        }
        for round in 0..=rounds {
            let stop = AtomicBool::new(false);
            let report = thread::scope(|scope| {
                scope.spawn(|| follow_doomed(&installation, &of_doomed, is_dead == 1, &stop));
                let _end = SetOnDrop::of(&stop);
                installation.follow(&of_others, |plan| {
                    plan.connections = 32;
                    plan.rate = Some(rate);
                    plan.limit = Limit::seconds(seconds);
                })
            })?;
            anyhow::ensure!(report.failed() == 0, "{report}");
            if round > 0 {
                p99.push(report.latency.p99_us);
            }
        }
    }
    let [before, after] = [median(&p99[0])?, median(&p99[1])?];
    let ratio = after / before;
    println!(
        "rates: p99 of links in three databases at {rate}/s: {before:.0} µs, {after:.0} µs with the fourth dead: {ratio:.2}"
    );
    anyhow::ensure!(
        ratio <= P99_RATIO_MAX || !is_full(),
        "{ratio:.2} times the p99"
    );
    Ok(())
}

/// Visitors of the doomed node's links, a few at a time, until told to stop. When it is dead they get 503 and nothing else.
fn follow_doomed(
    installation: &Installation,
    keys: &Arc<KeySet>,
    is_dead: bool,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::Relaxed) {
        let report = installation.follow(keys, |plan| {
            plan.connections = 4;
            plan.rate = Some(200.0);
            plan.limit = Limit::seconds(0.3);
        });
        let report = report.unwrap();
        let refused = |failure: &Failure| is_dead && *failure == Failure::Status(503);
        assert!(report.failures.keys().all(refused), "{report}");
    }
}

/// By modulo.
fn node_of(key: &str) -> u16 {
    let id = LinkId::new(DomainId::DEFAULT, Key::parse(key).unwrap());
    ShardId::of(&id).number() % NODES
}
