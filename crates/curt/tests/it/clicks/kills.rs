//! C-1: counts are exact after kill -9 at any moment. Visitors write down what they asked for and what was answered; a
//! click that was answered is counted once, and one that was not is counted once or not at all.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use curt_testkit::engines::cassandra;
use curt_testkit::http::Connection;
use curt_testkit::need;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::{Class, clicks_of, new_link};
use crate::api::Api;
use crate::length::length;
use crate::scale::cassandra_settings;
use crate::site::Site;
use crate::wait::eventually;

const LINKS: usize = 4;
const VISITORS: usize = 8;
const RESTARTED_WITHIN: Duration = Duration::from_secs(60);

/// Clicks of one visitor, each by its own referrer.
#[derive(Debug, Default)]
pub(super) struct Diary {
    pub(super) answered: Vec<String>,
    /// Asked for, and the kill came first.
    pub(super) open: Vec<String>,
}

impl Diary {
    pub(super) fn add(&mut self, other: Self) {
        self.answered.extend(other.answered);
        self.open.extend(other.open);
    }
}

#[test]
fn no_answered_click_is_lost_or_counted_twice_over_kill_9_c1() {
    let site = Site::start(&["server.workers=2", "clicks.flush_every=500ms"]);
    count_over_kills("kills", site, length(3, 50), 50..400);
}

/// Where no transaction spans the counts and their position.
#[test]
fn no_answered_click_is_lost_or_counted_twice_on_cassandra_over_kill_9_c1() {
    let cluster = need!(cassandra::shared());
    let mut settings = cassandra_settings(&cluster, "20s");
    settings.extend(["server.workers=2", "clicks.flush_every=50ms"].map(str::to_owned));
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let site = Site::start_with_stores(&settings);
    count_over_kills("kills on Cassandra", site, length(2, 30), 300..1_500);
}

#[cfg(feature = "dynamodb")]
#[test]
fn no_answered_click_is_lost_or_counted_twice_on_dynamodb_over_kill_9_c1() {
    let server = need!(curt_testkit::engines::dynamodb::shared());
    let mut settings = crate::scale::dynamodb_settings(&server);
    settings.extend(["server.workers=2", "clicks.flush_every=50ms"].map(str::to_owned));
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let site = Site::start_with_stores(&settings);
    count_over_kills("kills on DynamoDB", site, length(1, 30), 300..1_500);
}

/// Something is being flushed at nearly every moment.
#[test]
fn no_answered_click_is_lost_or_counted_twice_over_kill_9_in_flushes_c1() {
    let site = Site::start(&["server.workers=2", "clicks.flush_every=20ms"]);
    count_over_kills("kills in flushes", site, length(3, 50), 100..300);
}

