//! What becomes of clicks when nothing goes wrong.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{ClickReports, ClickSource, ClickStore, HourRange};
use curt_core::{Attribution, ClickOutcome, ClickSubject, Day, Dimension, OwnerId, PackedTags};
use curt_memory::MemoryClickStream;
use curt_testkit::sample::{NOW, OWNER, id};
use tokio_util::sync::CancellationToken;

use super::world::{OWNERS, World, click, encoded, link, quick};
use crate::consume::{ConsumerMetrics, ConsumerSettings, Pipeline, Retention, RetentionSettings};
use crate::record::{ClickRecord, Method, Outcome};
use crate::report::FreshReports;

#[tokio::test]
async fn a_click_counts_for_its_link_owner_and_tags_and_for_everything() {
    let world = World::new();
    world
        .capture(&[
            click("a", 1),
            click("a", 2),
            click("b", 2),
            click("nobodys", 3),
        ])
        .await;
    world.drain(quick()).await;
    for (subject, clicks) in [
        (link("a"), 2),
        (link("b"), 1),
        (link("nobodys"), 1),
        (OWNERS, 3),
        (ClickSubject::tag(OWNER, "red"), 2),
        (ClickSubject::tag(OWNER, "blue"), 2),
        (ClickSubject::Owner(curt_core::OwnerId::ANONYMOUS), 0),
        (ClickSubject::Orphans, 0),
        (ClickSubject::Everything, 4),
    ] {
        assert_eq!(world.total(&subject).await, clicks, "{subject:?}");
    }
    let today = Day::of(NOW);
    assert_eq!(world.visitors(&link("a")).await, [(today, 2)]);
    assert_eq!(
        world.visitors(&OWNERS).await,
        [(today, 2)],
        "not 3: one went to both"
    );
    let everything = ClickSubject::Everything;
    assert_eq!(world.visitors(&everything).await, [(today, 3)]);
}

/// Nothing is looked up: the links need not be there any more, or may have changed hands meanwhile.
#[tokio::test]
async fn a_click_counts_for_whom_the_link_had_when_it_was_followed() {
    let world = World::new();
    let of = |owner, tags| ClickRecord {
        attribution: Attribution {
            owner,
            tags: PackedTags::from_packed(tags),
        },
        ..click("a", 1)
    };
    let other = OwnerId(OWNER.0 + 1);
    let reborn = ClickRecord {
        generation: 2,
        ..of(other, b"\x03new")
    };
    let clicks = [
        of(OWNER, b"\x03old"),
        of(OWNER, b"\x03new"),
        of(other, b""),
        reborn,
    ];
    world.capture(&clicks).await;
    world.drain(quick()).await;
    for (subject, clicks) in [
        (link("a"), 3),
        (ClickSubject::Link(id("a"), 2), 1),
        (OWNERS, 2),
        (ClickSubject::tag(OWNER, "old"), 1),
        (ClickSubject::tag(OWNER, "new"), 1),
        (ClickSubject::Owner(other), 2),
        (ClickSubject::tag(other, "new"), 1),
        (ClickSubject::Everything, 4),
    ] {
        assert_eq!(world.total(&subject).await, clicks, "{subject:?}");
    }
    let tags = |click: &curt_core::Click| click.tags.concat();
    let mut kept: Vec<_> = world.clicks().await.iter().map(tags).collect();
    kept.sort_unstable();
    assert_eq!(kept, ["", "new", "new", "old"]);
}

#[tokio::test]
async fn orphans_count_for_themselves_and_for_everything() {
    let world = World::new();
    let absent = ClickRecord {
        outcome: Outcome::Absent,
        ..click("gone", 1)
    };
    let base = ClickRecord {
        outcome: Outcome::Base,
        ..click("", 1)
    };
    world.capture(&[absent, base, click("a", 1)]).await;
    world.drain(quick()).await;
    assert_eq!(world.total(&ClickSubject::Orphans).await, 2);
    assert_eq!(world.total(&ClickSubject::Everything).await, 3);
    assert_eq!(world.total(&OWNERS).await, 1);
}

