//! Windows of clicks in Redis until they are written: nothing is lost with it, and nothing counted twice (C-1).

use std::thread;
use std::time::Duration;

use curt_testkit::engines::redis::Server;
use curt_testkit::need;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::kills::{Diary, click_until, count_over_kills, judge_after_stop};
use super::{WAIT_MAX, clicks_of, new_link};
use crate::length::length;
use crate::site::Site;
use crate::wait::eventually;

/// A server that keeps its windows there.
fn start(redis: &Server, flush_every: &str) -> Site {
    let counters = format!("store.counters={}", redis.url());
    let flush_every = format!("clicks.flush_every={flush_every}");
    Site::start(&["server.workers=2", &counters, &flush_every])
}

/// How many windows are there.
fn windows(redis: &Server) -> u64 {
    redis.run_command(&["DBSIZE"]).unwrap().parse().unwrap()
}

pub(super) fn wait_for_window(redis: &Server) {
    eventually(WAIT_MAX, || match windows(redis) {
        0 => Err("no window is in Redis".to_owned()),
        _ => Ok(()),
    });
}

/// Something is being written to the clicks database, and dropped from Redis, at nearly every moment.
#[test]
fn a_crash_between_flush_and_clear_counts_nothing_twice_c1() {
    let redis = need!(Server::start());
    let site = start(&redis, "20ms");
    count_over_kills(
        "kills between flush and clear",
        site,
        length(3, 50),
        100..300,
    );
}

#[test]
fn clicks_are_exact_over_lost_windows_and_kill_9_c1() {
    let mut redis = need!(Server::start());
    let mut site = start(&redis, "10s");
    let keys: Vec<String> = (0..3).map(|_| new_link(&site, &json!({}))).collect();
    let seed = rand::random::<u64>();
    let mut random = StdRng::seed_from_u64(seed);
    let rounds = length(3, 50);
    println!("{rounds} rounds, seed {seed}");
    let (mut diary, mut left) = (Diary::default(), 0);
    for round in 0..rounds {
        let alive = Duration::from_millis(random.random_range(200..900));
        let seen = click_until(site.http(), &keys, round, || {
            thread::sleep(alive);
            match round % 3 {
                0 => drop(redis.run_command(&["FLUSHALL"]).unwrap()),
                1 => {
                    // It comes back as it was before the last additions.
                    redis.run_command(&["SAVE"]).unwrap();
                    thread::sleep(alive / 2);
                    redis.kill().unwrap();
                    redis.restart().unwrap();
                }
                _ => {}
            }
            thread::sleep(alive);
            wait_for_window(&redis);
            site.kill();
        });
        seen.into_iter().for_each(|seen| diary.add(seen));
        left += windows(&redis);
        site.restart();
    }
    assert!(left > 0, "no window was left in Redis by any kill");
    judge_after_stop(&mut site, &keys, &diary);
    println!(
        "{} clicks answered over {rounds} rounds, {left} windows left in Redis, 0 lost, 0 double",
        diary.answered.len()
    );
}

/// A report has what is in Redis, which is dropped once it is written.
#[test]
fn reports_have_the_clicks_of_a_window_in_redis() {
    let redis = need!(Server::start());
    let site = start(&redis, "30m");
    let key = new_link(&site, &json!({}));
    let seen = click_until(site.http(), std::slice::from_ref(&key), 0, || {
        wait_for_window(&redis);
    });
    let name = redis.run_command(&["RANDOMKEY"]).unwrap();
    let left: i64 = redis
        .run_command(&["PTTL", &name])
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=24 * 3_600 * 1_000).contains(&left), "{name}: {left}");
    let answered: usize = seen.iter().map(|diary| diary.answered.len()).sum();
    let mut api = site.api();
    eventually(WAIT_MAX, || {
        let counted = clicks_of(&mut api, &key).total();
        match (counted, windows(&redis)) {
            (counted, 0) if counted == answered as u64 => Ok(()),
            (counted, left) => Err(format!(
                "{counted} of {answered} clicks, {left} windows left"
            )),
        }
    });
}
