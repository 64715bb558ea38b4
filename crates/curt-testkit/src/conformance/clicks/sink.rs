//! Clauses of [`ClickSink`], whose records a [`ClickSource`] gives back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use curt_core::ports::{ClickSink, ClickSource, ProducerId, SequencedRecord};

use crate::conformance::{race, same};

/// Both ends of one stream.
pub struct Stream {
    pub sink: Arc<dyn ClickSink>,
    pub source: Arc<dyn ClickSource>,
}

/// Records that name their producer and number.
fn records(producer: u64, numbers: &[u64]) -> Vec<SequencedRecord> {
    let record = |sequence: &u64| SequencedRecord {
        sequence: *sequence,
        bytes: format!("{producer}:{sequence}").into_bytes().into(),
    };
    numbers.iter().map(record).collect()
}

impl Stream {
    async fn append(&self, producer: u64, numbers: &[u64]) -> Result<()> {
        let records = records(producer, numbers);
        Ok(self.sink.append(ProducerId(producer), &records).await?)
    }

    /// The numbers of a producer's records, in the order of the stream.
    async fn numbers(&self, producer: u64) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for partition in self.source.assignment().await? {
            let records = self.source.poll(partition, 0, usize::MAX, Duration::ZERO);
            for record in records.await? {
                let text = std::str::from_utf8(&record.bytes)?;
                let own = text.strip_prefix(&format!("{producer}:"));
                numbers.extend(own.map(str::parse::<u64>).transpose()?);
            }
        }
        Ok(numbers)
    }
}

pub async fn records_keep_their_order(stream: Stream) -> Result<()> {
    stream.append(1, &[]).await?;
    same("nothing", stream.numbers(1).await?, vec![])?;
    stream.append(1, &[0, 1, 2]).await?;
    stream.append(1, &[3]).await?;
    same("in order", stream.numbers(1).await?, vec![0, 1, 2, 3])
}

pub async fn called_twice_nothing_changes(stream: Stream) -> Result<()> {
    for _ in 0..3 {
        stream.append(1, &[5, 6]).await?;
    }
    same("once", stream.numbers(1).await?, vec![5, 6])?;
    stream.append(1, &[2]).await?;
    same("an older number", stream.numbers(1).await?, vec![5, 6])
}

pub async fn a_batch_that_overlaps_adds_its_rest(stream: Stream) -> Result<()> {
    stream.append(1, &[0, 1]).await?;
    stream.append(1, &[1, 2, 9]).await?;
    same("gaps are fine", stream.numbers(1).await?, vec![0, 1, 2, 9])
}

pub async fn producers_are_apart(stream: Stream) -> Result<()> {
    stream.append(1, &[7]).await?;
    stream.append(2, &[3]).await?;
    stream.append(u64::MAX, &[0, u64::MAX]).await?;
    same("one", stream.numbers(1).await?, vec![7])?;
    same("another", stream.numbers(2).await?, vec![3])?;
    let last = stream.numbers(u64::MAX).await?;
    same("the last", last, vec![0, u64::MAX])
}

pub async fn racing_appends_lose_and_double_nothing(stream: Stream) -> Result<()> {
    race(8, |n| {
        let sink = Arc::clone(&stream.sink);
        // Two tasks are one producer that sends everything twice.
        let producer = n as u64 / 2;
        async move {
            for sequence in 0..25 {
                let records = records(producer, &[2 * sequence, 2 * sequence + 1]);
                sink.append(ProducerId(producer), &records).await?;
            }
            Ok(())
        }
    })
    .await?;
    for producer in 0..4 {
        let numbers = stream.numbers(producer).await?;
        same("each once", numbers, (0..50).collect())?;
    }
    Ok(())
}
