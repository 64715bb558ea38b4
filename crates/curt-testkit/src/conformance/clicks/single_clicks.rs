use std::net::{IpAddr, Ipv6Addr};

use anyhow::Result;
use curt_core::click::OTHER;
use curt_core::limits::VALUES_RANKED_MAX;
use curt_core::ports::{ClickFilter, ClickQuery, ClickRanking, ClickWindow, Top};
use curt_core::{
    Click, ClickClass, ClickDetails, ClickOutcome, ClickSubject, Dimension, DomainId, ErrorKind,
    LinkId, OwnerId, UnixMillis,
};

use super::{Port, all_of, click, link, walk};
use crate::conformance::{HOSTILE_TEXTS, refused, same};
use crate::sample::{OWNER, key, partition};

async fn add(store: &Port, clicks: Vec<Click>) -> Result<()> {
    let from = store.offset(partition(0)).await?;
    let applied = store
        .apply(
            ClickWindow {
                partition: partition(0),
                from,
                to: from + 1,
                days: Vec::new().into(),
                blocks: Vec::new(),
            }
            .with_clicks(&clicks),
        )
        .await?;
    same("applied", applied, true)
}

fn times(clicks: &[Click]) -> Vec<i64> {
    clicks.iter().map(|click| click.at.0).collect()
}

pub async fn the_newest_click_comes_first(store: Port) -> Result<()> {
    add(&store, vec![click("a", 20), click("a", 10)]).await?;
    add(&store, vec![click("a", 15), click("a", 30)]).await?;
    let got = walk(&store, &all_of(link("a"))).await?;
    same("times", times(&got), vec![30, 20, 15, 10])
}

pub async fn clicks_of_one_instant_come_last_first(store: Port) -> Result<()> {
    let named = |n: usize| Click {
        referrer: n.to_string().into(),
        ..click("a", 10)
    };
    for n in 0..5 {
        add(&store, vec![named(2 * n), named(2 * n + 1)]).await?;
    }
    let got = walk(&store, &all_of(link("a"))).await?;
    let got: Vec<&str> = got.iter().map(|click| &*click.referrer).collect();
    let want: Vec<String> = (0..10).rev().map(|n| n.to_string()).collect();
    same(
        "order",
        got,
        want.iter().map(String::as_str).collect::<Vec<_>>(),
    )
}

pub async fn pages_leave_nothing_out(store: Port) -> Result<()> {
    let clicks = (0..100).map(|n| click(if n % 3 == 0 { "a" } else { "b" }, 1_000 + n / 2));
    add(&store, clicks.collect()).await?;
    let of = |subject, limit| ClickQuery {
        limit,
        ..all_of(subject)
    };
    for (subject, count) in [(ClickSubject::Everything, 100), (link("a"), 34)] {
        let whole = walk(&store, &of(subject.clone(), 1_000)).await?;
        same("all", whole.len(), count)?;
        for limit in [1, 7, count, count + 1] {
            let got = walk(&store, &of(subject.clone(), limit)).await?;
            same(&format!("by {limit}"), &got, &whole)?;
        }
    }
    Ok(())
}

/// A click that comes late belongs to pages that the reader has passed; the later pages stay as they were.
pub async fn a_late_click_does_not_shift_a_page(store: Port) -> Result<()> {
    add(&store, (0..10).map(|n| click("a", n)).collect()).await?;
    let mut query = ClickQuery {
        limit: 4,
        ..all_of(link("a"))
    };
    let first = store.clicks(&query).await?;
    same("first page", times(&first.clicks), vec![9, 8, 7, 6])?;
    add(&store, vec![click("a", 99), click("a", 6), click("a", 8)]).await?;
    query.cursor = first.next;
    let second = store.clicks(&query).await?;
    same("second page", times(&second.clicks), vec![5, 4, 3, 2])
}

