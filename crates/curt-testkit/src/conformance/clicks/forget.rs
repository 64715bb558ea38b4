use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Result;
use curt_core::ports::ClickWindow;
use curt_core::{ClickSubject, Day, Dimension, SubjectDay, UnixMillis};

use super::{DAY, Port, all_of, click, counted, day, link, series, sum, visitors, walk};
use crate::conformance::{RACERS, race, same};
use crate::sample::partition;

const CLASS: Dimension = Dimension::Class;

pub async fn a_day_keeps_its_first_salt(store: Port) -> Result<()> {
    same("new", store.salt(day(DAY), [1; 32]).await?, [1; 32])?;
    same("kept", store.salt(day(DAY), [2; 32]).await?, [1; 32])?;
    same(
        "of the next day",
        store.salt(day(DAY + 1), [3; 32]).await?,
        [3; 32],
    )?;
    same("still kept", store.salt(day(DAY), [4; 32]).await?, [1; 32])
}

pub async fn racers_get_one_salt(store: Port) -> Result<()> {
    let salts = race(RACERS, |n| {
        let store = Arc::clone(&store);
        async move { store.salt(day(DAY), [n as u8; 32]).await }
    })
    .await?;
    let different: HashSet<_> = salts.into_iter().collect();
    same("salts", different.len(), 1)
}

pub async fn forgotten_salts_are_gone(store: Port) -> Result<()> {
    for n in 0..3 {
        store.salt(day(DAY + n), [1; 32]).await?;
    }
    for _ in 0..2 {
        store.forget_salts(day(DAY + 2)).await?;
    }
    for (n, want) in [(0, 9), (1, 9), (2, 1)] {
        let salt = store.salt(day(DAY + n), [9; 32]).await?;
        same(&format!("day {n}"), salt, [want; 32])?;
    }
    Ok(())
}

/// Two subjects, three days, and a click on each day.
async fn fill(store: &Port) -> Result<()> {
    let mut days = Vec::new();
    for number in DAY..DAY + 3 {
        for subject in [ClickSubject::Everything, link("a")] {
            days.push(SubjectDay {
                day: day(number),
                rollups: vec![sum(i64::from(number - DAY) * 24, CLASS, "human", 1)],
                visitors: visitors(0..3),
                ..counted(subject, Vec::new())
            });
        }
    }
    let clicks = (DAY..DAY + 3).rev();
    let clicks = clicks.map(|number| click("a", day(number).start().0));
    store
        .apply(
            ClickWindow {
                partition: partition(0),
                from: 0,
                to: 1,
                days: days.into(),
                blocks: Vec::new(),
            }
            .with_clicks(&clicks.collect::<Vec<_>>()),
        )
        .await?;
    Ok(())
}

async fn click_days(store: &Port) -> Result<Vec<u32>> {
    let clicks = walk(store, &all_of(link("a"))).await?;
    let number = |at: UnixMillis| Day::of(at).number() - DAY;
    Ok(clicks.iter().map(|click| number(click.at)).collect())
}

pub async fn old_clicks_go_oldest_first(store: Port) -> Result<()> {
    fill(&store).await?;
    let before = day(DAY + 2).start();
    same(
        "none is that old",
        store.purge_clicks(day(DAY).start(), 9).await?,
        0,
    )?;
    same("a batch", store.purge_clicks(before, 1).await?, 1)?;
    same("the oldest is gone", click_days(&store).await?, vec![2, 1])?;
    same("the rest", store.purge_clicks(before, 9).await?, 1)?;
    same("called again", store.purge_clicks(before, 9).await?, 0)?;
    same("clicks", click_days(&store).await?, vec![2])?;
    let rollups = series(&store, &link("a"), CLASS).await?;
    same("rollups stay", rollups.len(), 3)
}