#[tokio::test]
async fn a_click_is_kept_with_whose_it_is_and_without_its_address() {
    let world = World::new();
    let head = ClickRecord {
        method: Method::Head,
        ..click("never-made", 2)
    };
    world.capture(&[click("a", 1), head]).await;
    world.drain(quick()).await;
    let clicks = world.clicks().await;
    let of = |key: &str| {
        let is_of = |outcome: &ClickOutcome| matches!(outcome, ClickOutcome::Link(id, 1) if id.key.as_str() == key);
        clicks.iter().find(|click| is_of(&click.outcome)).unwrap()
    };
    let kept = of("a");
    assert_eq!(kept.owner, Some(OWNER));
    let tags: Vec<&str> = kept.tags.iter().map(|tag| &**tag).collect();
    assert_eq!(tags, ["Red", "red", "blue"]);
    assert_eq!(
        (&*kept.browser, &*kept.referrer),
        ("Firefox", "news.example")
    );
    assert_eq!(kept.address, None);
    assert_eq!(of("never-made").owner, None, "its link is gone");
}

#[tokio::test]
async fn dead_letters_are_set_aside_and_everything_else_is_counted() {
    let world = World::new();
    for n in 0..100 {
        let record = match n {
            40 => Box::from([9_u8, 9, 9]),
            41 => Box::default(),
            99 => encoded(&click("a", n))[..10].into(),
            _ => encoded(&click("a", n)),
        };
        world.append([record]).await;
    }
    world.drain(quick()).await;
    assert_eq!(world.total(&link("a")).await, 97);
    let letters = world.dead_letters.letters();
    let offsets: Vec<u64> = letters.iter().map(|letter| letter.1).collect();
    assert_eq!(offsets, [40, 41, 99]);
    let offset = world.offset().await;
    assert_eq!(offset, 100, "a dead letter at the end does not come again");
    world.drain(quick()).await;
    assert_eq!(world.dead_letters.letters().len(), 3);
}

/// The day of a click decides about its salt, and both days know the visitor.
#[tokio::test]
async fn a_visitor_is_another_one_on_the_next_day() {
    let world = World::new();
    let yesterday = ClickRecord {
        at: NOW.minus(Duration::from_secs(24 * 3_600)),
        ..click("a", 1)
    };
    world.capture(&[yesterday, click("a", 1)]).await;
    world.drain(quick()).await;
    world.capture(&[yesterday, click("a", 1)]).await;
    world.drain(quick()).await;
    let days = world.visitors(&link("a")).await;
    let today = Day::of(NOW);
    assert_eq!(
        days,
        [(today.minus(1), 1), (today, 1)],
        "over a restart too"
    );
    let top = world
        .store
        .top(&link("a"), Dimension::Class, HourRange::ALL, 9)
        .await;
    assert_eq!(top.unwrap().values, [("human".into(), 4)]);
}

#[tokio::test]
async fn a_window_is_written_when_it_ends_and_not_before() {
    let world = World::new();
    let settings = ConsumerSettings {
        window: Duration::from_millis(300),
        ..quick()
    };
    let stop = CancellationToken::new();
    let pipeline = Pipeline::new(world.ports(), settings, ConsumerMetrics::default());
    let running = tokio::spawn(pipeline.run(stop.clone()));
    world.capture(&[click("a", 1)]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(world.total(&link("a")).await, 0, "the window is open");
    let counted = async {
        while world.total(&link("a")).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), counted)
        .await
        .unwrap();
    stop.cancel();
    running.await.unwrap();
}

