//! Clauses of [`Heartbeats`].

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use curt_core::ports::{HeartbeatRecord, Heartbeats};

use super::{TestTime, race, same};

type Port = Arc<dyn Heartbeats>;

/// A test for each clause. `$open` gives [`Lookers`](crate::conformance::heartbeats::Lookers), with what keeps them alive.
#[macro_export]
macro_rules! heartbeats_tests {
    ($open:expr) => {
        mod heartbeats {
            use super::*;
            $crate::clause_tests!(
                $open,
                heartbeats,
                everybody_is_seen_by_everybody,
                the_last_word_counts,
                who_leaves_is_gone,
                many_beat_at_once
            );
        }
    };
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(400);
const LONGER: Duration = Duration::from_millis(600);

/// Two instances that share a registry without records.
pub struct Lookers {
    pub first: Port,
    pub second: Port,
}

/// For engines that forget by the clock.
pub async fn who_falls_silent_is_forgotten((heartbeats, time): (Port, TestTime)) -> Result<()> {
    heartbeats.beat("a", "x", SHORT).await?;
    heartbeats.beat("b", "y", LONG).await?;
    time.pass(LONGER).await;
    same(
        "after its time",
        names(&heartbeats).await?,
        ["b"].map(str::to_owned).to_vec(),
    )?;
    heartbeats.beat("a", "again", SHORT).await?;
    same(
        "said again",
        said(&heartbeats, "a").await?,
        Some("again".into()),
    )
}

async fn names(heartbeats: &Port) -> Result<Vec<String>> {
    let records = heartbeats.records().await?;
    Ok(records.into_iter().map(|m| m.instance.into()).collect())
}

async fn said(heartbeats: &Port, name: &str) -> Result<Option<Box<str>>> {
    let records = heartbeats.records().await?;
    let found = records.into_iter().find(|record| *record.instance == *name);
    Ok(found.map(|HeartbeatRecord { text, .. }| text))
}

pub async fn everybody_is_seen_by_everybody(heartbeats: Lookers) -> Result<()> {
    let Lookers { first, second } = heartbeats;
    same("empty", names(&first).await?, Vec::new())?;
    first.beat("b-1", "one two  three", LONG).await?;
    second.beat("a2", "", LONG).await?;
    for heartbeats in [&first, &second] {
        same(
            "in order",
            names(heartbeats).await?,
            vec!["a2".into(), "b-1".into()],
        )?;
        same(
            "said",
            said(heartbeats, "b-1").await?,
            Some("one two  three".into()),
        )?;
        same(
            "said nothing",
            said(heartbeats, "a2").await?,
            Some("".into()),
        )?;
    }
    Ok(())
}

pub async fn the_last_word_counts(heartbeats: Lookers) -> Result<()> {
    let Lookers { first, second } = heartbeats;
    for text in ["0", "10", "2"] {
        first.beat("a", text, LONG).await?;
        same("said", said(&second, "a").await?, Some(text.into()))?;
    }
    same("one entry", names(&second).await?.len(), 1)
}

pub async fn who_leaves_is_gone(heartbeats: Lookers) -> Result<()> {
    let Lookers { first, second } = heartbeats;
    first.beat("a", "x", LONG).await?;
    second.beat("b", "y", LONG).await?;
    first.remove("a").await?;
    same("left", names(&second).await?, vec!["b".into()])?;
    first.remove("a").await?;
    first.remove("never-there").await?;
    first.beat("a", "back", LONG).await?;
    same("back", said(&second, "a").await?, Some("back".into()))
}

pub async fn many_beat_at_once(heartbeats: Lookers) -> Result<()> {
    let Lookers { first, second } = heartbeats;
    race(16, |n| {
        let heartbeats = Arc::clone(if n % 2 == 0 { &first } else { &second });
        async move {
            heartbeats
                .beat(&format!("m{n}"), &n.to_string(), LONG)
                .await
        }
    })
    .await?;
    same("all", names(&first).await?.len(), 16)
}
