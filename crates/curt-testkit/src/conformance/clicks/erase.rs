use std::sync::Arc;

use anyhow::Result;
use curt_core::ports::{ClickFilter, ClickQuery, ClickRanking, ClickWindow, Erasure};
use curt_core::{
    Click, ClickOutcome, ClickSubject, Day, Dimension, DomainId, LinkId, SubjectDay, UnixMillis,
};

use super::{DAY, Port, all_of, click, counted, day, flush_of, link, series, sum, visitors, walk};
use crate::conformance::{race, same};
use crate::sample::{OWNER, id, key, partition};

const CLASS: Dimension = Dimension::Class;
/// More pieces than any of these stores has.
const ALL: usize = 1_000;
const NOTHING: Erasure = Erasure {
    erased: 0,
    is_complete: true,
};

fn complete(erased: u64) -> Erasure {
    Erasure {
        erased,
        is_complete: true,
    }
}

/// A click of another link than [`link`]'s.
fn click_of(id: LinkId, generation: u32, at: i64) -> Click {
    Click {
        outcome: ClickOutcome::Link(id, generation),
        ..click("a", at)
    }
}

/// Links that are easily taken for `a`.
fn neighbours() -> Vec<(LinkId, u32)> {
    vec![
        (id("a"), 2),
        (id("A"), 1),
        (id("aa"), 1),
        (LinkId::new(DomainId(3), key("a")), 1),
    ]
}

/// What a window counted of a subject on a day that is so many after [`DAY`].
fn counted_on(subject: ClickSubject, after: u32, count: u64) -> SubjectDay {
    SubjectDay {
        day: day(DAY + after),
        rollups: vec![sum(i64::from(after) * 24, CLASS, "human", count)],
        visitors: visitors(0..count),
        ..counted(subject, Vec::new())
    }
}

/// Three windows, each with a click of `a` and of its neighbours on three days, and what was counted of them.
async fn fill(store: &Port) -> Result<()> {
    for window in 0..3_u32 {
        let mut days = Vec::new();
        let mut clicks = Vec::new();
        for after in 0..3 {
            let start = day(DAY + after).start().0;
            let at = |n: i64| start + i64::from(window) * 100 + n;
            clicks.push(click("a", at(0)));
            for (n, (id, generation)) in neighbours().into_iter().enumerate() {
                clicks.push(click_of(id.clone(), generation, at(1 + n as i64)));
                days.push(counted_on(ClickSubject::Link(id, generation), after, 1));
            }
            days.push(counted_on(link("a"), after, 2));
            days.push(counted_on(ClickSubject::Owner(OWNER), after, 6));
            days.push(counted_on(ClickSubject::Everything, after, 6));
        }
        let from = u64::from(window);
        let flush = flush_of(from, from + 1, days).with_clicks(&clicks);
        same("applied", store.apply(flush).await?, true)?;
    }
    Ok(())
}

fn is_of_a(click: &Click) -> bool {
    click.outcome == ClickOutcome::Link(id("a"), 1)
}

/// What is counted and estimated of a subject.
async fn numbers(store: &Port, subject: &ClickSubject) -> Result<(u64, Vec<(Day, u64)>)> {
    let rollups = series(store, subject, CLASS).await?;
    let visitors = store.visitors(subject, Day::FIRST, Day::LAST).await?;
    Ok((rollups.iter().map(|sum| sum.count).sum(), visitors))
}

pub async fn an_absent_link_has_nothing_to_erase(store: Port) -> Result<()> {
    for key in ["a", "b"] {
        let clicks = store.erase_clicks(id(key), 1, ALL).await?;
        same("clicks", clicks, NOTHING)?;
        let days = store.erase_rollups(id(key), 1, ALL).await?;
        same("days", days, NOTHING)?;
        if key == "a" {
            fill(&store).await?;
        }
    }
    Ok(())
}

pub async fn the_clicks_of_one_link_go_and_others_stay(store: Port) -> Result<()> {
    fill(&store).await?;
    let everything = all_of(ClickSubject::Everything);
    let mut want = walk(&store, &everything).await?;
    same("before", want.len(), 45)?;
    let counted = numbers(&store, &link("a")).await?;
    let erased = store.erase_clicks(id("a"), 1, ALL).await?;
    same("erased", erased, complete(9))?;
    want.retain(|click| !is_of_a(click));
    for subject in [ClickSubject::Everything, ClickSubject::Owner(OWNER)] {
        let got = walk(&store, &all_of(subject.clone())).await?;
        same(&format!("{subject:?}"), &got, &want)?;
        let ranking = ClickRanking {
            subject,
            from: UnixMillis(0),
            before: UnixMillis::MAX,
            filter: ClickFilter::default(),
            dimension: CLASS,
            limit: 9,
        };
        let ranked = store.rank_clicks(&ranking).await?;
        same("ranked", ranked.values, vec![("human".into(), 36)])?;
    }
    same("its own", walk(&store, &all_of(link("a"))).await?, vec![])?;
    for (id, generation) in neighbours() {
        let of = ClickSubject::Link(id, generation);
        same("a neighbour", walk(&store, &all_of(of)).await?.len(), 9)?;
    }
    same("rollups stay", numbers(&store, &link("a")).await?, counted)?;
    let again = store.erase_clicks(id("a"), 1, ALL).await?;
    same("called twice", again, NOTHING)
}

