//! C-2: a redirect never waits for telemetry. When counting cannot go on, clicks are dropped and counted as dropped.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;

use super::{CAPTURED, COUNTED, Class, DROPPED, clicks_of, metric, new_link, wait_until_counted};
use crate::api::Api;
use crate::site::Site;
use crate::small_disk::SmallDisk;
use crate::wait::eventually;

const VISITORS: usize = 4;
const DROPPED_DISK: &str = "curt_clicks_dropped_total{reason=\"disk\"}";
const DROPPED_FULL: &str = "curt_clicks_dropped_total{reason=\"full\"}";

#[test]
fn over_a_full_spool_redirects_go_on_and_drops_are_counted_exactly_c2() {
    let mut site = Site::start(&[
        "server.workers=2",
        "clicks.flush_every=50ms",
        "clicks.spool_max=1536KiB",
    ]);
    let key = new_link(&site, &json!({}));
    let mut answered = click_by_many(site.http(), &key, 1);
    wait_until_counted(&site);
    let held = hold_the_store(&site);
    eventually(Duration::from_secs(120), || {
        answered += click_by_many(site.http(), &key, 500);
        // Before it is full, a slow disk may be late with the next segment.
        match metric(&site, DROPPED_FULL) {
            0..200 => Err(format!("the spool is not full after {answered} clicks")),
            _ => Ok(()),
        }
    });
    judge(&site, answered);
    assert_eq!(metric(&site, COUNTED), VISITORS as u64, "the store is held");

    held.execute_batch("ROLLBACK").unwrap();
    wait_until_counted(&site);
    // Counting goes on as soon as there is room.
    answered += click_until_captured(&site, &key, 100);
    wait_until_counted(&site);
    let captured = judge(&site, answered);
    assert!(site.terminate().success());
    site.restart();
    let counted = clicks_of(&mut site.api(), &key).total();
    assert_eq!(counted, captured);
    println!("full spool: {answered} answered, {counted} counted, all others counted as dropped");
}

#[test]
fn on_a_full_disk_redirects_go_on_and_drops_are_counted_exactly_c2() {
    let mut site = Site::new(&[
        "server.workers=2",
        "clicks.flush_every=50ms",
        "clicks.spool_segment=128KiB",
        "clicks.disk_reserve=4MiB",
        "keys.ledger.low=2000",
        "keys.ledger.high=4000",
    ]);
    let Some(disk) = SmallDisk::mount(&site.folder().join("data")) else {
        return;
    };
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    let key = new_link(&site, &json!({}));
    let mut answered = click_by_many(site.http(), &key, 1);
    wait_until_counted(&site);
    disk.fill_up();
    eventually(Duration::from_secs(120), || {
        answered += click_by_many(site.http(), &key, 500);
        match metric(&site, DROPPED_DISK) {
            0..200 => Err(format!("the disk is not full after {answered} clicks")),
            _ => Ok(()),
        }
    });
    judge(&site, answered);

    disk.make_room();
    wait_until_counted(&site);
    answered += click_until_captured(&site, &key, 100);
    wait_until_counted(&site);
    let captured = judge(&site, answered);
    assert!(site.terminate().success());
    site.restart();
    assert_eq!(clicks_of(&mut site.api(), &key).total(), captured);
}

/// Every click was written down or counted as dropped. Returns how many were written down.
fn judge(site: &Site, answered: u64) -> u64 {
    let (captured, dropped) = (metric(site, CAPTURED), metric(site, DROPPED));
    assert_eq!(captured + dropped, answered, "{captured} + {dropped}");
    captured
}

/// Clicks until so many more are written down; says how many were answered.
fn click_until_captured(site: &Site, key: &str, more: u64) -> u64 {
    let before = metric(site, CAPTURED);
    let mut answered = 0;
    eventually(Duration::from_secs(30), || {
        answered += click_by_many(site.http(), key, 1);
        match metric(site, CAPTURED) - before {
            captured if captured >= more => Ok(()),
            captured => Err(format!("{captured} of {answered} clicks are captured")),
        }
    });
    answered
}

/// Nothing can be written as long as this lives.
fn hold_the_store(site: &Site) -> Connection {
    let held = Connection::open(site.folder().join("data/clicks.db")).unwrap();
    held.busy_timeout(Duration::from_secs(10)).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    held
}

/// With as much to write down as a click can have.
fn click_by_many(http: SocketAddr, key: &str, clicks: u64) -> u64 {
    let path = format!("/{key}");
    let asked = Class::Human.request(&path).header(
        "Referer",
        format!("https://example.com/{}", "r".repeat(600)),
    );
    thread::scope(|scope| {
        for _ in 0..VISITORS {
            scope.spawn(|| {
                let mut api = Api::new(http, "");
                for _ in 0..clicks {
                    let answer = api.send(&asked).unwrap();
                    assert_eq!(answer.status, 302, "{answer:?}");
                }
            });
        }
    });
    VISITORS as u64 * clicks
}