pub async fn the_oldest_clicks_go_beyond_a_size(store: Port) -> Result<()> {
    fill(&store).await?;
    same("there is room", store.trim_clicks(1 << 20, 9).await?, 0)?;
    same("at most a batch", store.trim_clicks(0, 1).await?, 1)?;
    same("the oldest is gone", click_days(&store).await?, vec![2, 1])?;
    same("the rest", store.trim_clicks(0, 9).await?, 2)?;
    same("called again", store.trim_clicks(0, 9).await?, 0)?;
    same("clicks", click_days(&store).await?, vec![])?;
    let rollups = series(&store, &link("a"), CLASS).await?;
    same("rollups stay", rollups.len(), 3)?;

    // As many stay as there is room for: the first size that is too small is more than half of what they take.
    let mut clicks: Vec<_> = (0..1_000).map(|n| click("a", n)).collect();
    for (n, click) in clicks.iter_mut().enumerate() {
        click.referrer = format!("{n:04}.example").into();
        click.tags = vec!["ünïcode".into(), "two".into()];
    }
    store.apply(flush_of_clicks(1, 2, clicks)).await?;
    let mut size = 1 << 20;
    let mut trimmed = 0;
    while trimmed == 0 {
        size /= 2;
        trimmed = store.trim_clicks(size, 2_000).await?;
    }
    let left = walk(&store, &all_of(link("a"))).await?.len() as u64;
    same("trimmed or left", trimmed + left, 1_000)?;
    anyhow::ensure!((300..1_000).contains(&left), "{left} are left");
    same("enough went", store.trim_clicks(size, 2_000).await?, 0)
}

/// Otherwise room would be lost with every purge until nothing is kept any more.
pub async fn what_is_purged_takes_no_room(store: Port) -> Result<()> {
    for round in 0..3 {
        let mut clicks: Vec<_> = (0..100).map(|n| click("a", n)).collect();
        for click in &mut clicks {
            click.tags = vec!["ünïcode".into(), "two".into()];
            click.address = Some([203, 0, 113, 7].into());
        }
        clicks[0].outcome = curt_core::ClickOutcome::Absent("nosuchkey".into());
        clicks[1].outcome = curt_core::ClickOutcome::BaseUrl;
        clicks[2].owner = None;
        store
            .apply(flush_of_clicks(round, round + 1, clicks))
            .await?;
        same(
            "purged",
            store.purge_clicks(UnixMillis(100), 200).await?,
            100,
        )?;
        store
            .apply(flush_of_clicks(round + 1, round + 1, vec![click("a", 1)]))
            .await?;
        // Two would not fit.
        same("one fits", store.trim_clicks(400, 9).await?, 0)?;
        same("and goes", store.trim_clicks(0, 9).await?, 1)?;
    }
    Ok(())
}

fn flush_of_clicks(from: u64, to: u64, clicks: Vec<curt_core::Click>) -> ClickWindow {
    ClickWindow {
        partition: partition(0),
        from,
        to,
        days: Vec::new().into(),
        blocks: Vec::new(),
    }
    .with_clicks(&clicks)
}

pub async fn old_days_go_and_others_stay(store: Port) -> Result<()> {
    fill(&store).await?;
    let before = day(DAY + 2);
    same(
        "none is that old",
        store.purge_rollups(day(DAY), 9).await?,
        0,
    )?;
    let batch = store.purge_rollups(before, 1).await?;
    anyhow::ensure!(
        (1..=2).contains(&batch),
        "a batch of {batch}: one day at most"
    );
    same("the rest", store.purge_rollups(before, 9).await?, 4 - batch)?;
    same("called again", store.purge_rollups(before, 9).await?, 0)?;
    for subject in [ClickSubject::Everything, link("a")] {
        let want = vec![sum(48, CLASS, "human", 1)];
        same("rollups", series(&store, &subject, CLASS).await?, want)?;
        let days = store.visitors(&subject, Day::FIRST, Day::LAST).await?;
        same("visitors", days, vec![(before, 3)])?;
    }
    same("clicks stay", click_days(&store).await?, vec![2, 1, 0])
}
