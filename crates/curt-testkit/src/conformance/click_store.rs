//! Clauses of [`ClickStore`].

use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::UnixMillis;
use curt_core::ports::{ClickFlush, ClickStore, ClickSum};

use super::{HOSTILE_TEXTS, RACERS, Suite, race, run_clauses, same};
use crate::sample::id;

type Port = Arc<dyn ClickStore>;

pub async fn suite(make: impl AsyncFn() -> Port) {
    let mut suite = Suite::of("ClickStore");
    run_clauses!(
        suite,
        make,
        an_empty_store_knows_nothing,
        a_flush_is_applied_once_c1,
        sums_come_by_hour_and_then_value,
        a_range_has_its_start_and_not_its_end,
        links_dimensions_and_partitions_are_apart,
        values_are_kept_verbatim,
        one_racer_applies_c1,
    );
    suite.finish();
}

fn sum(hour: i64, dimension: &str, value: &str, count: u64) -> ClickSum {
    ClickSum {
        hour: UnixMillis(hour * 3_600_000),
        dimension: dimension.into(),
        value: value.into(),
        count,
    }
}

fn flush(partition: u32, from: u64, to: u64, sums: &[(&str, ClickSum)]) -> ClickFlush {
    let sums = sums.iter().map(|(key, sum)| (id(key), sum.clone()));
    ClickFlush {
        partition,
        from,
        to,
        sums: sums.collect(),
    }
}

async fn read(store: &Port, key: &str, dimension: &str) -> Result<Vec<ClickSum>> {
    let all = (UnixMillis(i64::MIN), UnixMillis(i64::MAX));
    Ok(store.read(&id(key), dimension, all.0, all.1).await?)
}

async fn an_empty_store_knows_nothing(store: Port) -> Result<()> {
    same("position", store.position(3).await?, 0)?;
    same("sums", read(&store, "a", "country").await?, vec![])
}

async fn a_flush_is_applied_once_c1(store: Port) -> Result<()> {
    let first = flush(
        0,
        0,
        10,
        &[("a", sum(1, "d", "x", 2)), ("a", sum(1, "d", "x", 3))],
    );
    ensure!(store.apply(first.clone()).await?, "the first");
    ensure!(!store.apply(first).await?, "called twice");
    let gap = flush(0, 11, 20, &[("a", sum(1, "d", "x", 100))]);
    ensure!(!store.apply(gap).await?, "a gap");
    same("position", store.position(0).await?, 10)?;
    same(
        "sums",
        read(&store, "a", "d").await?,
        vec![sum(1, "d", "x", 5)],
    )?;
    let next = flush(0, 10, 20, &[("a", sum(1, "d", "x", 1))]);
    ensure!(store.apply(next).await?, "the next");
    same(
        "sums",
        read(&store, "a", "d").await?,
        vec![sum(1, "d", "x", 6)],
    )?;
    same("position", store.position(0).await?, 20)
}

async fn sums_come_by_hour_and_then_value(store: Port) -> Result<()> {
    let sums = [
        sum(2, "d", "a", 1),
        sum(1, "d", "b", 2),
        sum(1, "d", "B", 3),
        sum(-3, "d", "z", 4),
    ];
    let all: Vec<(&str, ClickSum)> = sums.iter().map(|sum| ("a", sum.clone())).collect();
    store.apply(flush(0, 0, 1, &all)).await?;
    let [late, lower, upper, early] = sums;
    same(
        "sums",
        read(&store, "a", "d").await?,
        vec![early, upper, lower, late],
    )
}

async fn a_range_has_its_start_and_not_its_end(store: Port) -> Result<()> {
    let sums: Vec<_> = (0..5).map(|hour| ("a", sum(hour, "d", "x", 1))).collect();
    store.apply(flush(0, 0, 1, &sums)).await?;
    let at = |hour| sum(hour, "d", "x", 1).hour;
    let range = |from, before| {
        let store = Arc::clone(&store);
        async move { store.read(&id("a"), "d", at(from), at(before)).await }
    };
    let want = vec![sum(1, "d", "x", 1), sum(2, "d", "x", 1)];
    same("[1, 3)", range(1, 3).await?, want)?;
    same("[2, 2)", range(2, 2).await?, vec![])?;
    same("[3, 1)", range(3, 1).await?, vec![])?;
    same("[9, 99)", range(9, 99).await?, vec![])
}

async fn links_dimensions_and_partitions_are_apart(store: Port) -> Result<()> {
    store
        .apply(flush(0, 0, 1, &[("a", sum(1, "d", "x", 1))]))
        .await?;
    store
        .apply(flush(0, 1, 2, &[("A", sum(1, "d", "x", 2))]))
        .await?;
    store
        .apply(flush(1, 0, 9, &[("a", sum(1, "e", "x", 4))]))
        .await?;
    same(
        "a, d",
        read(&store, "a", "d").await?,
        vec![sum(1, "d", "x", 1)],
    )?;
    same(
        "A, d",
        read(&store, "A", "d").await?,
        vec![sum(1, "d", "x", 2)],
    )?;
    same(
        "a, e",
        read(&store, "a", "e").await?,
        vec![sum(1, "e", "x", 4)],
    )?;
    same("position", store.position(0).await?, 2)?;
    same("position", store.position(1).await?, 9)?;
    store
        .apply(flush(1, 9, 10, &[("a", sum(1, "d", "x", 8))]))
        .await?;
    let both = read(&store, "a", "d").await?;
    same("over partitions", both, vec![sum(1, "d", "x", 9)])
}

async fn values_are_kept_verbatim(store: Port) -> Result<()> {
    let sums = HOSTILE_TEXTS.map(|text| ("a", sum(1, text, text, 1)));
    store.apply(flush(0, 0, 1, &sums)).await?;
    for text in HOSTILE_TEXTS {
        same(
            text,
            read(&store, "a", text).await?,
            vec![sum(1, text, text, 1)],
        )?;
    }
    Ok(())
}

async fn one_racer_applies_c1(store: Port) -> Result<()> {
    for step in 0..4 {
        let applied = race(RACERS, |_| {
            let store = Arc::clone(&store);
            let own = flush(0, step, step + 1, &[("a", sum(1, "d", "x", 1))]);
            async move { store.apply(own).await }
        })
        .await?;
        same(
            "C-1: winners",
            applied.iter().filter(|won| **won).count(),
            1,
        )?;
    }
    same(
        "C-1: sums",
        read(&store, "a", "d").await?,
        vec![sum(1, "d", "x", 4)],
    )
}
