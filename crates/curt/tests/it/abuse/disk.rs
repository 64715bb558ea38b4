//! Clicks that would fill the disk: whoever follows a link can make as many as they like, each with texts of its own.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use curt_testkit::http::Request;

use super::Bystander;
use crate::api::Api;
use crate::length::length;
use crate::site::Site;
use crate::small_disk::SmallDisk;
use crate::wait::eventually;

const ATTACKERS: u64 = 4;
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0";
const COUNTED_WITHIN: Duration = Duration::from_secs(120);

#[test]
fn clicks_leave_the_reserve_of_a_small_disk_to_links() {
    let (disk_mib, clicks, reserve_mib) = (length(28, 150), length(20_000, 310_000), 8);
    let reserve = format!("clicks.disk_reserve={reserve_mib}MiB");
    let mut site = Site::new(&[
        "limits.sign_ins_per_address=",
        "limits.sign_ins_per_account=",
        "server.workers=2",
        "clicks.flush_every=100ms",
        "clicks.spool_segment=1MiB",
        "clicks.spool_max=12MiB",
        "sqlite.checkpoint=1MiB",
        "sqlite.wal_max=4MiB",
        "keys.ledger.low=2000",
        "keys.ledger.high=4000",
        &reserve,
    ]);
    let Some(disk) = SmallDisk::mount_empty(&site.folder().join("data"), disk_mib) else {
        return;
    };
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    let key = site.api().create("https://example.com/").unwrap().json()["key"]
        .as_str()
        .unwrap()
        .to_owned();
    let bystander = Bystander::of(site);
    let process = bystander.site().server().pid();
    let least_free = AtomicU64::new(u64::MAX);
    bystander.withstand("clicks on a small disk", 96 << 20, |site| {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    least_free.fetch_min(disk.free_bytes(), Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(2));
                }
            });
            let flooded = thread::scope(|attack| {
                let attackers: Vec<_> = (0..ATTACKERS)
                    .map(|attacker| {
                        let (http, key) = (site.http(), &key);
                        attack.spawn(move || flood(http, key, attacker, clicks / ATTACKERS))
                    })
                    .collect();
                attackers
                    .into_iter()
                    .map(|attacker| attacker.join())
                    .collect::<Vec<_>>()
            });
            wait_until_counted(site);
            over.store(true, Ordering::Relaxed);
            for attacker in flooded {
                attacker.unwrap();
            }
        });
    });
    let site = bystander.site();
    let least_free = least_free.into_inner();
    let number = |name: &str| metric(site, name);
    let (captured, dropped) = (
        number("curt_clicks_captured_total"),
        number("curt_clicks_dropped_total"),
    );
    let skipped = number("curt_click_visits_skipped_total");
    println!(
        "disk: {clicks} clicks, {captured} counted, {dropped} dropped, {skipped} not kept; {least_free} bytes free at least"
    );
    assert!(skipped > 0, "the disk was never short of room");
    assert!(
        least_free >= reserve_mib << 20,
        "clicks took of the reserve: {least_free} bytes were free"
    );
    assert_eq!(site.server().pid(), process, "the server restarted");
    // Every click of the flood was counted or told as dropped.
    let stats = format!("/api/v1/links/{key}/stats");
    let counted = site.api().get(&stats).unwrap().json()["totals"]["total"]
        .as_u64()
        .unwrap();
    assert!(
        counted <= clicks && counted + dropped >= clicks,
        "{counted} counted, {dropped} dropped"
    );
    let health = site.api().get("/health/ready").unwrap();
    assert_eq!(health.status, 200);
}

fn flood(http: SocketAddr, key: &str, attacker: u64, clicks: u64) {
    let mut api = Api::new(http, "");
    for click in 0..clicks {
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
