//! Clauses of [`ClickSource`](curt_core::ports::ClickSource).

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use curt_core::ports::{ClickSource, ClickWriter, SplitRecord, StreamRecord};

use crate::conformance::same;

/// An empty stream and the writers of some of its partitions, from the first on.
pub struct Written {
    pub source: Arc<dyn ClickSource>,
    pub writers: Vec<Box<dyn ClickWriter>>,
}

impl Written {
    /// Writes numbered records to each partition.
    fn write(&mut self, count: usize) -> Result<()> {
        for writer in &mut self.writers {
            for n in 0..count {
                ensure!(write_whole(writer, format!("r{n}").as_bytes()), "no room");
            }
        }
        Ok(())
    }

    /// Polls what is there, without a wait.
    async fn poll(&self, partition: u32, from: u64, limit: usize) -> Result<Vec<StreamRecord>> {
        Ok(self
            .source
            .poll(partition, from, limit, Duration::ZERO)
            .await?)
    }

    /// Everything that is in the stream, by partition.
    async fn all(&self) -> Result<Vec<(u32, Vec<StreamRecord>)>> {
        let mut all = Vec::new();
        for partition in self.source.assignment().await? {
            let mut records: Vec<StreamRecord> = Vec::new();
            loop {
                let from = records.last().map_or(0, |last| last.offset + 1);
                let page = self.poll(partition, from, 100).await?;
                if page.is_empty() {
                    break;
                }
                records.extend(page);
            }
            all.push((partition, records));
        }
        Ok(all)
    }
}

fn write_whole(writer: &mut Box<dyn ClickWriter>, record: &[u8]) -> bool {
    writer.write(SplitRecord::whole(record))
}

pub async fn a_new_stream_is_empty(stream: Written) -> Result<()> {
    let assigned = stream.source.assignment().await?;
    ensure!(!assigned.is_empty(), "no partition");
    let distinct: HashSet<u32> = assigned.iter().copied().collect();
    same("distinct partitions", distinct.len(), assigned.len())?;
    for partition in assigned {
        same("polled", stream.poll(partition, 0, 10).await?, vec![])?;
    }
    Ok(())
}

pub async fn records_come_back_whole_and_in_order(mut stream: Written) -> Result<()> {
    let long = [b'x'; 10_000];
    let records: [&[u8]; 6] = [
        b"one",
        &[0, 255, 10, 13, 0],
        b"{\"shortCode\":\"a\"}\n",
        &long,
        b"",
        b"one",
    ];
    for writer in &mut stream.writers {
        for record in records {
            ensure!(write_whole(writer, record), "no room");
        }
    }
    for (_, got) in stream.all().await?.iter().take(stream.writers.len()) {
        ensure!(
            got.is_sorted_by(|a, b| a.offset < b.offset),
            "offsets do not rise"
        );
        let bytes: Vec<&[u8]> = got.iter().map(|record| &*record.bytes).collect();
        same("records", bytes, records.to_vec())?;
    }
    Ok(())
}

pub async fn shared_texts_come_back_with_their_records(mut stream: Written) -> Result<()> {
    let (agent, referrer) = ([b'a'; 500], "https://b.example/".repeat(20));
    let number = |n: usize| format!("r{n}").into_bytes();
    // Each alone and together with others, once and often.
    let texts = |n: usize| -> [&[u8]; 5] {
        let agent = if n.is_multiple_of(3) {
            &agent[n % 7..]
        } else {
            &agent
        };
        let referrer = if n.is_multiple_of(2) {
            referrer.as_bytes()
        } else {
            b""
        };
        [agent, referrer, b"de", b"", &b"utm_source=s"[n % 5..]]
    };
    let mut expected = Vec::new();
    for n in 0..200 {
        let own = number(n);
        let record = SplitRecord {
            own: &own,
            shared: texts(n),
        };
        for writer in &mut stream.writers {
            ensure!(writer.write(record), "no room");
        }
        let mut joined = Vec::new();
        record.join(&mut joined);
        expected.push(joined);
    }
    let all = stream.all().await?;
    for (partition, records) in all.iter().take(stream.writers.len()) {
        let bytes: Vec<&[u8]> = records.iter().map(|record| &*record.bytes).collect();
        same(
            "records",
            bytes,
            expected.iter().map(Vec::as_slice).collect(),
        )?;
        // What later records share with those that are gone is still there.
        stream
            .source
            .commit(*partition, records[100].offset)
            .await?;
        let kept = stream.poll(*partition, records[100].offset, 200).await?;
        same("what is left", kept.as_slice(), &records[100..])?;
    }
    Ok(())
}

pub async fn a_poll_may_be_repeated_and_resumed(mut stream: Written) -> Result<()> {
    stream.write(20)?;
    for (partition, records) in stream.all().await? {
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

pub async fn a_poll_waits_for_the_first_record(mut stream: Written) -> Result<()> {
    let short = Duration::from_millis(20);
    let nothing = stream.source.poll(0, 0, 9, short).await?;
    same("nothing came", nothing, vec![])?;
    let mut writer = stream.writers.remove(0);
    let writing = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        write_whole(&mut writer, b"late")
    });
    let long = Duration::from_secs(60);
    let came = stream.source.poll(0, 0, 9, long).await?;
    same("records", came.len(), 1)?;
    ensure!(writing.join().is_ok_and(|written| written), "no room");
    Ok(())
}

pub async fn a_commit_never_goes_back(mut stream: Written) -> Result<()> {
    stream.write(30)?;
    for (partition, records) in stream.all().await? {
        let Some(middle) = records.get(records.len() / 2) else {
            continue;
        };
        for offset in [middle.offset, records[0].offset, middle.offset] {
            stream.source.commit(partition, offset).await?;
        }
        let kept = stream.poll(partition, middle.offset, 100).await?;
        same("what is left", kept, records[records.len() / 2..].to_vec())?;
        // What was committed may be gone or not; what comes is in order and reaches the end.
        let from_start = stream.poll(partition, 0, 100).await?;
        ensure!(
            records.ends_with(&from_start),
            "a poll from the start has a gap"
        );
    }
    ensure!(write_whole(&mut stream.writers[0], b"after"), "no room");
    let found = stream.all().await?;
    let is_there = |record: &StreamRecord| *record.bytes == *b"after";
    ensure!(found[0].1.iter().any(is_there), "writing stopped");
    Ok(())
}

pub async fn racing_writers_lose_nothing(mut stream: Written) -> Result<()> {
    let writers = std::mem::take(&mut stream.writers);
    let expected = writers.len() * 200;
    let threads = writers.into_iter().enumerate().map(|(n, mut writer)| {
        thread::spawn(move || {
            (0..200).all(|k| write_whole(&mut writer, format!("{n}-{k}").as_bytes()))
        })
    });
    let threads: Vec<_> = threads.collect();
    for thread in threads {
        ensure!(thread.join().is_ok_and(|written| written), "no room");
    }
    let all = stream.all().await?;
    let distinct: HashSet<&[u8]> = all
        .iter()
        .flat_map(|(_, records)| records.iter().map(|record| &*record.bytes))
        .collect();
    same("records", distinct.len(), expected)
}
