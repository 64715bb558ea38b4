//! Clicks that would fill the disk: whoever follows a link can make as many as they like, each with texts of its own.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::Request;
use curt_testkit::stop::SetOnDrop;

use super::{Bystander, yield_to_server};
use crate::api::Api;
use crate::length::length;
use crate::site::Site;
use crate::small_disk::SmallDisk;
use crate::wait::eventually;

const ATTACKERS: u64 = 4;
/// Of one attacker: what is attacked is the disk, not the processor.
const CLICKS_PER_SECOND: u32 = 750;
/// Clicks without a pause between them.
const BURST: u64 = 50;
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0";
const COUNTED_WITHIN: Duration = Duration::from_secs(120);

/// Of each of the two workers' clicks, a window of 32 MiB that is written and one that is filled; the page cache of the
/// clicks database's writer.
const BUDGET_BYTES: u64 = (2 * 2 * 32 + 32) << 20;
const RESERVE_MIB: u64 = 8;
const SETTINGS: [&str; 11] = [
    "limits.sign_ins_per_address=",
    "limits.sign_ins_per_account=",
    "server.workers=2",
    "clicks.disk_reserve=8MiB",
    "clicks.flush_every=100ms",
    "clicks.spool_segment=1MiB",
    "clicks.spool_max=12MiB",
    "sqlite.checkpoint=1MiB",
    "sqlite.wal_max=4MiB",
    "keys.ledger.low=2000",
    "keys.ledger.high=4000",
];

#[test]
fn clicks_leave_the_reserve_of_a_small_disk_to_links() {
    // As small as it must be for that many clicks, which take little more room than their texts.
    let (disk_mib, clicks) = (length(25, 110), length(20_000, 620_000));
    let mut site = Site::new(&SETTINGS);
    let Some(disk) = SmallDisk::mount_empty(&site.folder().join("data"), disk_mib) else {
        return;
    };
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    let made = site.api().create("https://example.com/").unwrap().json();
    let key = made["key"].as_str().unwrap();
    let bystander = Bystander::of(site);
    let process = bystander.site().server().pid();
    let least_free = bystander.withstand("clicks on a small disk", BUDGET_BYTES, |site| {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let watch = scope.spawn(|| least_free(&disk, &over));
            {
                // Also when the flood fails: the watch would never end.
                let _end = SetOnDrop::of(&over);
                flood_by_many(site.http(), key, clicks);
                wait_until_counted(site);
            }
            watch.join().unwrap()
        })
    });
    let site = bystander.site();
    let dropped = metric(site, "curt_clicks_dropped_total");
    let skipped = metric(site, "curt_clicks_skipped_total");
    println!(
        "disk: {clicks} clicks, {dropped} dropped, {skipped} not kept; {least_free} bytes free at least"
    );
    assert!(skipped > 0, "the disk was never short of room");
    assert!(
        least_free >= RESERVE_MIB << 20,
        "clicks took of the reserve: {least_free} bytes were free"
    );
    assert_eq!(site.server().pid(), process, "the server restarted");
    // Every click of the flood was counted or told as dropped.
    let stats = site.api().get(&format!("/api/v1/links/{key}/stats"));
    let counted = stats.unwrap().json()["totals"]["total"].as_u64().unwrap();
    assert!(
        counted <= clicks && counted + dropped >= clicks,
        "{counted} counted, {dropped} dropped"
    );
    assert_eq!(site.api().get("/health/ready").unwrap().status, 200);
}

fn least_free(disk: &SmallDisk, over: &AtomicBool) -> u64 {
    let mut least = u64::MAX;
    while !over.load(Ordering::Relaxed) {
        least = least.min(disk.free_bytes());
        thread::sleep(Duration::from_millis(2));
    }
    least
}

fn flood_by_many(http: SocketAddr, key: &str, clicks: u64) {
    thread::scope(|scope| {
        for attacker in 0..ATTACKERS {
            scope.spawn(move || flood(http, key, attacker, clicks / ATTACKERS));
        }
    });
}

fn flood(http: SocketAddr, key: &str, attacker: u64, clicks: u64) {
    yield_to_server();
    let mut api = Api::new(http, "");
    let began = Instant::now();
    for click in 0..clicks {
        if click.is_multiple_of(BURST) {
            let due = began + Duration::from_secs(click) / CLICKS_PER_SECOND;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let referrer = format!("https://a{attacker}-{click}-{}.example/", "r".repeat(150));
        let request = Request::get(&format!("/{key}"))
            .header("User-Agent", BROWSER)
            .header("Referer", referrer);
        let answer = api.send(&request).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
    }
}

fn wait_until_counted(site: &Site) {
    eventually(COUNTED_WITHIN, || {
        let (captured, counted) = (
            metric(site, "curt_clicks_captured_total"),
            metric(site, "curt_clicks_counted_total"),
        );
        match counted >= captured {
            true => Ok(()),
            false => Err(format!("{counted} of {captured} clicks are counted")),
        }
    });
}

/// Over all labels.
fn metric(site: &Site, name: &str) -> u64 {
    let labelled = format!("{name}{{");
    let metrics = site.metrics();
    let samples = metrics.matching(|sample| sample == name || sample.starts_with(&labelled));
    samples.iter().map(|(_, count)| *count as u64).sum()
}
