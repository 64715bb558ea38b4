use anyhow::Result;
use curt_core::click::OTHER;
use curt_core::limits::VALUES_PER_DAY_MAX;
use curt_core::ports::{HourRange, Top};
use curt_core::{ClickSubject, DomainId, LinkId, OwnerId, UnixMillis};
use curt_core::{Day, Dimension};

use super::{DAY, Port, counted, day, flush, flush_of, hour, link, series, sum};
use crate::conformance::{HOSTILE_TEXTS, same};
use crate::sample::{id, key};

const CLASS: Dimension = Dimension::Class;
const COUNTRY: Dimension = Dimension::Country;

pub async fn rollups_come_by_hour_and_then_value(store: Port) -> Result<()> {
    let of = |day_number, rollups| {
        let mut counted = counted(link("a"), rollups);
        counted.day = day(day_number);
        counted
    };
    let early = sum(-1, CLASS, "z", 4);
    let (upper, lower) = (sum(1, CLASS, "B", 3), sum(1, CLASS, "b", 2));
    let late = sum(2, CLASS, "a", 1);
    let days = vec![
        of(DAY, vec![late.clone(), lower.clone(), upper.clone()]),
        of(DAY - 1, vec![early.clone()]),
    ];
    store.apply(flush_of(0, 1, days)).await?;
    let want = vec![early, upper, lower, late];
    same("rollups", series(&store, &link("a"), CLASS).await?, want)
}

async fn five_hours(store: &Port) -> Result<()> {
    let rollups = (20..24).map(|hour| sum(hour, CLASS, "human", 1));
    store.apply(flush(0, 1, "a", rollups.collect())).await?;
    let mut next = counted(link("a"), vec![sum(24, CLASS, "human", 1)]);
    next.day = day(DAY + 1);
    store.apply(flush_of(1, 2, vec![next])).await?;
    Ok(())
}

async fn hours_in(store: &Port, from: UnixMillis, before: UnixMillis) -> Result<Vec<UnixMillis>> {
    let range = HourRange { from, before };
    let rollups = store.series(&link("a"), CLASS, range).await?;
    Ok(rollups.iter().map(|sum| sum.hour).collect())
}

pub async fn a_range_has_its_start_and_not_its_end(store: Port) -> Result<()> {
    five_hours(&store).await?;
    for (from, before, want) in [
        (21, 23, vec![hour(21), hour(22)]),
        (23, 25, vec![hour(23), hour(24)]),
        (24, 99, vec![hour(24)]),
        (0, 21, vec![hour(20)]),
        (22, 22, vec![]),
        (23, 21, vec![]),
        (25, 99, vec![]),
    ] {
        let got = hours_in(&store, hour(from), hour(before)).await?;
        same(&format!("[{from}, {before})"), got, want)?;
    }
    Ok(())
}

pub async fn a_range_is_of_whole_hours(store: Port) -> Result<()> {
    five_hours(&store).await?;
    let (from, before) = (UnixMillis(hour(21).0 + 1), UnixMillis(hour(24).0 - 1));
    let got = hours_in(&store, from, before).await?;
    same("hours", got, vec![hour(21), hour(22)])
}