pub async fn every_subject_has_its_clicks(store: Port) -> Result<()> {
    let tagged = |key, at, tags: &[&str]| Click {
        tags: tags.iter().map(|tag| (*tag).into()).collect(),
        ..click(key, at)
    };
    let orphan = |outcome, at| Click {
        outcome,
        owner: None,
        ..click("x", at)
    };
    let other_domain = LinkId::new(DomainId(3), key("a"));
    add(
        &store,
        vec![
            tagged("a", 1, &["Red", "blue"]),
            tagged("A", 2, &["red"]),
            Click {
                owner: Some(OwnerId(7)),
                ..tagged("c", 3, &["red"])
            },
            orphan(ClickOutcome::Absent("nope".into()), 4),
            orphan(ClickOutcome::BaseUrl, 5),
            Click {
                outcome: ClickOutcome::Link(other_domain.clone(), 1),
                owner: None,
                ..click("x", 6)
            },
        ],
    )
    .await?;
    for (subject, want) in [
        (ClickSubject::Everything, vec![6, 5, 4, 3, 2, 1]),
        (ClickSubject::Orphans, vec![5, 4]),
        (ClickSubject::Owner(OWNER), vec![2, 1]),
        (ClickSubject::Owner(OwnerId(7)), vec![3]),
        (ClickSubject::Owner(OwnerId(0)), vec![]),
        (ClickSubject::tag(OWNER, "RED"), vec![2, 1]),
        (ClickSubject::tag(OWNER, "blue"), vec![1]),
        (ClickSubject::tag(OWNER, "re"), vec![]),
        (ClickSubject::tag(OwnerId(7), "red"), vec![3]),
        (link("a"), vec![1]),
        (link("A"), vec![2]),
        (ClickSubject::Link(other_domain, 1), vec![6]),
        (link("absent"), vec![]),
    ] {
        let what = format!("{subject:?}");
        let got = walk(&store, &all_of(subject)).await?;
        same(&what, times(&got), want)?;
    }
    Ok(())
}

pub async fn filters_take_what_has_every_value(store: Port) -> Result<()> {
    let of = |at, class, country: &str, browser: &str| Click {
        class,
        country: country.into(),
        browser: browser.into(),
        ..click("a", at)
    };
    let orphan = Click {
        outcome: ClickOutcome::Absent("nope".into()),
        owner: None,
        ..click("x", 4)
    };
    add(
        &store,
        vec![
            of(1, ClickClass::Human, "DE", "Firefox"),
            of(2, ClickClass::Bot, "DE", "Firefox"),
            of(3, ClickClass::Human, "FR", "Firefox"),
            orphan,
        ],
    )
    .await?;
    let value = |dimension, value: &str| (dimension, value.into());
    for (class, values, want) in [
        (None, vec![], vec![4, 3, 2, 1]),
        (Some(ClickClass::Bot), vec![], vec![2]),
        (None, vec![value(Dimension::Country, "DE")], vec![4, 2, 1]),
        (
            Some(ClickClass::Human),
            vec![
                value(Dimension::Browser, "Firefox"),
                value(Dimension::Country, "FR"),
            ],
            vec![3],
        ),
        (None, vec![value(Dimension::Country, "de")], vec![]),
        (None, vec![value(Dimension::Key, "nope")], vec![4]),
        (None, vec![value(Dimension::Orphan, "base_url")], vec![]),
    ] {
        let filter = ClickFilter { class, values };
        let what = format!("{filter:?}");
        let query = ClickQuery {
            filter,
            limit: 2,
            ..all_of(ClickSubject::Everything)
        };
        same(&what, times(&walk(&store, &query).await?), want)?;
    }
    Ok(())
}

pub async fn a_range_of_clicks_has_its_start_and_not_its_end(store: Port) -> Result<()> {
    add(&store, (0..6).map(|n| click("a", n)).collect()).await?;
    for (from, before, want) in [
        (2, 4, vec![3, 2]),
        (5, 99, vec![5]),
        (-5, 1, vec![0]),
        (3, 3, vec![]),
        (4, 2, vec![]),
    ] {
        let query = ClickQuery {
            from: UnixMillis(from),
            before: UnixMillis(before),
            limit: 1,
            ..all_of(link("a"))
        };
        let got = walk(&store, &query).await?;
        same(&format!("[{from}, {before})"), times(&got), want)?;
    }
    Ok(())
}

