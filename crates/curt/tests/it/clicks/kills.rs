//! C-1: counts are exact after kill -9 at any moment. Visitors write down what they asked for and what was answered; a
//! visit that was answered is counted once, and one that was not is counted once or not at all.

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::Duration;

use curt_testkit::http::Connection;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::{Kind, new_link, visits_of};
use crate::length::length;
use crate::site::Site;
use crate::wait::eventually;

const LINKS: usize = 4;
const VISITORS: usize = 8;
const RESTARTED_WITHIN: Duration = Duration::from_secs(60);

/// Visits by key.
#[derive(Debug, Default)]
struct Diary {
    answered: BTreeMap<String, u64>,
    /// Asked for, and the kill came first.
    open: BTreeMap<String, u64>,
}

impl Diary {
    fn add(&mut self, other: Self) {
        for (key, count) in other.answered {
            *self.answered.entry(key).or_default() += count;
        }
        for (key, count) in other.open {
            *self.open.entry(key).or_default() += count;
        }
    }
}

#[test]
fn no_answered_visit_is_lost_or_counted_twice_over_kill_9_c1() {
    count_over_kills("kills", "clicks.flush_every=500ms", 50..400);
}

/// Something is being flushed at nearly every moment.
#[test]
fn no_answered_visit_is_lost_or_counted_twice_over_kill_9_in_flushes_c1() {
    count_over_kills("kills in flushes", "clicks.flush_every=20ms", 100..300);
}

fn count_over_kills(name: &str, flush: &str, alive_millis: std::ops::Range<u64>) {
    let kills = length(5, 50);
    let seed = rand::random::<u64>();
    println!("{name}: {kills} kills, seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut site = Site::start(&["server.workers=2", flush]);
    let keys: Vec<String> = (0..LINKS).map(|_| new_link(&site, &json!({}))).collect();
    let mut diary = Diary::default();
    for kill in 0..kills {
        if kill > 0 {
            site.restart();
        }
        let alive = Duration::from_millis(random.random_range(alive_millis.clone()));
        for seen in visit_until_killed(&mut site, &keys, alive) {
            diary.add(seen);
        }
    }
    site.restart();
    let total = wait_for_answered(&site, &diary);
    // What is left in the spool is counted before the end.
    assert!(site.terminate().success());
    site.restart();
    let open: u64 = diary.open.values().sum();
    judge(&site, &diary);
    println!(
        "{name}: {total} visits answered over {kills} kills, {open} were not, 0 lost, 0 double"
    );
}

fn visit_until_killed(site: &mut Site, keys: &[String], alive: Duration) -> Vec<Diary> {
    let http = site.http();
    thread::scope(|scope| {
        let visitors = (0..VISITORS).map(|visitor| {
            scope.spawn(move || {
                let mut diary = Diary::default();
                if let Ok(mut connection) = Connection::open(http) {
                    // The error is the kill; what counts is in the diary.
                    let ended = visit_on(&mut connection, keys, visitor, &mut diary);
                    drop(ended);
                }
                diary
            })
        });
        let visitors: Vec<_> = visitors.collect();
        thread::sleep(alive);
        site.kill();
        let diaries = visitors.into_iter().map(|visitor| visitor.join().unwrap());
        diaries.collect()
    })
}

fn visit_on(
    connection: &mut Connection,
    keys: &[String],
    first: usize,
    diary: &mut Diary,
) -> io::Result<()> {
    for key in keys.iter().cycle().skip(first) {
        diary.open.insert(key.clone(), 1);
        let answer = connection.send(&Kind::Human.request(&format!("/{key}")))?;
        assert_eq!(answer.status, 302, "{answer:?}");
        diary.open.remove(key);
        *diary.answered.entry(key.clone()).or_default() += 1;
    }
    Ok(())
}

fn wait_for_answered(site: &Site, diary: &Diary) -> u64 {
    let mut api = site.api();
    for (key, answered) in &diary.answered {
        eventually(RESTARTED_WITHIN, || {
            match visits_of(&mut api, key).total() {
                counted if counted >= *answered => Ok(()),
                counted => Err(format!(
                    "lost: {counted} of {answered} visits of /{key} are counted"
                )),
            }
        });
    }
    let total = diary.answered.values().sum();
    assert!(total > 0, "nobody was answered before the kills");
    total
}

fn judge(site: &Site, diary: &Diary) {
    let mut api = site.api();
    for (key, answered) in &diary.answered {
        let most = answered + diary.open.get(key).copied().unwrap_or_default();
        let counted = visits_of(&mut api, key).total();
        assert!(
            (*answered..=most).contains(&counted),
            "C-1: /{key} has {counted} visits, but {answered} were answered and at most {most} asked for"
        );
    }
}
