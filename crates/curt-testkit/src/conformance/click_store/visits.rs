use std::net::{IpAddr, Ipv6Addr};

use anyhow::Result;
use curt_core::ports::{ClickFlush, VisitFilter, VisitQuery};
use curt_core::{
    ClickSubject, Dimension, DomainId, ErrorKind, LinkId, OwnerId, UnixMillis, VisitKind, VisitRow,
    Visited,
};

use super::{Port, all_of, link, visit, walk};
use crate::conformance::{HOSTILE_TEXTS, Suite, refused, run_clauses, same};
use crate::sample::{OWNER, key, partition};

pub(super) async fn clauses(suite: &mut Suite, make: &impl AsyncFn() -> Port) {
    run_clauses!(
        suite,
        make,
        the_newest_visit_comes_first,
        visits_of_one_instant_come_last_first,
        pages_leave_nothing_out,
        a_late_visit_does_not_shift_a_page,
        every_subject_has_its_visits,
        filters_take_what_has_every_value,
        a_range_of_visits_has_its_start_and_not_its_end,
        visits_are_kept_verbatim,
        impossible_times_are_moved,
        a_foreign_cursor_is_refused,
    );
}

async fn add(store: &Port, visits: Vec<VisitRow>) -> Result<()> {
    let from = store.position(partition(0)).await?;
    let applied = store
        .apply(ClickFlush {
            partition: partition(0),
            from,
            to: from + 1,
            days: Vec::new(),
            visits,
        })
        .await?;
    same("applied", applied, true)
}

fn times(visits: &[VisitRow]) -> Vec<i64> {
    visits.iter().map(|visit| visit.at.0).collect()
}

async fn the_newest_visit_comes_first(store: Port) -> Result<()> {
    add(&store, vec![visit("a", 20), visit("a", 10)]).await?;
    add(&store, vec![visit("a", 15), visit("a", 30)]).await?;
    let got = walk(&store, &all_of(link("a"))).await?;
    same("times", times(&got), vec![30, 20, 15, 10])
}

async fn visits_of_one_instant_come_last_first(store: Port) -> Result<()> {
    let named = |n: usize| VisitRow {
        referrer: n.to_string().into(),
        ..visit("a", 10)
    };
    for n in 0..5 {
        add(&store, vec![named(2 * n), named(2 * n + 1)]).await?;
    }
    let got = walk(&store, &all_of(link("a"))).await?;
    let got: Vec<&str> = got.iter().map(|visit| &*visit.referrer).collect();
    let want: Vec<String> = (0..10).rev().map(|n| n.to_string()).collect();
    same(
        "order",
        got,
        want.iter().map(String::as_str).collect::<Vec<_>>(),
    )
}

