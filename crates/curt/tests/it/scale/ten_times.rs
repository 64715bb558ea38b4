//! Ten times the links: as fast, in the same memory.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_bench::keys::{KeySet, Pick, target_for};
use curt_bench::load::{Limit, LoadReport, Plan, RedirectLoad, redirect};
use curt_bench::median::Spread;
use curt_core::ports::{Inserted, LinkStore};
use curt_core::{Clock as _, KeyOrigin, Link, SystemClock, Target, UnixMillis};
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};

use crate::alone::alone;
use crate::length::{is_full, length};
use crate::site::Site;

const KEY_WIDTH: usize = 7;
const FILL_BATCH: usize = 4_000;
/// The memory for links; far less than the links need, in both forms of the test.
const CACHE: &str = "cache.bytes=16MiB";
const CACHE_BYTES: f64 = (16 << 20) as f64;
/// What else may grow while every link is touched: the page caches of SQLite's four readers (4 MiB each), the cache of
/// misses, buffers of the connections and what the allocator keeps in reserve.
const BESIDES_CACHE_BYTES: f64 = (40 << 20) as f64;
/// What counting clicks may take: the aggregates of one flush and the page cache of the writer.
const COUNTING_BYTES: f64 = (96 << 20) as f64;
/// How much the p99 may be of that with a tenth of the links.
const P99_RATIO_MAX: f64 = 1.5;
/// Rounds in which the machine may be too busy with other things to measure anything.
const STALLS_MAX: usize = 2;

struct Prepared {
    site: Site,
    keys: Arc<KeySet>,
}

/// A server over a database with so many links, stored through the product's own adapter.
fn prepared(links: u32, target_bytes: usize) -> Prepared {
    let began = Instant::now();
    let keys = Arc::new(KeySet::generated(links, KEY_WIDTH, 42));
    let mut site = Site::new(&[CACHE]);
    let data = site.folder().join("data");
    fs::create_dir_all(&data).unwrap();
    fill(&data.join("curt.db"), &keys, target_bytes);
    println!(
        "scale: stored {links} links in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    Prepared { site, keys }
}

fn fill(file: &Path, keys: &KeySet, target_bytes: usize) {
    // Thrown away after the test: a power cut does not matter.
    let settings = SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let database = Sqlite::open(file, settings).unwrap();
        let store = database.links();
        let now = SystemClock.now();
        // In the order of the keys, in which the file grows at its end only.
        let mut places: Vec<usize> = (0..keys.len()).collect();
        places.sort_unstable_by_key(|place| keys.get(*place));
        for batch in places.chunks(FILL_BATCH) {
            let links: Vec<Link> = batch
                .iter()
                .map(|place| link(&keys.text(*place), target_bytes, now))
                .collect();
            insert(&*store, links).await;
        }
        database.close().await;
    });
}

async fn insert(store: &dyn LinkStore, links: Vec<Link>) {
    let inserted = store.insert_if_absent(links, None).await.unwrap();
    assert!(inserted.iter().all(Inserted::is_created));
}

fn link(key: &str, target_bytes: usize, now: UnixMillis) -> Link {
    Link {
        target: Target::from_serialised(target_for(key, target_bytes)).unwrap(),
        // Not from the ledger, whose counts must still add up.
        origin: KeyOrigin::Random,
        created_at: now,
        updated_at: now,
        ..curt_testkit::sample::link(key)
    }
}

fn load(prepared: &Prepared, pick: Pick, change: impl FnOnce(&mut Plan)) -> LoadReport {
    let mut load = RedirectLoad::new(Plan::new(prepared.site.http()), Arc::clone(&prepared.keys));
    load.pick = pick;
    change(&mut load.plan);
    let report = redirect(&load).unwrap();
    assert_eq!(report.failed(), 0, "{report}");
    report
}

#[test]
fn ten_times_the_links_are_as_fast_in_the_same_memory() {
    let _alone = alone();
    let (few, many) = length((4_000, 40_000), (1_000_000, 10_000_000));
    // Short form: few links with long targets, so that all of them together would show in the memory.
    let target_bytes = length(2_000, 60);
    let sites = [prepared(few, target_bytes), prepared(many, target_bytes)];
    redirect_as_fast(&sites);
    // Afresh, so that what grows is seen from the start: links alone, and as shipped, where clicks are counted too.
    let [_, mut of_many] = sites;
    for (settings, besides) in [
        (&[CACHE, "clicks.capture=false"][..], BESIDES_CACHE_BYTES),
        (&[CACHE][..], BESIDES_CACHE_BYTES + COUNTING_BYTES),
    ] {
        assert!(of_many.site.terminate().success());
        of_many.site.change_settings(settings);
        of_many.site.restart();
        touch_every_link(&of_many, besides);
    }
}

/// What came of the rounds: the p99 of each server in those that count, and how often a server did not answer at the rate.
#[derive(Default)]
struct Rounds {
    p99: [Vec<f64>; 2],
    stalls: [usize; 2],
}

