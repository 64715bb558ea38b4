//! Clauses of [`Invalidations`].

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use curt_core::Revision;
use curt_core::ports::{Invalidation, InvalidationFeed, Invalidations, LinkChange};

use crate::conformance::{race, same};
use crate::sample::id;

type Port = Arc<dyn Invalidations>;

/// Messages that one under test keeps for a slow subscriber at least, and at most.
const KEPT: u32 = 32;
const KEPT_MAX: u32 = 10_000;
/// How long nothing must come.
const SILENCE: Duration = Duration::from_millis(200);

fn change(version: u32) -> LinkChange {
    LinkChange {
        id: id(&format!("k{version}")),
        revision: Revision {
            generation: 1,
            version,
        },
    }
}

async fn publish(channel: &Port, versions: impl IntoIterator<Item = u32>) -> Result<()> {
    for version in versions {
        channel.publish(&[change(version)]).await?;
    }
    Ok(())
}

/// The next message or gap.
async fn next(feed: &mut Box<dyn InvalidationFeed>) -> Result<Invalidation> {
    loop {
        match feed.next().await.context("the channel was closed")? {
            Invalidation::Alive { .. } => {}
            told => return Ok(told),
        }
    }
}

/// The next message, which is no gap.
async fn message(feed: &mut Box<dyn InvalidationFeed>) -> Result<(u64, Vec<LinkChange>)> {
    match next(feed).await? {
        Invalidation::Changed { sequence, changes } => Ok((sequence, changes.into_vec())),
        other => anyhow::bail!("{other:?} where nothing was lost"),
    }
}

async fn expect(feed: &mut Box<dyn InvalidationFeed>, version: u32) -> Result<()> {
    same("changes", message(feed).await?.1, vec![change(version)])
}

async fn expect_silence(feed: &mut Box<dyn InvalidationFeed>) -> Result<()> {
    let got = tokio::time::timeout(SILENCE, next(feed)).await;
    ensure!(got.is_err(), "got {got:?}, expected nothing");
    Ok(())
}

pub async fn every_subscriber_gets_every_message(channel: Port) -> Result<()> {
    let mut feeds = [channel.subscribe().await?, channel.subscribe().await?];
    publish(&channel, 0..KEPT).await?;
    for feed in &mut feeds {
        for version in 0..KEPT {
            expect(feed, version).await?;
        }
    }
    Ok(())
}

pub async fn the_changes_of_one_call_come_together(channel: Port) -> Result<()> {
    let mut feed = channel.subscribe().await?;
    let changes: Vec<_> = (0..1_000).map(change).chain([change(7)]).collect();
    channel.publish(&changes).await?;
    same("changes", message(&mut feed).await?.1, changes)
}

pub async fn sequence_numbers_rise_by_one(channel: Port) -> Result<()> {
    publish(&channel, 0..3).await?;
    let mut feed = channel.subscribe().await?;
    publish(&channel, 0..KEPT).await?;
    let (mut last, _) = message(&mut feed).await?;
    for _ in 1..KEPT {
        let (sequence, _) = message(&mut feed).await?;
        same("the number", sequence, last + 1)?;
        last = sequence;
    }
    Ok(())
}

pub async fn nothing_comes_from_before_the_subscription(channel: Port) -> Result<()> {
    publish(&channel, [1]).await?;
    let mut feed = channel.subscribe().await?;
    publish(&channel, [2]).await?;
    expect(&mut feed, 2).await?;
    expect_silence(&mut feed).await
}

pub async fn no_changes_are_no_message(channel: Port) -> Result<()> {
    let mut feed = channel.subscribe().await?;
    channel.publish(&[]).await?;
    expect_silence(&mut feed).await?;
    publish(&channel, [1]).await?;
    expect(&mut feed, 1).await
}

pub async fn a_message_published_twice_comes_twice(channel: Port) -> Result<()> {
    let mut feed = channel.subscribe().await?;
    publish(&channel, [1, 1]).await?;
    expect(&mut feed, 1).await?;
    expect(&mut feed, 1).await
}

pub async fn a_cancelled_wait_loses_nothing(channel: Port) -> Result<()> {
    let mut feed = channel.subscribe().await?;
    expect_silence(&mut feed).await?;
    publish(&channel, [1]).await?;
    expect(&mut feed, 1).await
}

pub async fn a_subscriber_that_left_holds_up_nothing(channel: Port) -> Result<()> {
    publish(&channel, [1]).await?;
    let mut stays = channel.subscribe().await?;
    drop(channel.subscribe().await?);
    publish(&channel, [2]).await?;
    expect(&mut stays, 2).await
}

pub async fn a_slow_subscriber_has_a_gap(channel: Port) -> Result<()> {
    let mut feed = channel.subscribe().await?;
    publish(&channel, 0..=KEPT_MAX).await?;
    while let Invalidation::Changed { sequence, .. } = next(&mut feed).await? {
        ensure!(sequence < u64::from(KEPT_MAX), "every message was kept");
    }
    Ok(())
}

pub async fn every_message_after_a_gap_comes(channel: Port) -> Result<()> {
    let mut feed = channel.subscribe().await?;
    publish(&channel, 0..=KEPT_MAX).await?;
    while next(&mut feed).await? != Invalidation::Gap {}
    publish(&channel, KEPT_MAX + 1..=KEPT_MAX + 3).await?;
    // Some from before the gap may come first.
    while message(&mut feed).await?.1 != [change(KEPT_MAX + 1)] {}
    expect(&mut feed, KEPT_MAX + 2).await?;
    expect(&mut feed, KEPT_MAX + 3).await
}

pub async fn racing_publishers_leave_no_gap(channel: Port) -> Result<()> {
    let mut feed = channel.subscribe().await?;
    race(KEPT as usize, |n| {
        let channel = Arc::clone(&channel);
        async move { channel.publish(&[change(n as u32)]).await }
    })
    .await?;
    let (first, changes) = message(&mut feed).await?;
    let mut seen = changes;
    for n in 1..u64::from(KEPT) {
        let (sequence, changes) = message(&mut feed).await?;
        same("the number", sequence, first + n)?;
        seen.extend(changes);
    }
    seen.sort_by_key(|change| change.revision);
    same("changes", seen, (0..KEPT).map(change).collect())
}
