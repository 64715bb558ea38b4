use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::{ClickWindow, HourRange, StreamId, StreamPartition, Top};
use curt_core::{ClickSubject, Day, Dimension};

use super::{
    DAY, Port, all_of, click, counted, day, flush, flush_of, link, series, sum, visitors, walk,
};
use crate::conformance::{RACERS, race, same};
use crate::sample::partition;

const CLASS: Dimension = Dimension::Class;

pub async fn an_empty_store_knows_nothing(store: Port) -> Result<()> {
    same("offset", store.offset(partition(3)).await?, 0)?;
    for subject in [ClickSubject::Everything, ClickSubject::Orphans, link("a")] {
        same("rollups", series(&store, &subject, CLASS).await?, vec![])?;
        let top = store.top(&subject, CLASS, HourRange::ALL, 9).await?;
        same("top", top, Top::default())?;
        let days = store.visitors(&subject, Day::FIRST, Day::LAST).await?;
        same("visitors", days, vec![])?;
        same("clicks", walk(&store, &all_of(subject)).await?, vec![])?;
    }
    Ok(())
}

/// Rollups, visitors and clicks in one.
fn whole(partition: StreamPartition, from: u64, to: u64) -> ClickWindow {
    let mut day = counted(
        link("a"),
        vec![sum(1, CLASS, "human", 2), sum(1, CLASS, "human", 3)],
    );
    day.visitors = visitors(from..to);
    ClickWindow {
        partition,
        from,
        to,
        days: vec![day].into(),
        blocks: Vec::new(),
    }
    .with_clicks(&[click("a", 5)])
}

pub async fn a_flush_is_applied_once_c1(store: Port) -> Result<()> {
    ensure!(store.apply(whole(partition(0), 0, 10)).await?, "the first");
    ensure!(
        !store.apply(whole(partition(0), 0, 10)).await?,
        "called twice"
    );
    let once = vec![sum(1, CLASS, "human", 5)];
    same("rollups", series(&store, &link("a"), CLASS).await?, once)?;
    same("clicks", walk(&store, &all_of(link("a"))).await?.len(), 1)?;
    same("offset", store.offset(partition(0)).await?, 10)?;

    ensure!(store.apply(whole(partition(0), 10, 20)).await?, "the next");
    let twice = vec![sum(1, CLASS, "human", 10)];
    same("rollups", series(&store, &link("a"), CLASS).await?, twice)?;
    same("clicks", walk(&store, &all_of(link("a"))).await?.len(), 2)?;
    same("offset", store.offset(partition(0)).await?, 20)
}

pub async fn a_refused_flush_changes_nothing_c1(store: Port) -> Result<()> {
    for (from, to) in [(1, 2), (9, 3)] {
        ensure!(
            !store.apply(whole(partition(0), from, to)).await?,
            "from {from}"
        );
    }
    same("offset", store.offset(partition(0)).await?, 0)?;
    same("rollups", series(&store, &link("a"), CLASS).await?, vec![])?;
    same(
        "visitors",
        store.visitors(&link("a"), Day::FIRST, Day::LAST).await?,
        vec![],
    )?;
    same("clicks", walk(&store, &all_of(link("a"))).await?, vec![])
}

/// Poison alone moves the position too.
pub async fn an_empty_flush_moves_the_offset(store: Port) -> Result<()> {
    ensure!(store.apply(flush_of(0, 7, vec![])).await?, "the flush");
    same("offset", store.offset(partition(0)).await?, 7)
}

pub async fn partitions_add_up(store: Port) -> Result<()> {
    ensure!(store.apply(whole(partition(0), 0, 1)).await?, "partition 0");
    ensure!(store.apply(whole(partition(7), 0, 9)).await?, "partition 7");
    same("offset", store.offset(partition(0)).await?, 1)?;
    same("offset", store.offset(partition(7)).await?, 9)?;
    same("offset", store.offset(partition(1)).await?, 0)?;
    let both = vec![sum(1, CLASS, "human", 10)];
    same("rollups", series(&store, &link("a"), CLASS).await?, both)?;
    let visitors = store.visitors(&link("a"), day(DAY), day(DAY + 1)).await?;
    same("visitors of 0..1 and 0..9", visitors, vec![(day(DAY), 9)])
}

/// Two servers with a spool of their own each count into one store.
pub async fn streams_are_apart(store: Port) -> Result<()> {
    let streams = [0, 1, u64::MAX].map(|stream| StreamPartition {
        stream: StreamId(stream),
        number: 0,
    });
    for (to, own) in (1..).zip(streams) {
        ensure!(store.apply(whole(own, 0, to)).await?, "{own:?}");
    }
    for (to, own) in (1..).zip(streams) {
        same("offset", store.offset(own).await?, to)?;
        ensure!(!store.apply(whole(own, 0, to)).await?, "{own:?} again");
    }
    let all = vec![sum(1, CLASS, "human", 15)];
    same("rollups", series(&store, &link("a"), CLASS).await?, all)
}

pub async fn one_racer_applies_c1(store: Port) -> Result<()> {
    for step in 0..4 {
        let applied = race(RACERS, |_| {
            let store = Arc::clone(&store);
            let own = flush(step, step + 1, "a", vec![sum(1, CLASS, "human", 1)]);
            async move { store.apply(own).await }
        })
        .await?;
        let winners = applied.iter().filter(|won| **won).count();
        same("C-1: winners", winners, 1)?;
    }
    let want = vec![sum(1, CLASS, "human", 4)];
    same(
        "C-1: rollups",
        series(&store, &link("a"), CLASS).await?,
        want,
    )
}

/// Flushers of different partitions touch the same rows.
pub async fn racing_partitions_all_count_c1(store: Port) -> Result<()> {
    let applied = race(RACERS, |number| {
        let store = Arc::clone(&store);
        let own = whole(partition(number as u32), 0, 1);
        async move { store.apply(own).await }
    })
    .await?;
    ensure!(applied.iter().all(|won| *won), "no position is shared");
    let want = vec![sum(1, CLASS, "human", 5 * RACERS as u64)];
    same(
        "C-1: rollups",
        series(&store, &link("a"), CLASS).await?,
        want,
    )?;
    let clicks = walk(&store, &all_of(link("a"))).await?;
    same("C-1: clicks", clicks.len(), RACERS)
}
