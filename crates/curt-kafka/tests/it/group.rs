//! Who reads what.

use std::collections::BTreeSet;
use std::time::Duration;

use curt_core::ports::{ClickSink, ProducerId, SequencedRecord};
use curt_testkit::engines::kafka::{self, Cluster};
use curt_testkit::need;

use crate::world::{address, open, source, texts};

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
