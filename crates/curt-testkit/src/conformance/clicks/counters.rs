//! Clauses of [`ClickCounters`].

use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::{
    ClickCounters, Counted, CounterAddition, CounterWindow, StreamId, StreamPartition,
};

use crate::conformance::{HOSTILE_TEXTS, RACERS, race, same};

type Port = Arc<dyn ClickCounters>;

const PARTITION: StreamPartition = StreamPartition {
    stream: StreamId(u64::MAX),
    number: 7,
};

fn counted(name: impl AsRef<[u8]>, count: u64) -> Counted {
    Counted {
        name: name.as_ref().into(),
        count,
    }
}

fn addition(
    from: u64,
    [seen, next]: [u64; 2],
    counts: &[Counted],
    piece: &[u8],
) -> CounterAddition {
    CounterAddition {
        from,
        seen,
        next,
        counts: counts.to_vec(),
        piece: piece.to_vec(),
    }
}

/// One count more of "a", from one offset to another.
fn one_more(from: u64, span: [u64; 2]) -> CounterAddition {
    addition(from, span, &[counted("a", 1)], b"")
}

fn window(from: u64, to: u64, counts: &[Counted], pieces: &[&[u8]]) -> CounterWindow {
    CounterWindow {
        from,
        to,
        counts: counts.to_vec(),
        pieces: pieces.iter().map(|piece| piece.to_vec()).collect(),
    }
}

pub async fn an_unknown_partition_has_no_window(counters: Port) -> Result<()> {
    same("window", counters.window(PARTITION).await?, None)?;
    counters.forget(PARTITION, 0).await?;
    let behind = counters.add(PARTITION, one_more(5, [9, 10])).await?;
    same("C-1: what was before it is lost", behind, None)?;
    same("window", counters.window(PARTITION).await?, None)?;
    let begun = counters.add(PARTITION, one_more(5, [5, 10])).await?;
    ensure!(begun.is_some(), "a window begins anywhere");
    Ok(())
}

pub async fn counts_and_offset_move_together_c1(counters: Port) -> Result<()> {
    let counts = [counted("b", 2), counted("a", 1), counted("b", 3)];
    let first = addition(3, [3, 10], &counts, b"one");
    let add = async |addition: &CounterAddition| counters.add(PARTITION, addition.clone()).await;
    ensure!(add(&first).await?.is_some(), "the first");
    same("called twice", add(&first).await?, None)?;
    same("a step back", add(&one_more(3, [5, 20])).await?, None)?;
    same("a gap", add(&one_more(3, [11, 20])).await?, None)?;
    same("another window", add(&one_more(2, [10, 20])).await?, None)?;
    same("one of its own", add(&one_more(10, [10, 20])).await?, None)?;
    let second = addition(3, [10, 20], &[counted("a", 5)], b"two");
    ensure!(add(&second).await?.is_some(), "the next");
    ensure!(
        add(&addition(3, [20, 1_000], &[], b"")).await?.is_some(),
        "without counts"
    );
    let third = addition(3, [1_000, 1_001], &[], b"three");
    ensure!(add(&third).await?.is_some(), "without counts, and a piece");
    let counts = [counted("a", 6), counted("b", 5)];
    let want = window(3, 1_001, &counts, &[b"one", b"two", b"three"]);
    same(
        "window",
        counters.window(PARTITION).await?,
        Some(want.clone()),
    )?;
    same("read again", counters.window(PARTITION).await?, Some(want))
}

pub async fn a_window_is_kept_until_it_is_forgotten_by_its_name_c1(counters: Port) -> Result<()> {
    counters.add(PARTITION, one_more(0, [0, 10])).await?;
    counters.forget(PARTITION, 10).await?;
    let kept = window(0, 10, &[counted("a", 1)], &[]);
    same(
        "another name",
        counters.window(PARTITION).await?,
        Some(kept),
    )?;
    counters.forget(PARTITION, 0).await?;
    counters.forget(PARTITION, 0).await?;
    same("forgotten", counters.window(PARTITION).await?, None)?;
    let late = counters.add(PARTITION, one_more(0, [10, 20])).await?;
    same("C-1: a late addition", late, None)?;
    counters.add(PARTITION, one_more(10, [10, 15])).await?;
    let next = window(10, 15, &[counted("a", 1)], &[]);
    same("the next", counters.window(PARTITION).await?, Some(next))
}

pub async fn partitions_are_apart(counters: Port) -> Result<()> {
    let others = [
        StreamPartition {
            number: PARTITION.number + 1,
            ..PARTITION
        },
        StreamPartition {
            stream: StreamId(1),
            ..PARTITION
        },
    ];
    counters.add(PARTITION, one_more(0, [0, 10])).await?;
    for other in others {
        let counts = [counted("a", 7)];
        counters
            .add(other, addition(0, [0, 99], &counts, b""))
            .await?;
    }
    let own = window(0, 10, &[counted("a", 1)], &[]);
    same("one", counters.window(PARTITION).await?, Some(own))?;
    counters.forget(PARTITION, 0).await?;
    for other in others {
        let kept = window(0, 99, &[counted("a", 7)], &[]);
        same("another", counters.window(other).await?, Some(kept))?;
    }
    Ok(())
}

pub async fn names_and_pieces_are_kept_verbatim(counters: Port) -> Result<()> {
    let mut counts: Vec<Counted> = HOSTILE_TEXTS.map(|text| counted(text, 1)).to_vec();
    // Numbers as large as they come, bytes that are no text, and words that an adapter may use itself.
    counts.push(counted([0, 0xff, b'\r', b'\n', 0x80], 1 << 52));
    counts.extend(["from", "to", "bytes", "c", "p10", "p"].map(|name| counted(name, 1)));
    let piece: Vec<u8> = (0..=255).chain([0, b'\n', 0xff]).collect();
    counters
        .add(PARTITION, addition(0, [0, u64::MAX], &counts, &piece))
        .await?;
    counts.sort();
    counts.dedup_by(|a, b| a.name == b.name);
    let want = window(0, u64::MAX, &counts, &[&piece]);
    same("window", counters.window(PARTITION).await?, Some(want))
}

/// What ends a window before it outgrows its store.
pub async fn the_size_follows_what_is_new(counters: Port) -> Result<()> {
    let names = [counted([b'n'; 50], 1), counted([b'm'; 50], 2)];
    let size = async |span: [u64; 2], piece: &[u8]| {
        let addition = addition(0, span, &names, piece);
        counters
            .add(PARTITION, addition)
            .await
            .map(Option::unwrap_or_default)
    };
    let first = size([0, 1], b"").await?;
    ensure!((100..1_000).contains(&first), "{first} bytes for two names");
    let again = size([1, 2], b"").await?;
    same("the same names", again, first)?;
    let larger = size([2, 3], &[1; 300]).await?;
    ensure!(
        (300..600).contains(&(larger - first)),
        "from {first} to {larger} bytes"
    );
    Ok(())
}

pub async fn one_racer_adds_c1(counters: Port) -> Result<()> {
    for step in 0..4 {
        let added = race(RACERS, |_| {
            let counters = Arc::clone(&counters);
            async move { counters.add(PARTITION, one_more(0, [step, step + 1])).await }
        })
        .await?;
        let winners = added.iter().filter(|added| added.is_some()).count();
        same("C-1: winners", winners, 1)?;
    }
    let want = window(0, 4, &[counted("a", 4)], &[]);
    same("C-1: counts", counters.window(PARTITION).await?, Some(want))
}