pub async fn subjects_are_apart(store: Port) -> Result<()> {
    let subjects = [
        ClickSubject::Everything,
        ClickSubject::Orphans,
        ClickSubject::Owner(OwnerId(0)),
        ClickSubject::Owner(OwnerId(1)),
        ClickSubject::Owner(OwnerId(u64::MAX >> 1)),
        ClickSubject::tag(OwnerId(1), "a"),
        ClickSubject::tag(OwnerId(1), "b"),
        ClickSubject::tag(OwnerId(2), "a"),
        ClickSubject::tag(OwnerId(1), ""),
        link("a"),
        link("A"),
        ClickSubject::Link(LinkId::new(DomainId(1), key("a")), 1),
        ClickSubject::Link(LinkId::new(DomainId(u32::MAX), key("a")), 1),
        // Later links of the same key.
        ClickSubject::Link(id("a"), 2),
        ClickSubject::Link(id("a"), u32::MAX),
    ];
    let count = |n: usize| n as u64 + 1;
    for (n, subject) in subjects.iter().enumerate() {
        let rollups = vec![sum(1, CLASS, "human", count(n))];
        let own = flush_of(
            n as u64,
            n as u64 + 1,
            vec![counted(subject.clone(), rollups)],
        );
        store.apply(own).await?;
    }
    for (n, subject) in subjects.iter().enumerate() {
        let want = vec![sum(1, CLASS, "human", count(n))];
        same(
            &format!("{subject:?}"),
            series(&store, subject, CLASS).await?,
            want,
        )?;
    }
    let other_case = ClickSubject::tag(OwnerId(1), "B");
    let want = vec![sum(1, CLASS, "human", count(6))];
    same(
        "a tag in another case",
        series(&store, &other_case, CLASS).await?,
        want,
    )
}

pub async fn dimensions_are_apart(store: Port) -> Result<()> {
    let rollups = Dimension::ALL.map(|dimension| sum(1, dimension, "x", dimension as u64 + 1));
    store.apply(flush(0, 1, "a", rollups.to_vec())).await?;
    for own in rollups {
        let got = series(&store, &link("a"), own.dimension).await?;
        same(own.dimension.name(), got, vec![own])?;
    }
    Ok(())
}

pub async fn values_are_kept_verbatim(store: Port) -> Result<()> {
    let long = "x".repeat(3_000);
    let texts = HOSTILE_TEXTS.iter().copied().chain(["", &long]);
    let mut rollups: Vec<_> = texts.map(|text| sum(1, COUNTRY, text, 1)).collect();
    store.apply(flush(0, 1, "a", rollups.clone())).await?;
    rollups.sort_by(|a, b| a.value.cmp(&b.value));
    same(
        "values",
        series(&store, &link("a"), COUNTRY).await?,
        rollups,
    )
}

pub async fn values_beyond_the_bound_are_other(store: Port) -> Result<()> {
    let name = |n: usize| format!("v{n:05}");
    let of = |numbers: std::ops::Range<usize>, at| {
        numbers
            .map(|n| sum(at, COUNTRY, &name(n), 1))
            .collect::<Vec<_>>()
    };
    let full = VALUES_PER_DAY_MAX;
    store.apply(flush(0, 1, "a", of(0..full - 1, 1))).await?;
    // One more fits; "other" itself always does.
    let mut more = of(full - 1..full + 3, 2);
    more.push(sum(2, COUNTRY, OTHER, 5));
    store.apply(flush(1, 2, "a", more)).await?;
    // A value that is known stays known, in other dimensions and on other days nothing is full.
    store
        .apply(flush(2, 3, "a", vec![sum(3, COUNTRY, &name(0), 1)]))
        .await?;
    store
        .apply(flush(3, 4, "a", vec![sum(3, CLASS, "new", 1)]))
        .await?;

    let top = store
        .top(&link("a"), COUNTRY, HourRange::ALL, 2 * full)
        .await?;
    same("values", top.values.len(), full + 1)?;
    same("other", top.values[0].clone(), (OTHER.into(), 8))?;
    same("known", top.values[1].clone(), (name(0).into(), 2))?;
    same("exact in all", top.total(), full as u64 + 3 + 5 + 1)?;
    let classes = series(&store, &link("a"), CLASS).await?;
    same("another dimension", classes, vec![sum(3, CLASS, "new", 1)])
}

pub async fn an_hour_of_another_day_is_the_nearest(store: Port) -> Result<()> {
    let rollups = vec![sum(-30, CLASS, "human", 1), sum(30, CLASS, "human", 2)];
    store.apply(flush(0, 1, "a", rollups)).await?;
    let want = vec![sum(0, CLASS, "human", 1), sum(23, CLASS, "human", 2)];
    same("rollups", series(&store, &link("a"), CLASS).await?, want)
}

