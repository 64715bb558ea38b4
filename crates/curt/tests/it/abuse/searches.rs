//! Searches over many links whose clients have hung up.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::{Connection, Request};
use curt_testkit::stop::SetOnDrop;

use super::probe::SETTINGS;
use super::{Bystander, yield_to_server};
use crate::api::{Api, bulk_results};
use crate::length::length;
use crate::site::Site;
use crate::wait::eventually;

const ATTACKER: &str = "searcher";
/// Searches that are sent before their sockets are closed.
const TOGETHER: usize = 50;
const PAUSE: Duration = Duration::from_millis(50);
const CLICKS: usize = 20;
/// Long enough for a machine that has other work, and far less than what is queued without a bound.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn abandoned_searches_hold_up_nobody() {
    let site = site();
    let reader = prepare(&site);
    let bystander = Bystander::of(site);
    let (searches, lasts) = (length(400, 1_500), length(0, 15));
    bystander.withstand("abandoned searches", 24 << 20, |site| {
        let attack = Attack::new(site, &reader);
        thread::scope(|scope| {
            let _end = SetOnDrop::of(&attack.over);
            scope.spawn(|| attack.run());
            attack.wait_for(searches / 2);
            assert_clicks_are_counted(site);
            assert_listed_host_is_refused(site);
            assert_list_is_answered(site);
            attack.wait_for(searches);
            thread::sleep(Duration::from_secs(lasts));
        });
        println!("abuse: {} searches were abandoned", attack.sent());
    });
    // Nothing of it is left: whoever searched so much may search again.
    let mut api = Api::new(bystander.site().http(), &reader);
    eventually(SOON, || {
        match api.get("/api/v1/links?search=absent").unwrap() {
            answer if answer.status == 200 => Ok(()),
            answer => Err(answer.text()),
        }
    });
}

/// A server with a blocklist, on which clicks and listed hosts show soon.
fn site() -> Site {
    let own = [
        "links.blocklist=blocked",
        "links.blocklist_reload=100ms",
        "clicks.flush_every=100ms",
    ];
    let mut site = Site::new(&[&SETTINGS[..], &own].concat());
    fs::write(site.folder().join("blocked"), "").unwrap();
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    site
}

/// Gives the attacker many links, and returns their key that may only read.
fn prepare(site: &Site) -> String {
    let mut api = Api::new(site.http(), &site.new_token(ATTACKER));
    for part in 0..length(10, 52) {
        let target = |number| format!("https://example.com/{part}/{number}");
        let targets: Vec<_> = (0..1_000).map(target).collect();
        bulk_results(&api.bulk(&targets).unwrap());
    }
    let email = format!("{ATTACKER}@example.com");
    let arguments = [
        "api-key", "add", "reader", "--user", &email, "--scopes", "read",
    ];
    site.app().run(&arguments).unwrap().trim().to_owned()
}

struct Attack<'a> {
    site: &'a Site,
    search: Request,
    sent: AtomicUsize,
    over: AtomicBool,
}

impl<'a> Attack<'a> {
    fn new(site: &'a Site, token: &str) -> Self {
        Self {
            site,
            search: Request::get("/api/v1/links?search=zzqq&limit=1").bearer(token),
            sent: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Sends searches and hangs up without waiting for an answer, over and over.
    fn run(&self) {
        yield_to_server();
        let address = self.site.http();
        let bytes = self.search.encode(&address.to_string());
        while !self.over.load(Ordering::Relaxed) {
            let mut open = Vec::with_capacity(TOGETHER);
            for _ in 0..TOGETHER {
                // A server may refuse whoever comes too often: that is not what is looked at here.
                let Ok(mut connection) = Connection::open(address) else {
                    continue;
                };
                if connection.write_raw(&bytes).is_ok() {
                    self.sent.fetch_add(1, Ordering::Relaxed);
                    open.push(connection);
                }
            }
            thread::sleep(PAUSE);
        }
    }

    fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    fn wait_for(&self, searches: usize) {
        let began = Instant::now();
        while self.sent() < searches {
            assert!(began.elapsed() < 6 * SOON, "only {} sent", self.sent());
            thread::sleep(PAUSE);
        }
    }
}

fn assert_clicks_are_counted(site: &Site) {
    let mut api = site.api();
    let made = api.create("https://example.com/clicked").unwrap().json();
    let key = made["key"].as_str().unwrap();
    for _ in 0..CLICKS {
        assert_eq!(api.follow(key).unwrap().status, 302);
    }
    let counted = || {
        let metrics = site.metrics();
        metrics.get("curt_clicks_counted_total").unwrap_or(0.0)
    };
    // The bystander's own are among them, so that this is the least that it can be.
    let wanted = counted() + CLICKS as f64;
    for _ in 0..CLICKS {
        assert_eq!(api.follow(key).unwrap().status, 302);
    }
    eventually(SOON, || match counted() {
        now if now >= wanted => Ok(()),
        now => Err(format!("{now} of {wanted} clicks are counted")),
    });
}

fn assert_listed_host_is_refused(site: &Site) {
    let (new, used) = (site.folder().join("new"), site.folder().join("blocked"));
    fs::write(&new, "evil.example\n").unwrap();
    fs::rename(new, used).unwrap();
    let mut api = site.api();
    eventually(SOON, || {
        match api.create("https://evil.example/").unwrap().status {
            422 => Ok(()),
            status => Err(format!("{status} for a target that is listed")),
        }
    });
}

/// Of a user who has nothing to do with the attack.
fn assert_list_is_answered(site: &Site) {
    let mut api = site.api();
    for path in ["/api/v1/links", "/api/v1/stats", "/api/v1/sessions"] {
        let answer = api.get(path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
}
