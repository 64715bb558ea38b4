//! How often the store and the shared cache are asked: for a link that everybody wants, by a server that has just started,
//! and over a mix of links.

use std::thread;
use std::time::{Duration, Instant};

use curt_bench::random::Random;
use curt_bench::zipf::Zipf;
use curt_testkit::need;

use super::{Fleet, Followed};
use crate::length::length;
use crate::wait::eventually;

/// Looks of one server at the shared cache for one link, in a second.
const VIRAL_LOOKS_MAX: f64 = 2.0;

#[test]
fn a_viral_link_is_looked_up_in_the_shared_cache_twice_a_second_at_most() {
    // Without the channel copies live for a second; with it, for five.
    for settings in [&[][..], &[("store.invalidations", "")]] {
        let fleet = need!(Fleet::start(2, 1, settings));
        let keys = fleet.create_links(1);
        Followed::make(&fleet, &keys, Duration::from_millis(200));
        let before: Vec<f64> = (0..2).map(|server| fleet.shared_lookups(server)).collect();
        let begun = Instant::now();
        let followed = Followed::make(&fleet, &keys, Duration::from_secs(length(4, 20)));
        let seconds = begun.elapsed().as_secs_f64();
        assert!(followed.failed.is_empty(), "{:?}", followed.failed);
        for (server, before) in before.into_iter().enumerate() {
            let rate = (fleet.shared_lookups(server) - before) / seconds;
            println!(
                "caches: a viral link: {:.0} redirects/s, {rate:.2} looks/s at the shared cache",
                followed.took.len() as f64 / seconds / 2.0
            );
            assert!(rate <= VIRAL_LOOKS_MAX, "{rate} looks a second");
        }
    }
}

#[test]
fn a_server_that_starts_under_load_asks_the_store_once_for_each_link_at_most() {
    // The machine may be busy, and nothing here is about late answers.
    let patient = [("cache.shared_deadline", "5s")];
    let mut fleet = need!(Fleet::start(1, 2, &patient));
    let keys = fleet.create_links(length(50, 1_000));
    let number = fleet.add_server().unwrap();
    let end = Instant::now() + Duration::from_secs(length(2, 10));
    let fleet = &fleet;
    thread::scope(|scope| {
        for visitor in 0..8 {
            let keys = &keys;
            scope.spawn(move || {
                let mut api = fleet.api(number);
                for key in keys.iter().cycle().skip(visitor % 2) {
                    assert_eq!(api.follow(key).unwrap().status, 302);
                    if Instant::now() >= end {
                        return;
                    }
                }
            });
        }
    });
    let loads = fleet.metric(number, "curt_cache_loads_total{from=\"store\"}");
    println!(
        "caches: a cold start: {loads} looks at the store for {} links",
        keys.len()
    );
    assert!(
        loads <= keys.len() as f64,
        "{loads} for {} links",
        keys.len()
    );
    // Another one finds in the shared cache what was put there: on a busy machine some fills come too late, and are told.
    let fills = |result: &str| {
        let name = format!("curt_shared_cache_fills_total{{result=\"{result}\"}}");
        fleet.metric(number, &name)
    };
    eventually(super::WAIT_MAX, || {
        // Of two copies each, which are dropped together.
        let told = fills("done") + fills("failed") + fills("dropped") * 2.0;
        match told >= loads * 2.0 {
            true => Ok(()),
            false => Err(format!("{told} fills")),
        }
    });
    let missing = loads * 2.0 - fills("done");
    let mut api = fleet.api(0);
    let before = fleet.metric(0, "curt_cache_loads_total{from=\"store\"}");
    for key in &keys {
        assert_eq!(api.follow(key).unwrap().status, 302);
    }
    let after = fleet.metric(0, "curt_cache_loads_total{from=\"store\"}");
    let asked = after - before;
    assert!(
        asked <= missing,
        "{asked} looks at the store, {missing} fills are missing"
    );
}

/// What the documents claim for a cache of a fifth of the links: 98 to 99 % of redirects. Printed, not judged. In the short
/// form the smallest Memcached holds all of them.
#[test]
fn the_hit_rate_of_a_mix_is_told() {
    let (links, mebibytes, draws) = length((4_000, 2, 20_000), (100_000, 4, 1_000_000));
    // About 200 bytes for each link in memory.
    let bytes = format!("{}B", links / 100 * 200);
    let settings = [
        ("cache.bytes", bytes.as_str()),
        ("cache.shared_ttl", "1h"),
        ("cache.shared_deadline", "5s"),
    ];
    let fleet = need!(Fleet::start_with(1, &[mebibytes], &settings));
    let keys = fleet.create_links(links);
    let zipf = Zipf::new(u32::try_from(links).unwrap(), 1.0);
    let draw = |seed: u64| {
        let (mut api, mut random) = (fleet.api(0), Random::new(seed));
        for _ in 0..draws / 4 {
            let key = &keys[zipf.draw(&mut random) as usize];
            assert_eq!(api.follow(key).unwrap().status, 302);
        }
    };
    let loads = |from: &str| fleet.metric(0, &format!("curt_cache_loads_total{{from=\"{from}\"}}"));
    let mut told = [0.0; 2];
    // The first round fills the caches.
    for round in 0..2 {
        let before = ["shared", "store"].map(loads);
        thread::scope(|scope| {
            for seed in 0..4 {
                let draw = &draw;
                scope.spawn(move || draw(round * 4 + seed + 1));
            }
        });
        let after = ["shared", "store"].map(loads);
        told = [after[0] - before[0], after[1] - before[1]];
    }
    let (all, [shared, store]) = (f64::from(draws), told);
    println!(
        "caches: a Zipf mix over {links} links, {mebibytes} MiB of Memcached: {:.2} % in memory (1 % of the links), {:.2} % of \
         the rest in the shared cache, {:.2} % in either",
        (1.0 - (shared + store) / all) * 100.0,
        shared / (shared + store) * 100.0,
        (1.0 - store / all) * 100.0
    );
    assert!(shared > 0.0);
}