async fn pages_leave_nothing_out(store: Port) -> Result<()> {
    let visits = (0..100).map(|n| visit(if n % 3 == 0 { "a" } else { "b" }, 1_000 + n / 2));
    add(&store, visits.collect()).await?;
    let of = |subject, limit| VisitQuery {
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

/// A visit that comes late belongs to pages that the reader has passed; the later pages stay as they were.
async fn a_late_visit_does_not_shift_a_page(store: Port) -> Result<()> {
    add(&store, (0..10).map(|n| visit("a", n)).collect()).await?;
    let mut query = VisitQuery {
        limit: 4,
        ..all_of(link("a"))
    };
    let first = store.visits(&query).await?;
    same("first page", times(&first.visits), vec![9, 8, 7, 6])?;
    add(&store, vec![visit("a", 99), visit("a", 6), visit("a", 8)]).await?;
    query.cursor = first.next;
    let second = store.visits(&query).await?;
    same("second page", times(&second.visits), vec![5, 4, 3, 2])
}

async fn every_subject_has_its_visits(store: Port) -> Result<()> {
    let tagged = |key, at, tags: &[&str]| VisitRow {
        tags: tags.iter().map(|tag| (*tag).into()).collect(),
        ..visit(key, at)
    };
    let orphan = |visited, at| VisitRow {
        visited,
        owner: None,
        ..visit("x", at)
    };
    let other_domain = LinkId::new(DomainId(3), key("a"));
    add(
        &store,
        vec![
            tagged("a", 1, &["Red", "blue"]),
            tagged("A", 2, &["red"]),
            VisitRow {
                owner: Some(OwnerId(7)),
                ..tagged("c", 3, &["red"])
            },
            orphan(Visited::Absent("nope".into()), 4),
            orphan(Visited::BaseUrl, 5),
            VisitRow {
                visited: Visited::Link(other_domain.clone(), 1),
                owner: None,
                ..visit("x", 6)
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

async fn filters_take_what_has_every_value(store: Port) -> Result<()> {
    let of = |at, kind, country: &str, browser: &str| VisitRow {
        kind,
        country: country.into(),
        browser: browser.into(),
        ..visit("a", at)
    };
    let orphan = VisitRow {
        visited: Visited::Absent("nope".into()),
        owner: None,
        ..visit("x", 4)
    };
    add(
        &store,
        vec![
            of(1, VisitKind::Human, "DE", "Firefox"),
            of(2, VisitKind::Bot, "DE", "Firefox"),
            of(3, VisitKind::Human, "FR", "Firefox"),
            orphan,
        ],
    )
    .await?;
    let value = |dimension, value: &str| (dimension, value.into());
    for (kind, values, want) in [
        (None, vec![], vec![4, 3, 2, 1]),
        (Some(VisitKind::Bot), vec![], vec![2]),
        (None, vec![value(Dimension::Country, "DE")], vec![4, 2, 1]),
        (
            Some(VisitKind::Human),
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
        let filter = VisitFilter { kind, values };
        let what = format!("{filter:?}");
        let query = VisitQuery {
            filter,
            limit: 2,
            ..all_of(ClickSubject::Everything)
        };
        same(&what, times(&walk(&store, &query).await?), want)?;
    }
    Ok(())
}

async fn a_range_of_visits_has_its_start_and_not_its_end(store: Port) -> Result<()> {
    add(&store, (0..6).map(|n| visit("a", n)).collect()).await?;
    for (from, before, want) in [
        (2, 4, vec![3, 2]),
        (5, 99, vec![5]),
        (-5, 1, vec![0]),
        (3, 3, vec![]),
        (4, 2, vec![]),
    ] {
        let query = VisitQuery {
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

async fn visits_are_kept_verbatim(store: Port) -> Result<()> {
    let mut visits = Vec::new();
    for (n, text) in HOSTILE_TEXTS.iter().chain(&[""]).enumerate() {
        visits.push(VisitRow {
            // A tag has no line break: links refuse it.
            tags: vec!["one".into(), "two words".into(), "%_'\"".into()],
            kind: VisitKind::ALL[n % 4],
            country: (*text).into(),
            browser: (*text).into(),
            system: (*text).into(),
            device: (*text).into(),
            referrer: (*text).into(),
            language: (*text).into(),
            address: Some(if n % 2 == 0 {
                IpAddr::from([192, 0, 2, 7])
            } else {
                IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))
            }),
            visited: if n % 3 == 0 {
                Visited::Absent((*text).into())
            } else {
                visit("a", 0).visited
            },
            owner: (n % 3 != 0).then_some(OwnerId(u64::MAX >> 1)),
            ..visit("a", 1_000 - n as i64)
        });
    }
    add(&store, visits.clone()).await?;
    let got = walk(&store, &all_of(ClickSubject::Everything)).await?;
    same("visits", got, visits)
}

async fn impossible_times_are_moved(store: Port) -> Result<()> {
    let visits = [i64::MIN, -1, i64::MAX].map(|at| visit("a", at));
    add(&store, visits.to_vec()).await?;
    let got = walk(&store, &all_of(link("a"))).await?;
    same("times", times(&got), vec![UnixMillis::MAX.0, 0, 0])
}

async fn a_foreign_cursor_is_refused(store: Port) -> Result<()> {
    for cursor in ["", "1", "elsewhere:1:1", "\u{1f980}"] {
        let query = VisitQuery {
            cursor: Some(cursor.into()),
            ..all_of(link("a"))
        };
        refused(cursor, store.visits(&query).await, ErrorKind::Invalid)?;
    }
    Ok(())
}
