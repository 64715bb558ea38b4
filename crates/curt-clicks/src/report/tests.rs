use std::sync::Arc;

use curt_core::ports::{ClickReports, ClickStore, ClickWindow};
use curt_core::{
    ClickSubject, Day, Dimension, DomainId, Key, LinkId, Rollup, Sketch, SubjectDay, UnixMillis,
};
use curt_memory::MemoryClickStore;
use curt_testkit::sample::partition;
use jiff::Timestamp;

use super::*;

fn at(text: &str) -> UnixMillis {
    UnixMillis(text.parse::<Timestamp>().unwrap().as_millisecond())
}

fn date(text: &str) -> Edge {
    Edge::Day(text.parse().unwrap())
}

fn zone(name: &str) -> Zone {
    Zone::named(name).unwrap()
}

fn link() -> ClickSubject {
    let key = Key::parse("abc").unwrap();
    ClickSubject::Link(LinkId::new(DomainId::DEFAULT, key), 1)
}

/// Clicks of the link: instant, class, count; and who the humans were.
struct World {
    store: Arc<MemoryClickStore>,
    applied: u64,
}

impl World {
    fn new() -> Self {
        Self {
            store: Arc::default(),
            applied: 0,
        }
    }

    async fn add_clicks(&mut self, at: UnixMillis, class: &str, count: u64, visitors: &[u64]) {
        let mut sketch = Sketch::new();
        for visitor in visitors {
            sketch.insert(visitor.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        let day = SubjectDay {
            subject: link(),
            day: Day::of(at),
            rollups: vec![Rollup {
                hour: at.hour(),
                dimension: Dimension::Class,
                value: class.into(),
                count,
            }],
            visitors: sketch,
        };
        let flush = ClickWindow {
            partition: partition(0),
            from: self.applied,
            to: self.applied + 1,
            days: vec![day].into(),
            blocks: Vec::new(),
        };
        assert!(self.store.apply(flush).await.unwrap());
        self.applied += 1;
    }

    async fn summary(&self, range: Range, zone: &Zone, bucket: ReportPeriod) -> Summary {
        let reports = Reports::new(Arc::clone(&self.store) as Arc<dyn ClickReports>, None);
        reports
            .summary(&link(), &range, zone, bucket)
            .await
            .unwrap()
    }
}

/// One human in each hour of the range, so that a point's count is its length in hours.
async fn one_each_hour(from: UnixMillis, before: UnixMillis) -> World {
    let mut world = World::new();
    let mut hour = from;
    while hour < before {
        world.add_clicks(hour, "human", 1, &[]).await;
        hour = UnixMillis(hour.0 + 3_600_000);
    }
    world
}

fn hours(summary: &Summary) -> Vec<(&str, u64)> {
    let points = summary.points.iter();
    points
        .map(|point| (&*point.label, point.counts.human))
        .collect()
}

#[tokio::test]
async fn a_day_on_which_the_clocks_change_has_23_or_25_hours() {
    let berlin = zone("Europe/Berlin");
    for (from, to, lengths) in [
        ("2026-03-28", "2026-03-30", [24, 23, 24]),
        ("2026-10-24", "2026-10-26", [24, 25, 24]),
    ] {
        let range = Range::new(date(from), date(to), &berlin).unwrap();
        let world = one_each_hour(
            UnixMillis(range.from().0 - 7_200_000),
            UnixMillis(range.before().0 + 7_200_000),
        )
        .await;
        let summary = world.summary(range, &berlin, ReportPeriod::Day).await;
        let counted: Vec<_> = summary
            .points
            .iter()
            .map(|point| point.counts.human)
            .collect();
        assert_eq!(counted, lengths, "{from}");
        assert_eq!(summary.totals.human, lengths.iter().sum::<u64>());
    }
}

#[tokio::test]
async fn the_repeated_hour_of_a_clock_change_is_two_points() {
    let berlin = zone("Europe/Berlin");
    let (from, to) = (at("2026-10-25T00:00:00Z"), at("2026-10-25T02:00:00Z"));
    let range = Range::new(Edge::At(from), Edge::At(to), &berlin).unwrap();
    let world = one_each_hour(from, to).await;
    let summary = world.summary(range, &berlin, ReportPeriod::Hour).await;
    assert_eq!(
        hours(&summary),
        [("2026-10-25T02:00+02:00", 1), ("2026-10-25T02:00+01:00", 1)]
    );
}

#[tokio::test]
async fn a_day_without_midnight_begins_when_the_clocks_say_so_and_a_skipped_day_is_no_point() {
    // Until 2019 the clocks of São Paulo went from 23:59 to 01:00.
    let sao_paulo = zone("America/Sao_Paulo");
    let range = Range::new(date("2018-11-03"), date("2018-11-05"), &sao_paulo).unwrap();
    let world = one_each_hour(range.from(), range.before()).await;
    let summary = world.summary(range, &sao_paulo, ReportPeriod::Day).await;
    assert_eq!(
        hours(&summary),
        [("2018-11-03", 24), ("2018-11-04", 23), ("2018-11-05", 24)]
    );
    // Samoa crossed the date line at the end of 29 December 2011.
    let apia = zone("Pacific/Apia");
    let range = Range::new(date("2011-12-29"), date("2011-12-31"), &apia).unwrap();
    let world = one_each_hour(range.from(), range.before()).await;
    let summary = world.summary(range, &apia, ReportPeriod::Day).await;
    assert_eq!(hours(&summary), [("2011-12-29", 24), ("2011-12-31", 24)]);
}

#[tokio::test]
async fn days_of_half_hour_zones_begin_at_the_nearest_hour() {
    // Midnight is 18:30 UTC in India, 18:15 in Nepal, 13:15 in Eucla.
    for (name, first_hour) in [
        ("Asia/Kolkata", "2026-11-14T18:00:00Z"),
        ("Asia/Kathmandu", "2026-11-14T18:00:00Z"),
        ("Australia/Eucla", "2026-11-14T15:00:00Z"),
    ] {
        let zone = zone(name);
        let range = Range::new(date("2026-11-15"), date("2026-11-16"), &zone).unwrap();
        assert_eq!(range.from(), at(first_hour), "{name}");
        let world = one_each_hour(range.from(), range.before()).await;
        let summary = world.summary(range, &zone, ReportPeriod::Day).await;
        assert_eq!(
            hours(&summary),
            [("2026-11-15", 24), ("2026-11-16", 24)],
            "{name}"
        );
    }
}

#[tokio::test]
async fn weeks_are_iso_weeks_around_new_year() {
    let world = one_each_hour(at("2026-12-27T00:00:00Z"), at("2027-01-06T00:00:00Z")).await;
    let range = Range::new(date("2026-12-27"), date("2027-01-05"), &Zone::UTC).unwrap();
    let summary = world.summary(range, &Zone::UTC, ReportPeriod::Week).await;
    // 27 December is a Sunday; 1 January a Friday of the old year's week 53.
    assert_eq!(
        hours(&summary),
        [("2026-W52", 24), ("2026-W53", 7 * 24), ("2027-W01", 2 * 24)]
    );
    let range = Range::new(date("2024-12-30"), date("2024-12-31"), &Zone::UTC).unwrap();
    let summary = world.summary(range, &Zone::UTC, ReportPeriod::Week).await;
    assert_eq!(hours(&summary), [("2025-W01", 0)]);
}

#[tokio::test]
async fn points_without_clicks_are_there_and_the_points_add_up() {
    let mut world = World::new();
    world
        .add_clicks(at("2026-01-31T23:59:59Z"), "human", 3, &[1, 2, 3])
        .await;
    world
        .add_clicks(at("2026-01-31T23:59:59Z"), "bot", 5, &[])
        .await;
    world
        .add_clicks(at("2026-04-01T00:00:00Z"), "prefetch", 7, &[])
        .await;
    world
        .add_clicks(at("2026-04-01T00:00:00Z"), "head", 11, &[1])
        .await;
    let range = Range::new(date("2026-01-15"), date("2026-04-30"), &Zone::UTC).unwrap();
    let summary = world.summary(range, &Zone::UTC, ReportPeriod::Month).await;
    let points: Vec<_> = summary
        .points
        .iter()
        .map(|point| (&*point.label, point.counts.total(), point.visitors))
        .collect();
    assert_eq!(
        points,
        [
            ("2026-01", 8, Some(3)),
            ("2026-02", 0, Some(0)),
            ("2026-03", 0, Some(0)),
            ("2026-04", 18, Some(1)),
        ]
    );
    let all = Counts {
        human: 3,
        bot: 5,
        prefetch: 7,
        head: 11,
    };
    assert_eq!((summary.totals, summary.visitors), (all, 4));
}

#[tokio::test]
async fn a_range_of_instants_covers_the_hours_that_it_touches() {
    let world = one_each_hour(at("2026-11-15T00:00:00Z"), at("2026-11-16T00:00:00Z")).await;
    for (from, to, count) in [
        ("10:00:00Z", "11:00:00Z", 1),
        ("10:59:59Z", "11:00:00.001Z", 2),
        ("10:30:00Z", "10:31:00Z", 1),
    ] {
        let edge = |time: &str| Edge::At(at(&format!("2026-11-15T{time}")));
        let range = Range::new(edge(from), edge(to), &Zone::UTC).unwrap();
        let summary = world.summary(range, &Zone::UTC, ReportPeriod::Day).await;
        assert_eq!(summary.totals.human, count, "{from} to {to}");
        assert_eq!(summary.points.len(), 1);
    }
}

#[test]
fn a_range_that_is_not_said_is_the_last_thirty_days_up_to_the_hour_that_has_begun() {
    let auckland = zone("Pacific/Auckland");
    let now = at("2026-11-15T10:20:00Z");
    let usual = Range::asked(None, None, now, &auckland).unwrap();
    assert_eq!(usual.from(), at("2026-10-16T11:00:00Z"));
    assert_eq!(usual.before(), at("2026-11-15T11:00:00Z"));
    let day = Range::asked(None, Some(date("2026-01-31")), now, &Zone::UTC).unwrap();
    assert_eq!(day.from(), at("2026-01-02T00:00:00Z"));
    let late = Range::asked(Some(date("2026-11-16")), None, now, &Zone::UTC);
    assert_eq!(late.unwrap_err(), ReportRangeError::Empty);
}

/// After the clock has stepped back, clicks are dated later than now.
#[tokio::test]
async fn a_range_without_an_end_counts_what_is_dated_later() {
    let mut world = World::new();
    let now = at("2026-11-15T10:20:00Z");
    for (at, visitor) in [
        (now, 1),
        (at("2026-11-15T12:00:00Z"), 2),
        (at("2026-11-19T00:00:00Z"), 3),
    ] {
        world.add_clicks(at, "human", 1, &[visitor]).await;
    }
    let open = Range::asked(None, None, now, &Zone::UTC).unwrap();
    let summary = world.summary(open, &Zone::UTC, ReportPeriod::Day).await;
    assert_eq!((summary.totals.human, summary.visitors), (3, 3));
    let last = summary.points.last().unwrap();
    assert_eq!((&*last.label, last.counts.human), ("2026-11-15", 3));
    let hours = world.summary(open, &Zone::UTC, ReportPeriod::Hour).await;
    assert_eq!(hours.totals.human, 3);
    let ended = Range::asked(None, Some(Edge::At(now)), now, &Zone::UTC).unwrap();
    let summary = world.summary(ended, &Zone::UTC, ReportPeriod::Day).await;
    assert_eq!(summary.totals.human, 1);
}

#[tokio::test]
async fn ranges_and_series_are_bounded() {
    let utc = &Zone::UTC;
    let range = |from, to| Range::new(date(from), date(to), utc);
    assert_eq!(
        range("2026-01-02", "2026-01-01").unwrap_err(),
        ReportRangeError::Empty
    );
    assert_eq!(
        range("2000-01-01", "2026-01-01").unwrap_err(),
        ReportRangeError::TooLong
    );
    assert_eq!(
        range("2026-01-01", "9999-12-31").unwrap_err(),
        ReportRangeError::Calendar
    );
    let end = Edge::At(UnixMillis(i64::MAX));
    let begin = Edge::At(UnixMillis(i64::MIN));
    for (from, to) in [(begin, end), (end, begin), (end, end), (begin, begin)] {
        assert!(Range::new(from, to, utc).is_err());
    }
    let years = range("2017-01-01", "2026-12-31").unwrap();
    let reports = Reports::new(Arc::new(MemoryClickStore::new()), None);
    for bucket in [ReportPeriod::Day, ReportPeriod::Week, ReportPeriod::Month] {
        let summary = reports.summary(&link(), &years, utc, bucket).await;
        assert!(summary.is_ok(), "{bucket:?}");
    }
    let hours = reports
        .summary(&link(), &years, utc, ReportPeriod::Hour)
        .await;
    assert!(matches!(
        hours,
        Err(ReportError::Range(ReportRangeError::TooManyPoints(5_000)))
    ));
}

#[test]
fn zones_have_the_names_of_the_database() {
    assert_eq!(zone("europe/berlin").name(), "Europe/Berlin");
    assert_eq!(zone("UTC").name(), "UTC");
    for name in [
        "",
        "Europe/Atlantis",
        "../../etc/passwd",
        "/etc/localtime",
        "\0",
    ] {
        assert_eq!(Zone::named(name), None, "{name:?}");
    }
}