/// The 99th percentile of both at the same offered rate, in turn.
fn redirect_as_fast(sites: &[Prepared; 2]) {
    let rounds = length(1, 7);
    let (rate, seconds) = length((500.0, 1.0), (2_000.0, 10.0));
    let [few, many] = sites.each_ref().map(|site| site.keys.len());
    let mut seen = Rounds::default();
    // The first round warms the caches and is not counted.
    for round in 0..=rounds {
        let reports = sites.each_ref().map(|site| {
            load(site, Pick::zipf(&site.keys), |plan| {
                plan.connections = 32;
                plan.rate = Some(rate);
                plan.limit = Limit::seconds(seconds);
                plan.seed = round;
            })
        });
        // Requests found no free connection: the server stood still, or the machine did.
        let stalled = reports
            .each_ref()
            .map(|report| report.unsent * 20 > report.requests);
        if round == 0 {
            continue;
        }
        for (stalls, stalled) in seen.stalls.iter_mut().zip(stalled) {
            *stalls += usize::from(stalled);
        }
        if stalled == [false, false] {
            for (values, report) in seen.p99.iter_mut().zip(&reports) {
                values.push(report.latency.p99_us);
            }
        }
    }
    println!("scale: {:?} of {rounds} rounds stalled", seen.stalls);
    if is_full() {
        assert_as_fast(&seen, [few, many], rate);
    }
}

/// With ten times the links no more rounds stall, and the p99 of the others is the same.
fn assert_as_fast(seen: &Rounds, [few, many]: [usize; 2], rate: f64) {
    let [of_few, of_many] = seen.stalls;
    assert!(
        of_many <= of_few + 1 && of_few <= STALLS_MAX,
        "rounds that stalled: {of_few} with {few} links, {of_many} with {many}"
    );
    let [of_few, of_many] = seen.p99.each_ref().map(|values| {
        Spread::of(values).unwrap_or_else(|| panic!("no round kept up with {rate}/s"))
    });
    let ratio = Spread::of_ratios(&seen.p99[1], &seen.p99[0]).unwrap();
    println!(
        "scale: p99 at {rate}/s with a cache of 16 MiB: {of_few:.0} µs with {few} links, {of_many:.0} µs with {many}, ratio {ratio:.2}"
    );
    let factor = of_many.median / of_few.median;
    assert!(
        factor <= P99_RATIO_MAX,
        "p99 is {factor:.2} times that of a tenth of the links"
    );
}

/// Memory stays within the setting and a constant, whichever links are asked for.
fn touch_every_link(prepared: &Prepared, besides_cache: f64) {
    let links = prepared.keys.len() as u64;
    let server = prepared.site.server();
    // What a server holds that has been used a little: threads, connections, first pages.
    load(prepared, Pick::Uniform, |plan| {
        plan.limit = Limit::requests(2_000)
    });
    let base = server.anonymous_bytes().unwrap() as f64;
    let began = Instant::now();
    let mut touched = 0;
    while touched < links {
        let share = (links - touched).min(4_000_000);
        let keys: KeySet = (touched..touched + share)
            .map(|place| prepared.keys.text(place as usize))
            .collect();
        let mut load = RedirectLoad::new(Plan::new(prepared.site.http()), Arc::new(keys));
        load.pick = Pick::InOrder;
        load.plan.limit = Limit::requests(share);
        let report = redirect(&load).unwrap();
        assert_eq!((report.failed(), report.requests), (0, share), "{report}");
        touched += share;
    }
    let rate = touched as f64 / began.elapsed().as_secs_f64();
    let metrics = prepared.site.metrics();
    let cached = metrics.get("curt_cache_bytes").unwrap();
    let grown = server.anonymous_bytes().unwrap() as f64 - base;
    let mib = |bytes: f64| bytes / (1 << 20) as f64;
    println!(
        "scale: touched {links} links at {rate:.0}/s; the cache says {:.1} MiB, the process grew by {:.1} MiB from {:.1} MiB",
        mib(cached),
        mib(grown),
        mib(base)
    );
    assert!(cached <= CACHE_BYTES, "the cache holds {cached} bytes");
    assert!(metrics.get("curt_cache_links").unwrap() < links as f64);
    assert!(
        grown <= CACHE_BYTES + besides_cache,
        "the process grew by {:.1} MiB",
        mib(grown)
    );
    // And it stays there: the same again takes nothing more.
    let settled = server.anonymous_bytes().unwrap() as f64;
    load(prepared, Pick::Uniform, |plan| {
        plan.limit = Limit {
            duration: Duration::from_secs(length(3, 30)),
            requests: Some(links),
        };
    });
    let again = server.anonymous_bytes().unwrap() as f64 - settled;
    assert!(
        grown.max(0.0) + again <= CACHE_BYTES + besides_cache,
        "a second pass took another {:.1} MiB",
        mib(again)
    );
    // Counting goes on behind the clicks, and has its peak later.
    assert!(
        mib(again) <= 8.0 || besides_cache > BESIDES_CACHE_BYTES,
        "a second pass took another {:.1} MiB",
        mib(again)
    );
}