/// What a report sees that has the consumer write first. The window itself would last for an hour.
#[tokio::test]
async fn a_report_has_the_clicks_of_a_window_that_goes_on() {
    let world = World::new();
    let settings = ConsumerSettings {
        window: Duration::from_secs(3_600),
        // Neither a poll nor a pause is waited for.
        poll_wait: Duration::from_secs(3_600),
        poll_pause: Duration::from_secs(3_600),
        ..quick()
    };
    let metrics = ConsumerMetrics::default();
    let pipeline = Pipeline::new(world.ports(), settings, metrics.clone());
    let reports = FreshReports::new(world.store.clone(), pipeline.flush_requests());
    let stop = CancellationToken::new();
    let running = tokio::spawn(pipeline.run(stop.clone()));
    let total = async || {
        let (subject, hours) = (link("a"), HourRange::ALL);
        let top = reports.top(&subject, Dimension::Class, hours, 9).await;
        top.unwrap().total()
    };
    let total_of = async |clicks| {
        while total().await < clicks {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let minute = Duration::from_secs(60);
    for round in 1..=3 {
        world
            .capture(&(0..20).map(|n| click("a", n)).collect::<Vec<_>>())
            .await;
        tokio::time::timeout(minute, total_of(20 * round))
            .await
            .unwrap();
        assert_eq!(world.clicks().await.len() as u64, 20 * round);
    }
    let flushes = metrics.flushes_now("applied");
    assert!((3..=6).contains(&flushes), "{flushes} for many reports");
    stop.cancel();
    running.await.unwrap();
    assert_eq!(world.total(&link("a")).await, 60);
}

#[tokio::test]
async fn a_window_ends_when_what_was_read_takes_too_much_and_the_rest_at_the_end() {
    let world = World::new();
    let clicks: Vec<_> = (0..300).map(|n| click("b", n)).collect();
    world.capture(&clicks).await;
    let settings = ConsumerSettings {
        window: Duration::from_secs(3_600),
        poll_max: 10,
        read_bytes_max: 50 * encoded(&click("b", 0)).len() as u64,
        ..quick()
    };
    let metrics = ConsumerMetrics::default();
    let pipeline = Pipeline::new(world.ports(), settings, metrics.clone());
    let stop = CancellationToken::new();
    stop.cancel();
    pipeline.run(stop).await;
    assert_eq!(world.total(&ClickSubject::Everything).await, 300);
    assert_eq!(world.clicks().await.len(), 300);
    assert_eq!(metrics.counted_now(), 300);
    assert_eq!(metrics.flushes_now("applied"), 6, "300 clicks by 50");
}

/// A million rollups: they are written in parts that fit into the memory for windows, and no value is given up.
#[tokio::test]
async fn a_busy_site_is_counted_link_by_link_in_parts_of_bounded_size() {
    const LINKS: u32 = 30_000;
    const HOURS: u32 = 5;
    let world = World {
        stream: Arc::new(MemoryClickStream::new(1, (LINKS * HOURS) as usize)),
        ..World::new()
    };
    let keys: Vec<String> = (0..LINKS).map(|link| format!("busy-{link}")).collect();
    for hour in 0..HOURS {
        let at = Day::of(NOW).hour(hour as u8);
        let clicks = keys.iter().zip(0..).map(|(key, visitor)| ClickRecord {
            at,
            ..click(key, visitor)
        });
        world.capture(&clicks.collect::<Vec<_>>()).await;
    }
    let settings = ConsumerSettings {
        window: Duration::from_secs(3_600),
        drain_max: Duration::from_secs(600),
        poll_max: 1_000,
        window_bytes_max: 4 << 20,
        ..quick()
    };
    let metrics = ConsumerMetrics::default();
    let pipeline = Pipeline::new(world.ports(), settings, metrics.clone());
    let stop = CancellationToken::new();
    stop.cancel();
    pipeline.run(stop).await;
    for key in &keys {
        assert_eq!(world.total(&link(key)).await, u64::from(HOURS), "{key}");
    }
    let clicks = u64::from(LINKS * HOURS);
    assert_eq!(world.total(&ClickSubject::Everything).await, clicks);
    let written = metrics.flushes_now("applied");
    assert!((5..=20).contains(&written), "{written} windows of 4 MiB");
}

#[tokio::test]
async fn the_stream_is_told_what_it_may_delete() {
    let world = World::new();
    world.capture(&[click("a", 1), click("a", 2)]).await;
    world.drain(quick()).await;
    assert_eq!(
        world.stream.poll(0, 0, 9, Duration::ZERO).await.unwrap(),
        []
    );
}

#[tokio::test]
async fn old_clicks_counts_and_salts_go() {
    let world = World::new();
    let day = Duration::from_secs(24 * 3_600);
    let ages = [0, 20, 40, 400];
    let clicks: Vec<_> = ages
        .iter()
        .map(|age| ClickRecord {
            at: NOW.minus(day * *age),
            ..click("a", *age)
        })
        .collect();
    world.capture(&clicks).await;
    world.drain(quick()).await;
    let settings = RetentionSettings {
        clicks_kept: Some(day * 30),
        rollups_kept: Some(day * 365),
        batch: 1,
        ..RetentionSettings::default()
    };
    let retention = Retention::new(
        world.store.clone(),
        world.clock.clone(),
        settings,
        ConsumerMetrics::default(),
    );
    let mut passes = 0;
    while retention.pass().await.unwrap() > 0 {
        passes += 1;
    }
    assert!(passes > 1, "batch by batch");
    assert_eq!(world.clicks().await.len(), 2);
    assert_eq!(world.total(&link("a")).await, 3);
    let today = Day::of(NOW);
    let salt = async |day| world.store.salt(day, [7; 32]).await.unwrap();
    assert_ne!(salt(today).await, [7; 32], "in use");
    assert_eq!(salt(today.minus(20)).await, [7; 32], "forgotten");
    assert_eq!(world.offset().await, 4);
}
