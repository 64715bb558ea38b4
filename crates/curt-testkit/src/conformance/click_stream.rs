//! Clauses of [`ClickStream`].

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::{ClickStream, StreamRecord};

use super::{Suite, race, run_clauses, same};

type Port = Arc<dyn ClickStream>;

pub async fn suite(make: impl AsyncFn() -> Port) {
    let mut suite = Suite::of("ClickStream");
    run_clauses!(
        suite,
        make,
        a_new_stream_is_empty,
        records_come_back_whole_and_in_order,
        a_poll_may_be_repeated_and_resumed,
        a_commit_never_goes_back,
        racing_appends_lose_nothing,
    );
    suite.finish();
}

fn record(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

/// Everything that is in the stream, by partition.
async fn all(stream: &Port) -> Result<Vec<Vec<StreamRecord>>> {
    let mut all = Vec::new();
    for partition in 0..stream.partitions().await? {
        let mut records: Vec<StreamRecord> = Vec::new();
        loop {
            let from = records.last().map_or(0, |last| last.offset + 1);
            let page = stream.poll(partition, from, 100).await?;
            if page.is_empty() {
                break;
            }
            records.extend(page);
        }
        all.push(records);
    }
    Ok(all)
}

async fn a_new_stream_is_empty(stream: Port) -> Result<()> {
    let partitions = stream.partitions().await?;
    ensure!(partitions > 0, "no partition");
    for partition in 0..partitions {
        same("polled", stream.poll(partition, 0, 10).await?, vec![])?;
    }
    stream.append(&[]).await?;
    same("still empty", all(&stream).await?.concat(), vec![])
}

async fn records_come_back_whole_and_in_order(stream: Port) -> Result<()> {
    let records: Vec<Box<[u8]>> = vec![
        record("one"),
        Box::from([0_u8, 255, 10, 13, 0]),
        record("{\"shortCode\":\"a\"}\n"),
        record(&"x".repeat(10_000)),
        Box::from([]),
        record("one"),
    ];
    stream.append(&records).await?;
    let partitions = all(&stream).await?;
    for partition in &partitions {
        let rising = partition.is_sorted_by(|a, b| a.offset < b.offset);
        ensure!(rising, "offsets do not rise");
    }
    let mut got: Vec<Box<[u8]>> = partitions.concat().into_iter().map(|r| r.bytes).collect();
    if stream.partitions().await? > 1 {
        // Records may be spread over partitions, and only each of those has an order.
        got.sort();
        let mut sorted = records;
        sorted.sort();
        return same("records", got, sorted);
    }
    same("records", got, records)
}

async fn a_poll_may_be_repeated_and_resumed(stream: Port) -> Result<()> {
    for n in 0..20 {
        stream.append(&[record(&format!("r{n}"))]).await?;
    }
    for (partition, records) in (0..).zip(all(&stream).await?) {
        for (place, wanted) in records.iter().enumerate() {
            for _ in 0..2 {
                let got = stream.poll(partition, wanted.offset, 3).await?;
                let end = (place + 3).min(records.len());
                same("from there", got, records[place..end].to_vec())?;
            }
        }
        let Some(last) = records.last() else { continue };
        let past = stream.poll(partition, last.offset + 1, 3).await?;
        same("past the end", past, vec![])?;
    }
    Ok(())
}

async fn a_commit_never_goes_back(stream: Port) -> Result<()> {
    for n in 0..30 {
        stream.append(&[record(&format!("r{n}"))]).await?;
    }
    for (partition, records) in (0..).zip(all(&stream).await?) {
        let Some(middle) = records.get(records.len() / 2) else {
            continue;
        };
        stream.commit(partition, middle.offset).await?;
        stream.commit(partition, records[0].offset).await?;
        stream.commit(partition, middle.offset).await?;
        let kept = stream.poll(partition, middle.offset, 100).await?;
        same("what is left", kept, records[records.len() / 2..].to_vec())?;
        // What was committed may be gone or not; what comes is in order and reaches the end.
        let from_start = stream.poll(partition, 0, 100).await?;
        ensure!(
            records.ends_with(&from_start),
            "a poll from the start has a gap"
        );
    }
    stream.append(&[record("after")]).await?;
    let found = all(&stream).await?.concat();
    ensure!(
        found.iter().any(|r| *r.bytes == *b"after"),
        "appending stopped"
    );
    Ok(())
}

async fn racing_appends_lose_nothing(stream: Port) -> Result<()> {
    race(8, |n| {
        let stream = Arc::clone(&stream);
        async move {
            for k in 0..25 {
                let two = [record(&format!("{n}-{k}-a")), record(&format!("{n}-{k}-b"))];
                stream.append(&two).await?;
            }
            Ok(())
        }
    })
    .await?;
    let records = all(&stream).await?.concat();
    same("records", records.len(), 400)?;
    let distinct: HashSet<Box<[u8]>> = records.into_iter().map(|r| r.bytes).collect();
    same("distinct", distinct.len(), 400)
}
