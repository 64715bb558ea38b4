//! Reports and flushes at the size that they are made for. The times are printed; `make soak` runs the full size.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::length::{is_full, length, time_max};
use crate::sample::{OWNER, SampleWrites, id, link, partition};
use curt_core::ports::{ClickDatabase, ClickFilter, ClickQuery, ClickWindow, HourRange, LinkStore};
use curt_core::{
    Click, ClickClass, ClickDetails, ClickOutcome, ClickSubject, Day, Dimension, OwnerId, Rollup,
    Sketch, SubjectDay, UnixMillis,
};

/// How often each report is asked for.
const ASKED: usize = 9;
const FIRST_DAY: u32 = 20_000;
/// A report must not take longer, whatever it is about.
const REPORT_MAX: Duration = Duration::from_millis(50);

/// Different values of each dimension on one day of a link that the whole world clicks.
const VALUES: [(Dimension, usize); 7] = [
    (Dimension::Class, 4),
    (Dimension::Country, 200),
    (Dimension::Browser, 40),
    (Dimension::System, 25),
    (Dimension::Device, 5),
    (Dimension::Referrer, 1_000),
    (Dimension::Language, 60),
];

/// A day of a busy subject: every value in every hour, `clicks` in all.
fn busy_day(subject: &ClickSubject, number: u32, clicks: u64) -> SubjectDay {
    let day = Day::numbered(number);
    let mut rollups = Vec::new();
    for (dimension, values) in VALUES {
        let share = (clicks / 24 / values as u64).max(1);
        for hour in 0..24 {
            rollups.extend((0..values).map(|n| Rollup {
                hour: day.hour(hour),
                dimension,
                value: format!("{}-{n}.example", dimension.name()).into(),
                count: share,
            }));
        }
    }
    let mut visitors = Sketch::new();
    for n in 0..10_000_u64 {
        visitors.insert((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    SubjectDay {
        subject: subject.clone(),
        day,
        rollups,
        visitors,
    }
}

/// Asks a few times and judges the middle one, in `make soak`: the store has been asked before.
async fn quick<T>(what: &str, mut ask: impl AsyncFnMut() -> T) -> T {
    let mut times = Vec::new();
    let mut answer = None;
    for _ in 0..length(1, ASKED) {
        let started = Instant::now();
        answer = Some(ask().await);
        times.push(started.elapsed());
    }
    let first = times[0];
    times.sort_unstable();
    let took = times[times.len() / 2];
    println!("{what}: {took:?}, the first one {first:?}");
    assert!(took <= time_max(REPORT_MAX), "{what} took {took:?}");
    answer.unwrap()
}

pub async fn report_on_ten_million_clicks(store: &dyn ClickDatabase) {
    let days = if is_full() { 90 } else { 9 };
    let clicks_a_day = 10_000_000 / 90;
    let subject = ClickSubject::Link(id("busy"), 1);
    for n in 0..days {
        let flush = ClickWindow {
            partition: partition(0),
            from: n.into(),
            to: u64::from(n) + 1,
            days: vec![busy_day(&subject, FIRST_DAY + n, clicks_a_day)].into(),
            blocks: Vec::new(),
        };
        assert!(store.apply(flush).await.unwrap());
    }
    let range = HourRange {
        from: Day::numbered(FIRST_DAY).hour(2),
        before: Day::numbered(FIRST_DAY + days).hour(2),
    };
    for (dimension, values) in VALUES {
        let what = format!("top 10 by {}, {days} days", dimension.name());
        let ask = async || store.top(&subject, dimension, range, 10).await.unwrap();
        let top = quick(&what, ask).await;
        assert_eq!(top.values.len(), values.min(10));
        assert!(top.total() > u64::from(days) * clicks_a_day / 2);
    }
    let several = VALUES.map(|(dimension, _)| (dimension, 10));
    let ask = async || store.overview(&subject, &several, range).await.unwrap();
    let overview = quick(&format!("overview, {days} days"), ask).await;
    let tops = overview.tops;
    assert_eq!(tops.len(), VALUES.len());
    assert!(
        tops.iter()
            .all(|top| top.total() > u64::from(days) * clicks_a_day / 2)
    );
    let ask = async || store.series(&subject, Dimension::Class, range).await;
    let series = quick("by hour and class", ask).await.unwrap();
    assert_eq!(series.len(), days as usize * 24 * 4 - 2 * 4);
    let (from, before) = (Day::numbered(FIRST_DAY), Day::numbered(FIRST_DAY + days));
    let ask = async || store.visitors(&subject, from, before).await;
    let visitors = quick("visitors by day", ask).await.unwrap();
    assert_eq!(visitors.len(), days as usize);
}

/// A link that was seen once in a window.
fn quiet_day(key: &str) -> SubjectDay {
    let day = Day::numbered(FIRST_DAY);
    let rollups = VALUES.iter().map(|(dimension, _)| Rollup {
        hour: day.hour(3),
        dimension: *dimension,
        value: "value.example".into(),
        count: 1,
    });
    let mut visitors = Sketch::new();
    visitors.insert(1);
    SubjectDay {
        subject: ClickSubject::Link(id(key), 1),
        day,
        rollups: rollups.collect(),
        visitors,
    }
}

fn click(key: &str, n: usize) -> Click {
    Click {
        at: Day::numbered(FIRST_DAY)
            .hour(3)
            .plus(Duration::from_millis(n as u64)),
        outcome: ClickOutcome::Link(id(key), 1),
        owner: Some(OWNER),
        tags: Vec::new(),
        class: ClickClass::Human,
        country: "DE".into(),
        browser: "Firefox".into(),
        system: "Linux".into(),
        device: "desktop".into(),
        referrer: "news.example".into(),
        language: "de".into(),
        details: ClickDetails::default(),
        address: None,
    }
}

/// A flush of as many rollups as an aggregate gives away, each link seen once: the most rows that it can touch.
async fn flush(store: &dyn ClickDatabase, from: u64, links: usize) -> Duration {
    let keys: Vec<String> = (0..links).map(|n| format!("k{n}")).collect();
    let mut days: Vec<_> = keys.iter().map(|key| quiet_day(key)).collect();
    for subject in [ClickSubject::Everything, ClickSubject::Owner(OWNER)] {
        days.push(busy_day(&subject, FIRST_DAY, links as u64));
    }
    let clicks = keys.iter().enumerate().map(|(n, key)| click(key, n));
    let flush = ClickWindow {
        partition: partition(0),
        from,
        to: from + 1,
        days: days.into(),
        blocks: Vec::new(),
    }
    .with_clicks(&clicks.collect::<Vec<_>>());
    let started = Instant::now();
    assert!(store.apply(flush).await.unwrap());
    started.elapsed()
}

/// The slowest of some creates, one after the other.
async fn create_beside(links: Arc<dyn LinkStore>) -> Duration {
    let mut slowest = Duration::ZERO;
    for n in 0..300 {
        let started = Instant::now();
        let new = vec![link(&format!("new{n}"))];
        links.insert(new).await.unwrap();
        slowest = slowest.max(started.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    slowest
}

pub async fn flush_beside_creates(store: &dyn ClickDatabase, beside: Arc<dyn LinkStore>) {
    let links = if is_full() { 2_857 } else { 500 };
    let creates = tokio::spawn(create_beside(beside));
    let mut from = 0;
    while !creates.is_finished() {
        let took = flush(store, from, links).await;
        println!(
            "flush {from} of {} rollups and {links} clicks: {took:?}",
            links * 7
        );
        from += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let slowest = creates.await.unwrap();
    println!("slowest of 300 creates beside {from} flushes: {slowest:?}");
    assert!(slowest < time_max(Duration::from_secs(2)), "{slowest:?}");
}

/// A page of an owner's or a link's clicks is found by its index, and not by reading everybody's.
pub async fn page_among_many_clicks(store: &dyn ClickDatabase) {
    let count = if is_full() { 1_000_000 } else { 60_000 };
    for (from, first) in (0..count).step_by(10_000).enumerate() {
        let mut clicks: Vec<_> = (first..first + 10_000).map(|n| click("busy", n)).collect();
        if first == 0 {
            clicks.truncate(9_998);
            clicks.push(click("quiet", 0));
            clicks.push(Click {
                owner: Some(OwnerId(7)),
                ..click("quiet", 1)
            });
        }
        let flush = ClickWindow {
            partition: partition(0),
            from: from as u64,
            to: from as u64 + 1,
            days: Vec::new().into(),
            blocks: Vec::new(),
        }
        .with_clicks(&clicks);
        assert!(store.apply(flush).await.unwrap());
    }
    for (subject, found) in [
        (ClickSubject::Link(id("busy"), 1), 100),
        (ClickSubject::Link(id("quiet"), 1), 2),
        (ClickSubject::Owner(OWNER), 100),
        (ClickSubject::Owner(OwnerId(7)), 1),
        (ClickSubject::Everything, 100),
    ] {
        let query = ClickQuery {
            subject,
            from: UnixMillis(0),
            before: UnixMillis::MAX,
            filter: ClickFilter::default(),
            cursor: None,
            limit: 100,
        };
        let what = format!("clicks of {:?} among {count}", query.subject);
        let page = quick(&what, async || store.clicks(&query).await.unwrap()).await;
        assert_eq!(page.clicks.len(), found, "on the first page");
    }
}