pub async fn nothing_is_not_counted(store: Port) -> Result<()> {
    store
        .apply(flush(0, 1, "a", vec![sum(1, CLASS, "human", 0)]))
        .await?;
    same("rollups", series(&store, &link("a"), CLASS).await?, vec![])
}

pub async fn counts_are_as_large_as_they_get(store: Port) -> Result<()> {
    let huge = sum(1, CLASS, "human", u64::MAX - 1);
    store.apply(flush(0, 1, "a", vec![huge.clone()])).await?;
    same(
        "huge",
        series(&store, &link("a"), CLASS).await?,
        vec![huge.clone()],
    )?;
    store.apply(flush(1, 2, "a", vec![huge])).await?;
    let full = sum(1, CLASS, "human", u64::MAX);
    same("full", series(&store, &link("a"), CLASS).await?, vec![full])
}

pub async fn the_first_and_last_day_are_days(store: Port) -> Result<()> {
    for (n, day) in [Day::FIRST, Day::LAST].into_iter().enumerate() {
        let mut own = counted(link("a"), vec![sum(0, CLASS, "human", 1)]);
        own.day = day;
        own.rollups[0].hour = day.hour(23);
        store
            .apply(flush_of(n as u64, n as u64 + 1, vec![own]))
            .await?;
    }
    let rollups = series(&store, &link("a"), CLASS).await?;
    let hours: Vec<_> = rollups.iter().map(|sum| sum.hour).collect();
    same(
        "hours",
        hours,
        vec![Day::FIRST.hour(23), Day::LAST.hour(23)],
    )
}

pub async fn the_top_is_ranked(store: Port) -> Result<()> {
    let rollups = vec![
        sum(1, COUNTRY, "few", 1),
        sum(1, COUNTRY, "many", 5),
        sum(2, COUNTRY, "b-middle", 2),
        sum(3, COUNTRY, "b-middle", 1),
        sum(2, COUNTRY, "a-middle", 3),
    ];
    store.apply(flush(0, 1, "a", rollups)).await?;
    let ranked = [("many", 5), ("a-middle", 3), ("b-middle", 3), ("few", 1)];
    for (limit, rest) in [(0, 12), (1, 7), (3, 1), (4, 0), (usize::MAX, 0)] {
        let values = ranked.iter().take(limit);
        let want = Top {
            values: values
                .map(|(value, count)| ((*value).into(), *count))
                .collect(),
            rest,
        };
        let got = store
            .top(&link("a"), COUNTRY, HourRange::ALL, limit)
            .await?;
        same(&format!("top {limit}"), got, want)?;
    }
    Ok(())
}

pub async fn the_top_is_of_the_range(store: Port) -> Result<()> {
    let rollups = (0..24).map(|at| sum(at, COUNTRY, if at < 12 { "am" } else { "pm" }, 1));
    let mut next = counted(link("a"), vec![sum(24, COUNTRY, "next", 7)]);
    next.day = day(DAY + 1);
    let today = counted(ClickSubject::Link(id("a"), 1), rollups.collect());
    store.apply(flush_of(0, 1, vec![today, next])).await?;
    let range = HourRange {
        from: hour(10),
        before: hour(15),
    };
    let got = store.top(&link("a"), COUNTRY, range, 9).await?;
    let want = Top {
        values: vec![("pm".into(), 3), ("am".into(), 2)],
        rest: 0,
    };
    same("top", got, want.clone())?;
    let several = [(Dimension::City, 9), (COUNTRY, 9), (COUNTRY, 1)];
    let got = store.overview(&link("a"), &several, range).await?.tops;
    let first = Top {
        values: vec![("pm".into(), 3)],
        rest: 2,
    };
    same("tops", got, vec![Top::default(), want, first])
}