pub async fn clicks_are_kept_verbatim(store: Port) -> Result<()> {
    let mut clicks = Vec::new();
    for (n, text) in HOSTILE_TEXTS.iter().chain(&[""]).enumerate() {
        let mut details = ClickDetails::default();
        for dimension in Dimension::DETAILS.into_iter().skip(n % 3) {
            details.set(dimension, *text);
        }
        clicks.push(Click {
            // A tag has no line break: links refuse it.
            tags: vec!["one".into(), "two words".into(), "%_'\"".into()],
            class: ClickClass::ALL[n % 4],
            country: (*text).into(),
            browser: (*text).into(),
            system: (*text).into(),
            device: (*text).into(),
            referrer: (*text).into(),
            language: (*text).into(),
            details,
            address: Some(if n % 2 == 0 {
                IpAddr::from([192, 0, 2, 7])
            } else {
                IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))
            }),
            outcome: if n % 3 == 0 {
                ClickOutcome::Absent((*text).into())
            } else {
                click("a", 0).outcome
            },
            owner: (n % 3 != 0).then_some(OwnerId(u64::MAX >> 1)),
            ..click("a", 1_000 - n as i64)
        });
    }
    add(&store, clicks.clone()).await?;
    let got = walk(&store, &all_of(ClickSubject::Everything)).await?;
    same("clicks", got, clicks)
}

pub async fn impossible_times_are_moved(store: Port) -> Result<()> {
    let clicks = [i64::MIN, -1, i64::MAX].map(|at| click("a", at));
    add(&store, clicks.to_vec()).await?;
    let got = walk(&store, &all_of(link("a"))).await?;
    same("times", times(&got), vec![UnixMillis::MAX.0, 0, 0])
}

pub async fn a_foreign_cursor_is_refused(store: Port) -> Result<()> {
    for cursor in ["", "1", "elsewhere:1:1", "\u{1f980}"] {
        let query = ClickQuery {
            cursor: Some(cursor.into()),
            ..all_of(link("a"))
        };
        refused(cursor, store.clicks(&query).await, ErrorKind::Invalid)?;
    }
    Ok(())
}

pub async fn clicks_are_ranked_by_what_they_have_in_common(store: Port) -> Result<()> {
    let of = |at, country: &str, browser: &str| Click {
        country: country.into(),
        browser: browser.into(),
        ..click("a", at)
    };
    add(
        &store,
        vec![
            of(1, "DE", "Firefox"),
            of(2, "DE", "Firefox"),
            of(3, "DE", "Chrome"),
            of(4, "FR", "Chrome"),
            of(9, "DE", "too late"),
        ],
    )
    .await?;
    add(&store, vec![of(5, "DE", "Edge"), click("b", 6)]).await?;
    let mut ranking = ClickRanking {
        subject: link("a"),
        from: UnixMillis(1),
        before: UnixMillis(9),
        filter: ClickFilter::default(),
        dimension: Dimension::Browser,
        limit: 2,
    };
    ranking.filter.values = vec![(Dimension::Country, "DE".into())];
    let top = store.rank_clicks(&ranking).await?;
    let want = vec![("Firefox".into(), 2), ("Chrome".into(), 1)];
    same("values", top.values, want)?;
    same("the rest", top.rest, 1)?;
    ranking.dimension = Dimension::Orphan;
    let top = store.rank_clicks(&ranking).await?;
    same("a dimension that does not apply", top, Top::default())
}

pub async fn few_of_many_values_are_ranked_and_none_is_lost(store: Port) -> Result<()> {
    let clicks = VALUES_RANKED_MAX + 1_000;
    let own = |n: usize| Click {
        referrer: format!("{n}.example").into(),
        ..click("a", n as i64)
    };
    for first in (0..clicks).step_by(10_000) {
        let window = first..clicks.min(first + 10_000);
        add(&store, window.map(own).collect()).await?;
    }
    let ranking = ClickRanking {
        subject: ClickSubject::Everything,
        from: UnixMillis(0),
        before: UnixMillis::MAX,
        filter: ClickFilter::default(),
        dimension: Dimension::Referrer,
        limit: 1,
    };
    let top = store.rank_clicks(&ranking).await?;
    same("the others", &top.values, &vec![(OTHER.into(), 1_000)])?;
    same("all", top.total(), clicks as u64)
}
