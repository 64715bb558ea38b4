//! Reports on ten million clicks, asked for as a client does.

use std::path::Path;
use std::time::{Duration, Instant};

use curt_core::ports::{ClickStore, ClickWindow};
use curt_core::{
    Click, ClickClass, ClickDetails, ClickOutcome, ClickSubject, Clock as _, Day, Dimension, Link,
    OwnerId, Rollup, Sketch, SubjectDay, SystemClock,
};
use curt_sqlite::{Sqlite, SqliteSettings};
use curt_testkit::sample::{self, SampleWrites};
use serde_json::Value;

use crate::alone::alone;
use crate::api::Api;
use crate::length::{length, time_max};
use crate::site::Site;

/// A report must not take longer, whatever it is about: the middle one of a few, on a server that has been asked before.
/// Judged in `make soak`.
const REPORT_MAX: Duration = Duration::from_millis(50);
/// How often each report is asked for.
const ASKED: usize = 9;
const CLICKS_A_DAY: u64 = 10_000_000 / 90;
const CLICKS_A_FLUSH: u32 = 10_000;

/// Different values on one day of a link that the whole world clicks; those of classes have their names.
const VALUES: [(Dimension, usize); 7] = [
    (Dimension::Class, 4),
    (Dimension::Country, 200),
    (Dimension::Browser, 50),
    (Dimension::System, 20),
    (Dimension::Device, 4),
    (Dimension::Referrer, 1_000),
    (Dimension::Language, 100),
];
const CLASSES: [&str; 4] = ["human", "bot", "prefetch", "head"];

#[test]
fn a_report_on_ten_million_clicks_takes_no_longer_than_a_blink() {
    let _alone = alone();
    let days = length(9, 90);
    let mut site = Site::new(&[]);
    let token = site.new_token("tests");
    site.use_token(&token);
    fill(
        &site.folder().join("data/curt.db"),
        owner(&site, "tests@example.com"),
        days,
    );
    site.restart();
    let mut api = site.api();
    let from = format!("tz=Europe/Berlin&from={}", first_day(days));
    for subject in ["/api/v1/links/busy", "/api/v1"] {
        for report in ["stats", "stats.csv"] {
            for bucket in ["hour", "day", "week", "month"] {
                quick(
                    &mut api,
                    &format!("{subject}/{report}?bucket={bucket}&{from}"),
                );
            }
        }
        for (dimension, values) in VALUES {
            let path = format!("{subject}/stats/{}?{from}", dimension.name());
            let top: Value = serde_json::from_str(&quick(&mut api, &path)).unwrap();
            assert_eq!(
                top["values"].as_array().unwrap().len(),
                values.min(10),
                "{top}"
            );
        }
        quick(&mut api, &format!("{subject}/clicks?limit=100"));
        // Single clicks are looked at.
        let path = format!("{subject}/stats/browser?country=DE&{from}");
        let top = quick(&mut api, &path);
        let top: Value = serde_json::from_str(&top).unwrap();
        assert_eq!(top["values"][0]["value"], "Firefox", "{top}");
    }
    let path = format!("/api/v1/links/busy/stats?{from}");
    let stats = api.get(&path).unwrap().json();
    let total = stats["totals"]["total"].as_u64().unwrap();
    assert!(total > u64::from(days) * CLICKS_A_DAY * 9 / 10, "{total}");
}

fn quick(api: &mut Api, path: &str) -> String {
    let mut times = Vec::new();
    let mut answer = String::new();
    for _ in 0..length(1, ASKED) {
        let started = Instant::now();
        let found = api.get(path).unwrap();
        times.push(started.elapsed());
        assert_eq!(found.status, 200, "{path}: {}", found.text());
        answer = found.text();
    }
    let first = times[0];
    times.sort_unstable();
    let took = times[times.len() / 2];
    println!("{path}: {took:?}, the first one {first:?}");
    assert!(took <= time_max(REPORT_MAX), "{path} took {took:?}");
    answer
}

