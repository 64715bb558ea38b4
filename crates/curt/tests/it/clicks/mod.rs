//! What counting clicks promises: every redirect that was answered is counted once, whatever happens to the server, and
//! nobody waits for it.

mod attribution;
#[cfg(target_os = "linux")]
mod clock;
mod counters;
mod crowded_out;
mod damaged;
mod dead_letters;
mod details;
mod erase;
mod exact;
mod fresh;
mod full_spool;
mod kafka;
mod kills;
mod lost_database;
mod many_servers;
mod max_clicks;
mod own_writer;
mod privacy;
mod reference_files;
mod roles;
mod two_servers;

use std::time::Duration;

use curt_testkit::http::Request;
use serde_json::{Value, json};

use crate::api::Api;
use crate::site::Site;
use crate::wait::eventually;

const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0";
const PROGRAM: &str = "curl/8.7.1";
/// How long counting may take on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(60);

const CAPTURED: &str = "curt_clicks_captured_total";
const COUNTED: &str = "curt_clicks_counted_total";
const DROPPED: &str = "curt_clicks_dropped_total";

#[derive(Clone, Copy, Debug)]
enum Class {
    Human,
    Bot,
    Prefetch,
    Head,
}

impl Class {
    const ALL: [Self; 4] = [Self::Human, Self::Bot, Self::Prefetch, Self::Head];

    fn request(self, path: &str) -> Request {
        match self {
            Self::Human => by_browser(Request::get(path)),
            Self::Bot => Request::get(path).header("User-Agent", PROGRAM),
            Self::Prefetch => by_browser(Request::get(path)).header("Sec-Purpose", "prefetch"),
            Self::Head => by_browser(Request::new("HEAD", path)),
        }
    }
}

fn by_browser(request: Request) -> Request {
    request.header("User-Agent", BROWSER)
}

/// Clicks by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    human: u64,
    bot: u64,
    prefetch: u64,
    head: u64,
}

impl Counts {
    /// What a report says.
    fn read(report: &Value) -> Self {
        let count = |class: &str| report["totals"][class].as_u64().unwrap();
        let counts = Self {
            human: count("human"),
            bot: count("bot"),
            prefetch: count("prefetch"),
            head: count("head"),
        };
        assert_eq!(counts.total(), count("total"), "{report}");
        counts
    }

    fn add(&mut self, class: Class) {
        *match class {
            Class::Human => &mut self.human,
            Class::Bot => &mut self.bot,
            Class::Prefetch => &mut self.prefetch,
            Class::Head => &mut self.head,
        } += 1;
    }

    fn plus(self, other: Self) -> Self {
        Self {
            human: self.human + other.human,
            bot: self.bot + other.bot,
            prefetch: self.prefetch + other.prefetch,
            head: self.head + other.head,
        }
    }

    fn total(self) -> u64 {
        self.human + self.bot + self.prefetch + self.head
    }
}

fn new_link(site: &Site, more: &Value) -> String {
    let mut link = json!({ "target": "https://example.com/" });
    for (name, value) in more.as_object().into_iter().flatten() {
        link[name] = value.clone();
    }
    let answer = site.api().post("/api/v1/links", &link).unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["key"].as_str().unwrap().to_owned()
}

fn report(api: &mut Api, path: &str) -> Counts {
    let answer = api.get(path).unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    Counts::read(&answer.json())
}

fn clicks_of(api: &mut Api, key: &str) -> Counts {
    report(api, &format!("/api/v1/links/{key}/stats"))
}

/// A metric of whole numbers, over all its labels.
fn metric(site: &Site, name: &str) -> u64 {
    let metrics = site.metrics();
    let labelled = format!("{name}{{");
    let samples = metrics.matching(|sample| sample == name || sample.starts_with(&labelled));
    samples.iter().map(|(_, count)| *count as u64).sum()
}

/// Waits until everything that this process has written down is counted.
fn wait_until_counted(site: &Site) {
    eventually(WAIT_MAX, || {
        let (captured, counted) = (metric(site, CAPTURED), metric(site, COUNTED));
        match counted >= captured {
            true => Ok(()),
            false => Err(format!(
                "{counted} of {captured} clicks are counted; {:?}; {}",
                site.metrics(),
                site.server().logs()
            )),
        }
    });
}
