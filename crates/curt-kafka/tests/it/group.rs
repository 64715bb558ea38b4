//! Who reads what.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use curt_core::ports::{ClickSink, ProducerId, SequencedRecord};
use curt_testkit::engines::kafka::{self, Cluster};
use curt_testkit::need;

use crate::world::{address, open, source, texts};

const OUTAGE: Duration = Duration::from_secs(4);
const BACK_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test]
async fn partitions_are_shared_and_come_back() {
    let cluster = need!(kafka::shared());
    let address = address(&cluster);
    let kafka = open(&address, 4);
    let (first, _) = source(&kafka);
    assert_eq!(first.assignment().await.unwrap(), [0, 1, 2, 3]);
    let (second, _) = source(&open(&address, 4));
    let (mut of_first, mut of_second) = (vec![0, 1, 2, 3], second.assignment().await.unwrap());
    while of_first.len() != 2 || of_second.len() != 2 {
        tokio::select! {
            () = first.assignment_changed() => of_first = first.assignment().await.unwrap(),
            () = second.assignment_changed() => of_second = second.assignment().await.unwrap(),
        }
    }
    let both: BTreeSet<u32> = of_first.iter().chain(&of_second).copied().collect();
    assert_eq!(both.len(), 4, "{of_first:?} {of_second:?}");
    drop(second);
    while of_first.len() != 4 {
        first.assignment_changed().await;
        of_first = first.assignment().await.unwrap();
    }
}

#[tokio::test]
async fn a_broker_that_is_killed_loses_and_doubles_nothing() {
    let mut cluster = need!(Cluster::start(1));
    let address = address(&cluster);
    let kafka = open(&address, 3);
    let (sink, (source, _)) = (kafka.sink().unwrap(), source(&kafka));
    let append = async |numbers: std::ops::Range<u64>| {
        let record = |number: u64| SequencedRecord {
            sequence: number << 17,
            bytes: number.to_string().into_bytes().into(),
        };
        let records: Vec<SequencedRecord> = numbers.map(record).collect();
        while let Err(error) = sink.append(ProducerId(3), &records).await {
            assert!(error.is_transient(), "{error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    append(0..100).await;
    cluster.broker_mut(0).unwrap().kill().unwrap();
    let restarted = tokio::task::spawn_blocking(move || {
        cluster.broker_mut(0).unwrap().restart().unwrap();
        cluster
    });
    append(100..200).await;
    let _cluster = restarted.await.unwrap();
    append(200..300).await;
    let mut found = Vec::new();
    for partition in source.assignment().await.unwrap() {
        found.extend(texts(&source, partition, 0).await);
    }
    let mut found: Vec<u64> = found.iter().map(|text| text.parse().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, (0..300).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_outage_fails_a_poll_and_not_one_for_each_attempt_to_connect() {
    let mut cluster = need!(Cluster::start(1));
    let kafka = open(&address(&cluster), 1);
    let (sink, (source, _)) = (kafka.sink().unwrap(), source(&kafka));
    let record = |sequence: u64| SequencedRecord {
        sequence,
        bytes: sequence.to_string().into_bytes().into(),
    };
    sink.append(ProducerId(4), &[record(0)]).await.unwrap();
    source.assignment().await.unwrap();
    assert_eq!(texts(&source, 0, 0).await, ["0"]);
    cluster.broker_mut(0).unwrap().kill().unwrap();
    // Long enough for many attempts.
    tokio::time::sleep(OUTAGE).await;
    cluster.broker_mut(0).unwrap().restart().unwrap();
    let deadline = Instant::now() + BACK_WITHIN;
    while let Err(error) = sink.append(ProducerId(4), &[record(1)]).await {
        assert!(Instant::now() < deadline, "{error}");
    }
    let mut failed = Vec::new();
    loop {
        assert!(Instant::now() < deadline, "nothing but {failed:?}");
        match source.poll(0, 1, 10, Duration::from_secs(1)).await {
            Ok(records) if records.is_empty() => {}
            Ok(records) => break assert_eq!(*records[0].bytes, *b"1"),
            Err(error) => failed.push(error),
        }
    }
    // One for what was before, and one for an attempt that has come to nothing meanwhile.
    assert!(failed.len() <= 2, "{failed:?}");
}
