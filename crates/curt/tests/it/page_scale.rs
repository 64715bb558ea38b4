//! Pages of an owner with a million links, one of them with ten million clicks, opened as a browser does.

use std::path::Path;
use std::time::{Duration, Instant};

use curt_core::{Clock as _, Day, Link, LinkState, OwnerId, SystemClock};
use curt_sqlite::{Sqlite, SqliteSettings};
use curt_testkit::http::Request;
use curt_testkit::sample::{self, SampleWrites};

use crate::alone::alone;
use crate::api::Api;
use crate::length::{length, time_max};
use crate::report_scale;
use crate::site::Site;
use crate::users::Browser;

/// Nineteen of twenty requests for a page must not take longer, on a server that has been asked before. Judged in
/// `make soak`.
const PAGE_MAX: Duration = Duration::from_millis(50);
/// A page, without its style, script and pictures.
const PAGE_BYTES_MAX: usize = 60_000;
const ASKED: usize = 40;
const ADMIN: &str = "ada@example.com";
const LINKS_A_WRITE: u32 = 2_000;
/// One of so many links is switched off, and another has the word that is searched for.
const RARE: u32 = 1_000;
const TAGS: u32 = 50;

#[test]
fn pages_of_a_million_links_and_ten_million_clicks_take_no_longer_than_a_blink() {
    let _alone = alone();
    let (links, days) = (length(3_000, 1_000_000), length(3, 90));
    let mut site = Site::prepared(&[]);
    let password = site.output(&["user", "add", ADMIN, "--role", "admin"]);
    let password = String::from_utf8(password.stdout).unwrap();
    let owner = report_scale::owner(&site, ADMIN);
    let file = site.folder().join("data/curt.db");
    report_scale::fill(&file, owner, days);
    fill(&file, owner, links);
    site.restart();
    let mut visitor = Visitor::sign_in(&site, password.trim());
    let rows = |page: &str| page.matches("name=\"key\"").count();
    for query in [
        "",
        "?order=oldest",
        "?order=key",
        "?order=-key",
        "?owner=all",
    ] {
        let page = visitor.open(&format!("/links{query}"));
        assert_eq!(rows(&page), 25, "{query}: {page}");
        let next = visitor.open(&next_address(&page).unwrap());
        assert_eq!(rows(&next), 25, "{query}: {next}");
    }
    let today = Day::of(SystemClock.now());
    for (query, found) in [
        ("state=disabled".to_owned(), 1),
        ("search=needle".to_owned(), 1),
        ("search=no-such-text".to_owned(), 0),
        ("tag=tag-7".to_owned(), 15),
        ("tag=tag-7&search=no-such-text".to_owned(), 0),
        ("tag=no-such-tag".to_owned(), 0),
        (format!("from={0}&to={0}", date(today.minus(1))), 1),
        ("from=2020-01-01&to=2020-01-02".to_owned(), 0),
        ("state=deleted".to_owned(), 0),
    ] {
        let page = visitor.open(&format!("/links?{query}"));
        assert!(rows(&page) >= found, "{query}: {page}");
    }
    visitor.open_for("/links?order=clicks", 422);
    let from = date(today.minus(days));
    for query in [
        String::new(),
        format!("?from={from}"),
        format!("?from={from}&tz=Europe/Berlin"),
    ] {
        for path in ["/links/busy", "/clicks"] {
            let page = visitor.open(&format!("{path}{query}"));
            assert!(page.contains("value-0.example"), "{path}{query}: {page}");
        }
    }
    for path in [
        "/",
        "/links/busy/edit",
        "/tags",
        "/clicks/orphans",
        "/account",
        "/admin/users",
        "/admin/audit",
        "/admin/blocklist",
        "/admin/system",
    ] {
        visitor.open(path);
    }
    assert!(visitor.slow.is_empty(), "too slow: {:#?}", visitor.slow);
}

struct Visitor {
    api: Api,
    browser: Browser,
    /// Pages that took too long; told together.
    slow: Vec<String>,
}

impl Visitor {
    fn sign_in(site: &Site, password: &str) -> Self {
        Self {
            api: Api::new(site.http(), ""),
            browser: Browser::sign_in(site, ADMIN, password),
            slow: Vec::new(),
        }
    }

    fn open(&mut self, path: &str) -> String {
        self.open_for(path, 200)
    }

    fn open_for(&mut self, path: &str, status: u16) -> String {
        let mut times = Vec::new();
        let mut page = String::new();
        for _ in 0..length(1, ASKED) {
            let request = self.browser.signed(Request::get(path));
            let started = Instant::now();
            let answer = self.api.send(&request).unwrap();
            times.push(started.elapsed());
            assert_eq!(answer.status, status, "{path}: {}", answer.text());
            page = answer.text();
        }
        let first = times[0];
        times.sort_unstable();
        let took = times[times.len() * 19 / 20];
        println!(
            "{path}: {took:?}, the first one {first:?}, {} bytes",
            page.len()
        );
        if took > time_max(PAGE_MAX) {
            self.slow.push(format!("{path}: {took:?}"));
        }
        assert!(page.len() <= PAGE_BYTES_MAX, "{path}: {} bytes", page.len());
        page
    }
}

/// Where the page leads to the rest of its list.
fn next_address(page: &str) -> Option<String> {
    let (before, _) = page.split_once("rel=\"next\"")?;
    let (_, address) = before.rsplit_once("href=\"")?;
    let address = address.split('"').next()?;
    Some(address.replace("&#38;", "&").replace("&amp;", "&"))
}

fn date(day: Day) -> jiff::civil::Date {
    let start = jiff::Timestamp::from_millisecond(day.start().0).unwrap();
    start.to_zoned(jiff::tz::TimeZone::UTC).date()
}

/// Links of all ages, the newest of yesterday.
fn fill(file: &Path, owner: OwnerId, links: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let db = Sqlite::open(file, SqliteSettings::default()).unwrap();
    runtime.block_on(async {
        let store = db.links();
        let newest = Day::of(SystemClock.now()).start();
        for first in (0..links).step_by(LINKS_A_WRITE as usize) {
            let made = (first..links.min(first + LINKS_A_WRITE)).map(|number| {
                let age = Duration::from_secs(60 * u64::from(links - number));
                let at = newest.minus(age);
                link(owner, number, at)
            });
            let stored = store.insert(made.collect()).await.unwrap();
            assert!(stored.into_iter().all(|created| created));
        }
        db.close().await;
    });
}

fn link(owner: OwnerId, number: u32, at: curt_core::UnixMillis) -> Link {
    let is_rare = |remainder| number % RARE == remainder;
    Link {
        owner,
        created_at: at,
        updated_at: at,
        state: if is_rare(3) {
            LinkState::Disabled
        } else {
            LinkState::Active
        },
        title: is_rare(5).then(|| format!("A needle, {number}").into()),
        tags: match number % 4 {
            0 => vec![format!("tag-{}", number / 4 % TAGS).into()],
            _ => Vec::new(),
        },
        ..sample::link(&format!(
            "made{:07x}",
            number.wrapping_mul(0x9e37_79b1) & 0xfff_ffff
        ))
    }
}
