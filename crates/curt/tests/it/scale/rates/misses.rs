//! A redirect whose link is in no cache: what it costs the server beyond one whose link is, beside a call of the engine's
//! driver alone.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use curt_bench::keys::KeySet;
use curt_bench::load::Limit;
use curt_testkit::engines::cassandra;
use curt_testkit::engines::memcached;
use curt_testkit::engines::postgres::shared;
use curt_testkit::engines::unique;
use curt_testkit::need;

use super::bare::{CallCost, look_up_in_cassandra, look_up_in_memcached, look_up_in_postgres};
use super::{Installation, SMALL_CACHE, median};
use crate::alone::alone;
use crate::length::{is_full, length};

/// How much the look-up may cost, by what a call of the driver does.
const COST_MAX: f64 = 1.5;
/// The same of one in the shared cache, whose driver is our own, by a get on a connection of its own.
const SHARED_COST_MAX: f64 = 2.0;
/// Links that stay in the smallest cache.
const CACHED: usize = 50;

#[test]
fn a_miss_costs_little_more_than_a_bare_call_to_postgres() {
    let _alone = alone();
    let database = need!(shared()).database("misses").unwrap();
    let url = database.url();
    let settings = [("store.links", url.as_str())];
    let bare = |keys, time| look_up_in_postgres(url.clone(), keys, time);
    judge_misses("PostgreSQL", COST_MAX, &settings, bare).unwrap();
}

#[test]
fn a_miss_costs_little_more_than_a_bare_call_to_cassandra() {
    let _alone = alone();
    let cluster = need!(cassandra::shared());
    let namespace = unique("misses");
    let addresses = cluster.addresses();
    let url = format!("cassandra://{addresses}/curt?namespace={namespace}");
    let settings = [
        ("store.links", url.as_str()),
        // The machine may be busy.
        ("cassandra.connect_timeout", "20s"),
        ("cassandra.call_timeout", "20s"),
    ];
    let bare =
        |keys, time| look_up_in_cassandra(addresses.to_string(), namespace.clone(), keys, time);
    judge_misses("Cassandra", COST_MAX, &settings, bare).unwrap();
}

#[test]
fn a_look_up_in_the_shared_cache_costs_twice_a_plain_get_at_most() {
    let _alone = alone();
    let database = need!(shared()).database("misses").unwrap();
    let cache = need!(memcached::Server::start(64));
    let (links, url) = (database.url(), cache.url());
    let settings = [
        ("store.links", links.as_str()),
        ("store.cache", url.as_str()),
        ("cache.shared_ttl", "1h"),
    ];
    let bare = |keys, time| look_up_in_memcached(cache.address(), keys, time);
    judge_misses("Memcached", SHARED_COST_MAX, &settings, bare).unwrap();
}

fn judge_misses(
    engine: &str,
    cost_max: f64,
    settings: &[(&str, &str)],
    bare: impl Fn(Arc<KeySet>, Duration) -> Result<CallCost>,
) -> Result<()> {
    let cache = [("cache.bytes", SMALL_CACHE), ("clicks.capture", "false")];
    let installation = Installation::start(&[settings, &cache].concat())?;
    let keys = Arc::new(installation.create_links(length(2_000, 20_000))?);
    let (rounds, seconds) = length((1, 0.3), (9, 2.0));
    let cached = Arc::new(
        (0..CACHED)
            .map(|place| keys.text(place))
            .collect::<KeySet>(),
    );
    let (mut misses, mut hits, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms all of them up.
    for round in 0..=rounds {
        let missed = installation.follow(&keys, |plan| plan.limit = Limit::seconds(seconds))?;
        // At the same rate: a server with little to do wakes up for each request, and pays for that too.
        let hit = installation.follow(&cached, |plan| {
            plan.limit = Limit::seconds(seconds);
            plan.rate = Some(missed.rate());
        })?;
        for report in [&missed, &hit] {
            anyhow::ensure!(report.failed() == 0, "{report}");
        }
        let call = bare(Arc::clone(&keys), Duration::from_secs_f64(seconds))?;
        anyhow::ensure!(call.calls > 0, "no call was answered");
        if round > 0 {
            misses.push(missed.server_cpu_us().context("no CPU time")?);
            hits.push(hit.server_cpu_us().context("no CPU time")?);
            calls.push(call.micros);
        }
    }
    let (miss, hit, call) = (median(&misses)?, median(&hits)?, median(&calls)?);
    let ratio = (miss - hit) / call;
    println!(
        "rates: a redirect that asks {engine}: {miss:.1} µs of CPU, one at the same rate that does not {hit:.1} µs, a bare call \
         of the driver {call:.1} µs: the look-up costs {ratio:.2} bare calls"
    );
    anyhow::ensure!(ratio <= cost_max || !is_full(), "{ratio:.2} times as much");
    Ok(())
}