pub async fn the_days_of_one_link_go_and_totals_stay(store: Port) -> Result<()> {
    fill(&store).await?;
    let mut others = vec![ClickSubject::Owner(OWNER), ClickSubject::Everything];
    let neighbours = neighbours().into_iter();
    others.extend(neighbours.map(|(id, generation)| ClickSubject::Link(id, generation)));
    let mut want = Vec::new();
    for subject in &others {
        want.push(numbers(&store, subject).await?);
    }
    same("before", numbers(&store, &link("a")).await?.0, 18)?;
    let erased = store.erase_rollups(id("a"), 1, ALL).await?;
    same("complete", erased.is_complete, true)?;
    anyhow::ensure!((3..=9).contains(&erased.erased), "{erased:?}");
    same("gone", numbers(&store, &link("a")).await?, (0, vec![]))?;
    for (subject, want) in others.iter().zip(&want) {
        let got = numbers(&store, subject).await?;
        same(&format!("{subject:?}"), &got, want)?;
    }
    let clicks = walk(&store, &all_of(link("a"))).await?;
    same("clicks stay", clicks.len(), 9)?;
    let again = store.erase_rollups(id("a"), 1, ALL).await?;
    same("called twice", again, NOTHING)?;
    // It may be counted again.
    let flush = flush_of(3, 4, vec![counted_on(link("a"), 0, 5)]);
    same("applied", store.apply(flush).await?, true)?;
    same("counted", numbers(&store, &link("a")).await?.0, 5)
}

/// Calls until all is erased; says how many were.
async fn erase_piece_by_piece(store: &Port, is_of_days: bool) -> Result<u64> {
    let mut erased = 0;
    for _ in 0..100 {
        let piece = match is_of_days {
            true => store.erase_rollups(id("a"), 1, 1).await?,
            false => store.erase_clicks(id("a"), 1, 1).await?,
        };
        erased += piece.erased;
        if piece.is_complete {
            return Ok(erased);
        }
        anyhow::ensure!(piece.erased > 0, "a call that is bounded gets somewhere");
    }
    anyhow::bail!("never complete")
}

pub async fn an_erasure_goes_on_where_it_was_bounded(store: Port) -> Result<()> {
    fill(&store).await?;
    same("clicks", erase_piece_by_piece(&store, false).await?, 9)?;
    same("its own", walk(&store, &all_of(link("a"))).await?, vec![])?;
    let days = erase_piece_by_piece(&store, true).await?;
    anyhow::ensure!((3..=9).contains(&days), "{days} days");
    same("gone", numbers(&store, &link("a")).await?, (0, vec![]))?;
    let rest = walk(&store, &all_of(ClickSubject::Everything)).await?;
    same("the rest", rest.len(), 36)
}

pub async fn a_page_goes_on_after_an_erasure(store: Port) -> Result<()> {
    fill(&store).await?;
    let mut query = ClickQuery {
        limit: 20,
        ..all_of(ClickSubject::Everything)
    };
    let whole = walk(&store, &query).await?;
    let first = store.clicks(&query).await?;
    same("first page", &first.clicks[..], &whole[..20])?;
    store.erase_clicks(id("a"), 1, ALL).await?;
    query.cursor = first.next;
    let rest = walk(&store, &query).await?;
    let mut want = whole[20..].to_vec();
    want.retain(|click| !is_of_a(click));
    same("the other pages", rest, want)
}

/// Windows come in, are merged and are erased from at the same time: nothing of another link is lost or comes twice, and
/// what was erased does not come back.
pub async fn an_erasure_races_with_flushes_and_merges(store: Port) -> Result<()> {
    const WINDOWS: u64 = 12;
    let counting = 3;
    race(8, |racer| {
        let store = Arc::clone(&store);
        async move {
            for n in 0..WINDOWS {
                match racer {
                    _ if racer < counting => {
                        let days = vec![counted_on(link("a"), 0, 1), counted_on(link("b"), 0, 1)];
                        let at = (n * 10) as i64;
                        let flush = ClickWindow {
                            partition: partition(racer as u32),
                            ..flush_of(n, n + 1, days)
                        };
                        let flush = flush.with_clicks(&[click("a", at), click("b", at + 1)]);
                        store.apply(flush).await?;
                    }
                    3 | 4 => store.compact().await?,
                    5 => drop(store.erase_rollups(id("a"), 1, ALL).await?),
                    _ => drop(store.erase_clicks(id("a"), 1, ALL).await?),
                }
            }
            Ok(())
        }
    })
    .await?;
    same(
        "clicks",
        store.erase_clicks(id("a"), 1, ALL).await?.is_complete,
        true,
    )?;
    same(
        "days",
        store.erase_rollups(id("a"), 1, ALL).await?.is_complete,
        true,
    )?;
    store.compact().await?;
    same("its own", walk(&store, &all_of(link("a"))).await?, vec![])?;
    same("its counts", numbers(&store, &link("a")).await?.0, 0)?;
    let want = counting as u64 * WINDOWS;
    let others = walk(&store, &all_of(link("b"))).await?;
    same("another's clicks", others.len() as u64, want)?;
    same(
        "another's counts",
        numbers(&store, &link("b")).await?.0,
        want,
    )
}
