//! A report on ten million clicks, asked for as a client does.

use std::path::Path;
use std::time::{Duration, Instant};

use curt_adapters::sqlite::{Sqlite, SqliteSettings};
use curt_core::ports::{ClickFlush, InsertReply, Inserted};
use curt_core::{
    ClickSubject, ClickSum, Clock as _, Day, Dimension, Link, OwnerId, Sketch, SubjectDay,
    SystemClock,
};
use curt_testkit::sample;
use serde_json::Value;

use crate::length::length;
use crate::site::Site;

/// A report must not take longer, whatever it is about.
const REPORT_MAX: Duration = Duration::from_millis(50);
const CLICKS_A_DAY: u64 = 10_000_000 / 90;

/// Different values on one day of a link that the whole world visits; the first four of kinds have their names.
const VALUES: [(Dimension, usize); 3] = [
    (Dimension::Kind, 4),
    (Dimension::Country, 200),
    (Dimension::Referrer, 1_000),
];
const KINDS: [&str; 4] = ["human", "bot", "prefetch", "head"];

#[test]
fn a_report_on_ten_million_clicks_takes_no_longer_than_a_blink() {
    let days = length(9, 90);
    let mut site = Site::new(&[]);
    let token = site.new_token("tests");
    site.use_token(&token);
    fill(&site.folder().join("data/curt.db"), owner(&site), days);
    site.restart();
    let mut api = site.api();
    let mut quickest = |path: &str| {
        let mut best = Duration::MAX;
        let mut answer = Value::Null;
        for _ in 0..5 {
            let started = Instant::now();
            let found = api.get(&format!("/api/v1/links/busy/{path}")).unwrap();
            best = best.min(started.elapsed());
            assert_eq!(found.status, 200, "{}", found.text());
            answer = found.json();
        }
        println!("{path}, {days} days: {best:?}");
        assert!(best <= REPORT_MAX, "{path} took {best:?}");
        answer
    };
    let from = format!("tz=Europe/Berlin&from={}", first_day(days));
    let stats = quickest(&format!("stats?{from}"));
    let total = stats["totals"]["total"].as_u64().unwrap();
    assert!(total > u64::from(days) * CLICKS_A_DAY * 9 / 10, "{total}");
    quickest(&format!("stats?bucket=hour&{from}"));
    for dimension in ["country", "referrer"] {
        let top = quickest(&format!("stats/{dimension}?{from}"));
        assert_eq!(top["values"].as_array().unwrap().len(), 10);
    }
}

/// The days end with yesterday.
fn first_day(days: u32) -> jiff::civil::Date {
    let start = Day::of(SystemClock.now()).minus(days).start();
    let start = jiff::Timestamp::from_millisecond(start.0).unwrap();
    start.to_zoned(jiff::tz::TimeZone::UTC).date()
}

fn owner(site: &Site) -> OwnerId {
    let listed = site.output(&["user", "list", "--json"]);
    let users: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let mut users = users.as_array().unwrap().iter();
    let user = users.find(|user| user["email"] == "tests@example.com");
    let id = &user.unwrap()["id"];
    let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    OwnerId(id.parse().unwrap())
}

fn fill(file: &Path, owner: OwnerId, days: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let db = Sqlite::open(file, SqliteSettings::default()).unwrap();
    runtime.block_on(async {
        let today = Day::of(SystemClock.now());
        let made = Link {
            owner,
            created_at: today.minus(days + 1).start(),
            ..sample::alias("busy")
        };
        let stored = db.links().insert(sample::request(vec![made])).await;
        let stored = stored.unwrap();
        assert_eq!(stored, InsertReply::Stored(vec![Inserted::Created]));
        let clicks = db.clicks();
        for ago in 1..=days {
            let flush = ClickFlush {
                partition: 0,
                from: u64::from(ago) - 1,
                to: u64::from(ago),
                days: vec![busy_day(today.minus(ago))],
                visits: Vec::new(),
            };
            assert!(clicks.apply(flush).await.unwrap());
        }
        db.close().await;
    });
}

/// Every value in every hour.
fn busy_day(day: Day) -> SubjectDay {
    let mut sums = Vec::new();
    for (dimension, values) in VALUES {
        let count = CLICKS_A_DAY / 24 / values as u64;
        for hour in 0..24 {
            sums.extend((0..values).map(|n| ClickSum {
                hour: day.hour(hour),
                dimension,
                value: match dimension {
                    Dimension::Kind => KINDS[n].into(),
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
        subject: ClickSubject::Link(sample::id("busy")),
        day,
        sums,
        visitors,
    }
}
