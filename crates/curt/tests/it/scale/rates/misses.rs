//! A redirect whose link is in no cache: what it costs the server, beside a call of the engine's driver alone.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use curt_bench::keys::KeySet;
use curt_bench::load::Limit;
use curt_testkit::engines::cassandra;
use curt_testkit::engines::postgres::shared;
use curt_testkit::engines::unique;
use curt_testkit::need;

use super::bare::{CallCost, look_up_in_cassandra, look_up_in_postgres};
use super::{Installation, SMALL_CACHE, median};
use crate::alone::alone;
use crate::length::{is_full, length};

/// How much the whole redirect may cost, by what a call of the driver does.
const COST_MAX: f64 = 1.5;

#[test]
fn a_miss_costs_little_more_than_a_bare_call_to_postgres() {
    let _alone = alone();
    let database = need!(shared()).database("misses").unwrap();
    let url = database.url();
    let settings = [("store.links", url.as_str())];
    let bare = |keys, time| look_up_in_postgres(url.clone(), keys, time);
    judge_misses("PostgreSQL", &settings, bare).unwrap();
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
    judge_misses("Cassandra", &settings, bare).unwrap();
}

fn judge_misses(
    engine: &str,
    settings: &[(&str, &str)],
    bare: impl Fn(Arc<KeySet>, Duration) -> Result<CallCost>,
) -> Result<()> {
    let cache = [("cache.bytes", SMALL_CACHE), ("clicks.capture", "false")];
    let installation = Installation::start(&[settings, &cache].concat())?;
    let keys = Arc::new(installation.create_links(length(2_000, 20_000))?);
    let (rounds, seconds) = length((1, 0.3), (9, 2.0));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The first round warms both up.
    for round in 0..=rounds {
        let report = installation.follow(&keys, |plan| plan.limit = Limit::seconds(seconds))?;
        anyhow::ensure!(report.failed() == 0, "{report}");
        let call = bare(Arc::clone(&keys), Duration::from_secs_f64(seconds))?;
        anyhow::ensure!(call.calls > 0, "no call was answered");
        if round > 0 {
            ours.push(report.server_cpu_us().context("no CPU time")?);
            theirs.push(call.micros);
        }
    }
    let (ours, theirs) = (median(&ours)?, median(&theirs)?);
    let ratio = ours / theirs;
    println!(
        "rates: a redirect that asks {engine}: {ours:.1} µs of CPU, a bare call of its driver {theirs:.1} µs: {ratio:.2}"
    );
    anyhow::ensure!(ratio <= COST_MAX || !is_full(), "{ratio:.2} times as much");
    Ok(())
}