/// The days end with yesterday.
fn first_day(days: u32) -> jiff::civil::Date {
    let start = Day::of(SystemClock.now()).minus(days).start();
    let start = jiff::Timestamp::from_millisecond(start.0).unwrap();
    start.to_zoned(jiff::tz::TimeZone::UTC).date()
}

/// The user with this email, as an owner.
pub(crate) fn owner(site: &Site, email: &str) -> OwnerId {
    let listed = site.output(&["user", "list", "--json"]);
    let users: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let mut users = users.as_array().unwrap().iter();
    let user = users.find(|user| user["email"] == email);
    let id = &user.unwrap()["id"];
    let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    OwnerId(id.parse().unwrap())
}

/// Writes a link `busy` that is as old as these days, with as many clicks on each of them.
pub(crate) fn fill(file: &Path, owner: OwnerId, days: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let db = Sqlite::open(file, SqliteSettings::default()).unwrap();
    let clicks_file = file.with_file_name("clicks.db");
    let clicks_db = Sqlite::open_clicks(clicks_file, SqliteSettings::default()).unwrap();
    runtime.block_on(async {
        let today = Day::of(SystemClock.now());
        let made = Link {
            owner,
            created_at: today.minus(days + 1).start(),
            ..sample::alias("busy")
        };
        let stored = db.links().insert(vec![made]).await;
        let stored = stored.unwrap();
        assert_eq!(stored, [true]);
        let clicks = clicks_db.clicks();
        let link = ClickSubject::Link(sample::id("busy"), 1);
        for ago in 1..=days {
            let day = today.minus(ago);
            let days = [&link, &ClickSubject::Owner(owner)].map(|of| busy_day(of.clone(), day));
            add(&*clicks, days.into(), Vec::new()).await;
        }
        for flush in 0..length(3, 100) {
            let first = flush * CLICKS_A_FLUSH;
            let new = (first..first + CLICKS_A_FLUSH).map(|number| click(owner, number));
            add(&*clicks, Vec::new(), new.collect()).await;
        }
        clicks_db.close().await;
        db.close().await;
    });
}

async fn add(store: &dyn ClickStore, days: Vec<SubjectDay>, clicks: Vec<Click>) {
    let from = store.offset(sample::partition(0)).await.unwrap();
    let flush = ClickWindow {
        partition: sample::partition(0),
        from,
        to: from + 1,
        days: days.into(),
        blocks: Vec::new(),
    }
    .with_clicks(&clicks);
    assert!(store.apply(flush).await.unwrap());
}

/// One of a million that came one after the other yesterday.
fn click(owner: OwnerId, number: u32) -> Click {
    let yesterday = Day::of(SystemClock.now()).minus(1).start();
    let two_of_three = |this: &str, other: &str| match number % 3 {
        0 => other.into(),
        _ => this.into(),
    };
    Click {
        at: yesterday.plus(Duration::from_millis(86 * u64::from(number))),
        outcome: ClickOutcome::Link(sample::id("busy"), 1),
        owner: Some(owner),
        tags: Vec::new(),
        class: ClickClass::Human,
        country: "DE".into(),
        browser: two_of_three("Firefox", "Chrome"),
        system: "Linux".into(),
        device: "desktop".into(),
        referrer: format!("value-{}.example", number % 1_000).into(),
        language: "de".into(),
        details: ClickDetails::default(),
        address: None,
    }
}

/// Every value in every hour.
fn busy_day(subject: ClickSubject, day: Day) -> SubjectDay {
    let mut rollups = Vec::new();
    for (dimension, values) in VALUES {
        let count = CLICKS_A_DAY / 24 / values as u64;
        for hour in 0..24 {
            rollups.extend((0..values).map(|n| Rollup {
                hour: day.hour(hour),
                dimension,
                value: match dimension {
                    Dimension::Class => CLASSES[n].into(),
                    _ => format!("value-{n}.example").into(),
                },
                count: count.max(1),
            }));
        }
    }
    let mut visitors = Sketch::new();
    for n in 1..=10_000_u64 {
        visitors.insert(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    SubjectDay {
        subject,
        day,
        rollups,
        visitors,
    }
}
