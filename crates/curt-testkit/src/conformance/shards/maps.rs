//! Clauses of [`ShardMaps`].

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use curt_core::ports::{MapNote, ShardMaps};
use curt_core::{NodeIndex, ShardId, ShardMap};

use crate::conformance::{RACERS, race, same};

type Port = Arc<dyn ShardMaps>;

/// Longer than any engine takes to tell of a change.
const LONG: Duration = Duration::from_secs(30);

fn first() -> ShardMap {
    ShardMap::by_ring(&["a", "b", "c"], 32).unwrap_or_default()
}

/// The map after `map`, with another owner for one shard.
fn next(map: &ShardMap, node: u32) -> ShardMap {
    ShardId::all()
        .take(1)
        .fold(map.clone(), |map, shard| map.moved(shard, NodeIndex(node)))
}

pub async fn absent_is_one_node_with_everything(maps: Port) -> Result<()> {
    same("the map", maps.load().await?, ShardMap::default())?;
    let newer = maps.watch(0, Duration::from_millis(50)).await?;
    same("a newer one", newer, None)
}

pub async fn a_map_advances_only_from_the_newest(maps: Port) -> Result<()> {
    let first = first();
    let second = next(&first, 7);
    ensure!(!maps.advance(&second).await?, "a version was left out");
    ensure!(maps.advance(&first).await?, "the first step");
    ensure!(!maps.advance(&first).await?, "called twice");
    same("the whole map", maps.load().await?, first)?;
    ensure!(maps.advance(&second).await?, "the next step");
    same("the next map", maps.load().await?, second)
}

pub async fn one_racer_wins_each_step(maps: Port) -> Result<()> {
    let mut map = first();
    ensure!(maps.advance(&map).await?, "the first step");
    for _ in 0..3 {
        let won = race(RACERS, |n| {
            let (maps, next) = (Arc::clone(&maps), next(&map, n as u32));
            async move { Ok(maps.advance(&next).await?.then_some(next)) }
        })
        .await?;
        let mut won: Vec<ShardMap> = won.into_iter().flatten().collect();
        same("winners of one step", won.len(), 1)?;
        map = won.remove(0);
        same("the winner's map", maps.load().await?, map.clone())?;
    }
    Ok(())
}

pub async fn a_map_that_is_newer_is_told_at_once(maps: Port) -> Result<()> {
    let (first, second) = (first(), next(&first(), 7));
    maps.advance(&first).await?;
    maps.advance(&second).await?;
    for seen in [0, 1] {
        let newer = maps.watch(seen, LONG).await?;
        same("the newest", newer, Some(second.clone()))?;
    }
    let newer = maps.watch(2, Duration::from_millis(50)).await?;
    same("nothing newer", newer, None)
}

/// The first watch begins before there is a map at all.
pub async fn a_watch_ends_with_the_next_map(maps: Port) -> Result<()> {
    let mut map = first();
    for seen in 0..3 {
        let watch = tokio::spawn({
            let maps = Arc::clone(&maps);
            async move { maps.watch(seen, LONG).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        ensure!(!watch.is_finished(), "there is nothing newer than {seen}");
        ensure!(maps.advance(&map).await?, "step {seen}");
        same("the next map", watch.await??, Some(map.clone()))?;
        map = next(&map, 7);
    }
    Ok(())
}

pub async fn a_note_is_put_once_per_version(maps: Port) -> Result<()> {
    let absent = maps.note("nodes").await?;
    same("absent", absent.clone(), MapNote::default())?;
    let note = |n: usize| absent.followed_by(format!("first line {n}\n\u{1f980}\n"));
    let won = race(RACERS, |n| {
        let (maps, note) = (Arc::clone(&maps), note(n));
        async move { Ok(maps.put_note("nodes", &note).await?.then_some(note)) }
    });
    let won: Vec<MapNote> = won.await?.into_iter().flatten().collect();
    same("winners", won.len(), 1)?;
    let stored = maps.note("nodes").await?;
    same("the winner's note", &stored, &won[0])?;
    ensure!(!maps.put_note("nodes", &stored).await?, "called twice");
    let late = stored.followed_by("x".into()).followed_by("y".into());
    ensure!(
        !maps.put_note("nodes", &late).await?,
        "a version was left out"
    );
    let next = stored.followed_by(String::new());
    ensure!(maps.put_note("nodes", &next).await?, "the next version");
    same("the next note", maps.note("nodes").await?, next)?;
    same("another note", maps.note("move").await?, MapNote::default())?;
    same("the map", maps.load().await?, ShardMap::default())
}