pub(super) fn count_over_kills(name: &str, mut site: Site, kills: usize, alive_millis: Range<u64>) {
    let seed = rand::random::<u64>();
    println!("{name}: {kills} kills, seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let keys: Vec<String> = (0..LINKS).map(|_| new_link(&site, &json!({}))).collect();
    let mut diary = Diary::default();
    for kill in 0..kills {
        if kill > 0 {
            site.restart();
        }
        let alive = Duration::from_millis(random.random_range(alive_millis.clone()));
        for seen in click_until_killed(&mut site, &keys, kill, alive) {
            diary.add(seen);
        }
    }
    site.restart();
    judge_after_stop(&mut site, &keys, &diary);
    println!(
        "{name}: {} clicks answered over {kills} kills, {} were not, 0 lost, 0 double",
        diary.answered.len(),
        diary.open.len()
    );
}

pub(super) fn click_until_killed(
    site: &mut Site,
    keys: &[String],
    kill: usize,
    alive: Duration,
) -> Vec<Diary> {
    click_until(site.http(), keys, kill, || {
        thread::sleep(alive);
        site.kill();
    })
}

/// Visitors click until the server is gone, or `end` has returned.
pub(super) fn click_until(
    http: SocketAddr,
    keys: &[String],
    kill: usize,
    end: impl FnOnce(),
) -> Vec<Diary> {
    let is_over = AtomicBool::new(false);
    let is_over = &is_over;
    thread::scope(|scope| {
        let visitors = (0..VISITORS).map(|visitor| {
            scope.spawn(move || {
                let mut diary = Diary::default();
                if let Ok(mut connection) = Connection::open(http) {
                    // The error is the kill; what counts is in the diary.
                    let name = format!("k{kill}-v{visitor}");
                    let ended =
                        click_on(&mut connection, keys, visitor, &name, &mut diary, is_over);
                    drop(ended);
                }
                diary
            })
        });
        let visitors: Vec<_> = visitors.collect();
        end();
        is_over.store(true, Ordering::Relaxed);
        let diaries = visitors.into_iter().map(|visitor| visitor.join().unwrap());
        diaries.collect()
    })
}

fn click_on(
    connection: &mut Connection,
    keys: &[String],
    first: usize,
    name: &str,
    diary: &mut Diary,
    is_over: &AtomicBool,
) -> io::Result<()> {
    for (number, key) in keys.iter().cycle().skip(first).enumerate() {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let referrer = format!("{name}-n{number}.example");
        let request = Class::Human.request(&format!("/{key}"));
        let request = request.header("Referer", format!("https://{referrer}/"));
        diary.open.push(referrer);
        let answer = connection.send(&request)?;
        assert_eq!(answer.status, 302, "{answer:?}");
        diary.answered.extend(diary.open.pop());
    }
    Ok(())
}

/// Once what is left in the spool is counted.
pub(super) fn judge_after_stop(site: &mut Site, keys: &[String], diary: &Diary) {
    wait_for_answered(site, keys, diary);
    assert!(site.terminate().success());
    site.restart();
    judge(site, keys, diary);
}

fn wait_for_answered(site: &Site, keys: &[String], diary: &Diary) {
    let answered = diary.answered.len() as u64;
    assert!(answered > 0, "nobody was answered before the kills");
    let mut api = site.api();
    eventually(RESTARTED_WITHIN, || {
        let counted: u64 = keys
            .iter()
            .map(|key| clicks_of(&mut api, key).total())
            .sum();
        match counted >= answered {
            true => Ok(()),
            false => Err(format!("lost: {counted} of {answered} clicks are counted")),
        }
    });
}

/// Every click is told by its referrer, so that one that is lost does not make up for one that is counted twice. Clicks
/// that nobody was answered for may still be counted meanwhile, before ones that somebody was.
pub(super) fn judge(site: &Site, keys: &[String], diary: &Diary) {
    let mut api = site.api();
    let mut stored = eventually(RESTARTED_WITHIN, || read_whole(&mut api, keys, diary));
    let twice: Vec<_> = stored.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "C-1: counted more than once: {twice:?}");
    for referrer in diary.answered.iter().chain(&diary.open) {
        stored.remove(referrer);
    }
    assert!(stored.is_empty(), "C-1: never asked for: {stored:?}");
}

/// How often each click is kept, where rollups have as many and none that was answered is missing.
fn read_whole(
    api: &mut Api,
    keys: &[String],
    diary: &Diary,
) -> Result<BTreeMap<String, u64>, String> {
    let mut stored = BTreeMap::<String, u64>::new();
    for key in keys {
        let single = single_clicks(api, key);
        let (counted, kept) = (clicks_of(api, key).total(), single.len());
        if counted != kept as u64 {
            return Err(format!(
                "C-1: rollups have {counted} clicks of /{key}, {kept} are kept"
            ));
        }
        for referrer in single {
            *stored.entry(referrer).or_default() += 1;
        }
    }
    let lost = |referrer: &&String| !stored.contains_key(*referrer);
    let lost: Vec<_> = diary.answered.iter().filter(lost).collect();
    match lost.is_empty() {
        true => Ok(stored),
        false => Err(format!("C-1: answered and not counted: {lost:?}")),
    }
}

/// The referrers of all clicks that are kept.
fn single_clicks(api: &mut Api, key: &str) -> Vec<String> {
    let mut referrers = Vec::new();
    let mut next = String::new();
    loop {
        let path = format!("/api/v1/links/{key}/clicks?limit=1000{next}");
        let answer = api.get(&path).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let page = answer.json();
        let clicks = page["clicks"].as_array().unwrap().iter();
        referrers.extend(clicks.map(|click| click["referrer"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => return referrers,
        }
    }
}
