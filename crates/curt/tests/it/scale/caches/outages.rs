//! Cache servers that are killed, cut off and slow.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::engines::proxy::Line;
use curt_testkit::need;

use super::{Fleet, Followed};
use crate::alone::alone;
use crate::length::{length, time_max};

/// Answers that are redirects, whatever happens to the caches.
const REDIRECTED_MIN: f64 = 0.999;
/// When a deleted link must not be served any more.
const DELETED_AFTER: Duration = Duration::from_secs(5);

/// A link that was deleted, and when.
type Deleted = (String, Instant);

/// Follows deleted links at every server until `stop`, and returns those that redirect although they should not.
fn watch_deleted(fleet: &Fleet, deleted: &Mutex<Vec<Deleted>>, stop: &AtomicBool) -> Vec<String> {
    let mut apis: Vec<_> = (0..fleet.servers.len())
        .map(|server| fleet.api(server))
        .collect();
    let mut risen = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let links = deleted.lock().unwrap().clone();
        for (key, deleted_at) in &links {
            for (server, api) in apis.iter_mut().enumerate() {
                let asked = Instant::now();
                let status = api.follow(key).unwrap().status;
                if status == 302 && asked.duration_since(*deleted_at) > DELETED_AFTER {
                    risen.push(format!("{key} at server {server}"));
                }
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    risen
}

/// Deletes links while a cache server is away that holds them, and brings it back.
fn delete_while_away(mut fleet: Fleet, is_killed: bool) {
    let count = length(60, 600);
    let keys = fleet.create_links(count);
    let (doomed, living) = keys.split_at(count / 2);
    // Every link is on two of the three, from another server than the one that deletes.
    for server in [1, 0] {
        let mut api = fleet.api(server);
        for key in &keys {
            assert_eq!(api.follow(key).unwrap().status, 302);
        }
    }
    thread::sleep(Duration::from_millis(200));
    match is_killed {
        true => fleet.caches[0].server.kill().unwrap(),
        false => fleet.caches[0].line.set(Line::Cut),
    }
    let (deleted, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let (fleet_now, deleted_now) = (&fleet, &deleted);
    let followed = thread::scope(|scope| {
        let visitor = scope.spawn(|| Followed::make(fleet_now, living, Duration::from_secs(1)));
        let mut api = fleet_now.api(0);
        for key in doomed {
            assert!(api.delete(key).unwrap().status < 300);
            let entry = (key.clone(), Instant::now());
            deleted_now.lock().unwrap().push(entry);
        }
        visitor.join().unwrap()
    });
    assert!(
        followed.redirected() >= REDIRECTED_MIN,
        "{:?}",
        followed.failed
    );
    thread::sleep(DELETED_AFTER);
    match is_killed {
        true => fleet.caches[0].server.restart().unwrap(),
        false => fleet.caches[0].line.set(Line::Sound),
    }
    let fleet = &fleet;
    let (risen, followed) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch_deleted(fleet, &deleted, &stop));
        let followed = Followed::make(fleet, living, Duration::from_secs(length(3, 30)));
        fleet.await_caches(3);
        thread::sleep(Duration::from_millis(500));
        stop.store(true, Ordering::Relaxed);
        (watcher.join().unwrap(), followed)
    });
    assert!(risen.is_empty(), "L-2: {risen:?}");
    assert!(
        followed.redirected() >= REDIRECTED_MIN,
        "{:?}",
        followed.failed
    );
}

#[test]
fn a_cache_server_that_was_killed_brings_no_deleted_link_back_l2() {
    delete_while_away(need!(Fleet::start(2, 3, &[])), true);
}

/// It kept what it held.
#[test]
fn a_cache_server_that_was_cut_off_brings_no_deleted_link_back_l2() {
    delete_while_away(need!(Fleet::start(2, 3, &[])), false);
}

/// The other server could be told nothing: the channel is away as well.
#[test]
fn a_cache_server_that_was_cut_off_brings_nothing_back_without_the_channel_l2() {
    let fleet = need!(Fleet::start(2, 3, &[]));
    fleet.channel.set(Line::Cut);
    delete_while_away(fleet, false);
}

fn judge_without_caches(line: Line, slowest: Duration, what: &str) {
    let _alone = alone();
    let fleet = need!(Fleet::start(2, 3, &[]));
    let keys = fleet.create_links(length(100, 1_000));
    let warm = Followed::make(&fleet, &keys, Duration::from_millis(500));
    assert!(warm.failed.is_empty(), "{:?}", warm.failed);
    fleet.set_caches(line);
    if line == Line::Cut {
        fleet.channel.set(line);
    }
    let mut followed = Followed::make(&fleet, &keys, Duration::from_secs(length(3, 30)));
    let (redirected, p99) = (followed.redirected(), followed.percentile(0.99));
    println!("caches: {what}: {redirected:.5} redirected, p99 {p99:?}");
    assert!(redirected >= REDIRECTED_MIN, "{:?}", followed.failed);
    assert!(p99 <= time_max(slowest), "{p99:?}");
    for server in 0..2 {
        let refused = fleet.metric(server, "curt_http_requests_shed_total");
        assert!(refused == 0.0, "{refused} requests were shed");
    }
    fleet.set_caches(Line::Sound);
    fleet.await_caches(3);
    let before = fleet.metric(0, "curt_cache_loads_total{from=\"shared\"}");
    Followed::make(&fleet, &keys, Duration::from_secs(2));
    let after = fleet.metric(0, "curt_cache_loads_total{from=\"shared\"}");
    assert!(after > before, "the caches are used again");
}

#[test]
fn redirects_go_on_with_all_caches_and_the_channel_dead_r1() {
    judge_without_caches(Line::Cut, Duration::from_millis(50), "all caches dead");
}

#[test]
fn redirects_do_not_wait_for_caches_that_take_half_a_second_r1() {
    let slow = Line::SlowAnswers(Duration::from_millis(500));
    judge_without_caches(slow, Duration::from_millis(30), "caches slow by 500 ms");
}
