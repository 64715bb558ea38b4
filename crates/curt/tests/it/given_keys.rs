//! Keys that must not become links, whoever put them where keys are taken from.

use std::time::Duration;

use curt_core::UnwantedWords;
use curt_testkit::engines::redis;
use curt_testkit::need;

use crate::api::{Api, bulk_results};
use crate::metrics::Metrics;
use crate::site::Site;
use crate::wait::eventually;

/// What somebody who can write to Redis would like to have.
const ROUTES: [&str; 12] = [
    "api",
    "health",
    "setup",
    "account",
    "metrics",
    "assets",
    "favicon.ico",
    "robots.txt",
    ".well-known",
    "sign-in",
    "openapi.json",
    "problems",
];
const NOT_A_KEY: &str = "a\r\nSet-Cookie: x=1";
const LINKS: usize = 200;

fn refused(metrics: &Metrics) -> f64 {
    let refusals = metrics.matching(|name| name.starts_with("curt_keys_refused_total"));
    refusals.into_iter().map(|(_, count)| count).sum()
}

fn make(api: &mut Api, round: usize) -> Vec<String> {
    let target = |number| format!("https://example.com/{round}/{number}");
    let targets: Vec<String> = (0..LINKS).map(target).collect();
    bulk_results(&api.bulk(&targets).unwrap())
}

/// What every route answers, by the fast path and with the slash that people type.
fn answers(site: &Site) -> Vec<(String, u16, Option<String>)> {
    let mut answers = Vec::new();
    for route in ROUTES {
        for path in [format!("/{route}/"), format!("/{route}")] {
            // A new connection each time: one that the router has answered on stays with it.
            let answer = Api::new(site.http(), "").get(&path).unwrap();
            let location = answer.header("location").map(ToOwned::to_owned);
            answers.push((path, answer.status, location));
        }
    }
    answers
}

#[test]
fn words_of_the_server_in_redis_become_no_links_and_routes_answer_as_before() {
    let redis = need!(redis::Server::start());
    let pool = format!("store.pool={}", redis.url());
    let site = Site::start(&[
        &pool,
        "keys.buffer.capacity=16",
        "keys.buffer.low=8",
        "keys.pool.low=200",
        "keys.pool.high=400",
        "keys.pool.batch=100",
        "limits.misses_per_address=",
    ]);
    let before = answers(&site);
    assert!(before.iter().all(|(_, status, _)| *status != 302));
    let supplied = "curt_links_created_total{origin=\"ledger\"}";
    let mut api = site.api();
    eventually(Duration::from_secs(60), || {
        assert_eq!(api.create("https://example.com/").unwrap().status, 201);
        match site.metrics().get(supplied) {
            Some(links) if links > 0.0 => Ok(()),
            _ => Err("no key comes from Redis yet"),
        }
    });
    let planted = [&["LPUSH", "available_keys:{0}", NOT_A_KEY], &ROUTES[..]].concat();
    redis.run_command(&planted).unwrap();
    let keys = make(&mut api, 1);
    for key in &keys {
        assert!(!ROUTES.contains(&key.as_str()), "{key}");
    }
    eventually(Duration::from_secs(30), || {
        make(&mut api, 2);
        match refused(&site.metrics()) {
            count if count == ROUTES.len() as f64 => Ok(()),
            count => Err(format!("{count} keys refused")),
        }
    });
    assert_eq!(answers(&site), before);
    assert_eq!(answers(&site), before, "nor do answers fill a cache");
    let logs = site.server().logs();
    assert!(
        logs.lines().all(|line| !line.starts_with("Set-Cookie")),
        "{logs}"
    );
}

/// Every sixth key or so holds one of these.
fn words() -> Vec<String> {
    let words = ('a'..='z').flat_map(|x| ('a'..='z').map(move |y| format!("a{x}{y}")));
    words.collect()
}

fn holding(keys: &[String], unwanted: &UnwantedWords) -> usize {
    keys.iter().filter(|key| unwanted.are_in(key)).count()
}

#[test]
fn keys_minted_before_a_word_was_unwanted_are_not_given_by_any_strategy() {
    let words = words();
    let unwanted = UnwantedWords::new(words.iter().map(String::as_str)).unwrap();
    let setting = format!("keys.unwanted_words={}", words.join(","));
    for strategy in [
        "pool",
        "status",
        "file",
        "claim",
        "snowflake",
        "sequence",
        "hash",
    ] {
        let chosen = format!("keys.strategy={strategy}");
        let small = [
            chosen.as_str(),
            "keys.file.file_keys=5000",
            "keys.file.block_keys=1000",
            "keys.file.refill_under=500",
            "keys.ledger.low=2000",
            "keys.ledger.high=4000",
            "keys.pool.low=1000",
            "keys.pool.high=2000",
            "keys.claim.low=2000",
            "keys.claim.high=4000",
        ];
        let mut site = Site::start(&small);
        let mut api = site.api();
        let by_chance = eventually(Duration::from_secs(60), || {
            match holding(&make(&mut api, 1), &unwanted) {
                0 => Err(format!("{strategy} spells no word")),
                spelled => Ok(spelled),
            }
        });
        assert!(by_chance > 0);
        assert!(site.terminate().success());
        site.change_settings(&[&small[..], &[&setting]].concat());
        site.restart();
        let mut api = site.api();
        for round in 2..5 {
            let keys = make(&mut api, round);
            assert_eq!(holding(&keys, &unwanted), 0, "{strategy}: {keys:?}");
        }
        let repeated = api.create_once("https://example.com/once", "one");
        let key = repeated.unwrap().json()["key"].as_str().unwrap().to_owned();
        assert_eq!(holding(&[key], &unwanted), 0, "{strategy}");
    }
}
