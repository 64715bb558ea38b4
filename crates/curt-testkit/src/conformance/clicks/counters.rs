//! Clauses of [`ClickCounters`].

use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::{ClickCounters, Counted, CounterWindow};

use crate::conformance::{HOSTILE_TEXTS, RACERS, race, same};

type Port = Arc<dyn ClickCounters>;

fn counted(name: &str, count: u64) -> Counted {
    Counted {
        name: name.into(),
        count,
    }
}

fn window(offset: u64, counts: &[Counted]) -> CounterWindow {
    CounterWindow {
        offset,
        counts: counts.to_vec(),
    }
}

pub async fn an_unknown_partition_is_at_zero(counters: Port) -> Result<()> {
    same("offset", counters.offset(7).await?, 0)?;
    let empty = counters.take_window(7, "w").await?;
    same("window", empty, CounterWindow::default())?;
    counters.forget(7, "absent").await?;
    counters.forget(8, "w").await?;
    Ok(())
}

pub async fn counts_and_offset_move_together_c1(counters: Port) -> Result<()> {
    let counts = [counted("b", 2), counted("a", 1), counted("b", 3)];
    ensure!(counters.add(0, 0, 10, &counts).await?, "the first");
    ensure!(!counters.add(0, 0, 10, &counts).await?, "called twice");
    ensure!(!counters.add(0, 5, 20, &counts).await?, "a step back");
    ensure!(!counters.add(0, 11, 20, &counts).await?, "a gap");
    same("offset", counters.offset(0).await?, 10)?;
    ensure!(
        counters.add(0, 10, 20, &[counted("a", 5)]).await?,
        "the next"
    );
    ensure!(counters.add(0, 20, 25, &[]).await?, "without counts");
    let want = window(25, &[counted("a", 6), counted("b", 5)]);
    same("sorted counts", counters.take_window(0, "w").await?, want)
}

pub async fn a_window_is_set_aside_until_forgotten_c1(counters: Port) -> Result<()> {
    counters.add(0, 0, 10, &[counted("a", 1)]).await?;
    let first = counters.take_window(0, "w1").await?;
    same("the first", first.clone(), window(10, &[counted("a", 1)]))?;
    counters.add(0, 10, 20, &[counted("a", 2)]).await?;
    let again = counters.take_window(0, "w1").await?;
    same("taken again", again, first.clone())?;
    let second = counters.take_window(0, "w2").await?;
    same("the next", second, window(20, &[counted("a", 2)]))?;
    let again = counters.take_window(0, "w1").await?;
    same("still there", again, first)?;
    counters.forget(0, "w1").await?;
    counters.forget(0, "w1").await?;
    same("offset", counters.offset(0).await?, 20)?;
    let fresh = counters.take_window(0, "w1").await?;
    same("a new window of that name", fresh, window(20, &[]))
}

pub async fn partitions_are_apart(counters: Port) -> Result<()> {
    counters.add(0, 0, 10, &[counted("a", 1)]).await?;
    counters.add(1, 0, 99, &[counted("a", 7)]).await?;
    same("offset", counters.offset(0).await?, 10)?;
    let of = |partition| counters.take_window(partition, "w");
    same("one", of(0).await?, window(10, &[counted("a", 1)]))?;
    same("the other", of(1).await?, window(99, &[counted("a", 7)]))?;
    counters.forget(0, "w").await?;
    same("kept", of(1).await?, window(99, &[counted("a", 7)]))
}

pub async fn names_are_kept_verbatim(counters: Port) -> Result<()> {
    let mut counts: Vec<Counted> = HOSTILE_TEXTS.map(|text| counted(text, 1)).to_vec();
    counters.add(0, 0, 1, &counts).await?;
    counts.sort_by(|a, b| a.name.cmp(&b.name));
    same(
        "counts",
        counters.take_window(0, "w").await?,
        window(1, &counts),
    )
}

pub async fn one_racer_adds_c1(counters: Port) -> Result<()> {
    for step in 0..4 {
        let added = race(RACERS, |_| {
            let counters = Arc::clone(&counters);
            async move { counters.add(0, step, step + 1, &[counted("a", 1)]).await }
        })
        .await?;
        same("C-1: winners", added.iter().filter(|won| **won).count(), 1)?;
    }
    let want = window(4, &[counted("a", 4)]);
    same("C-1: counts", counters.take_window(0, "w").await?, want)
}
