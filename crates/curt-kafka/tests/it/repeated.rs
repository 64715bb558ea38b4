//! Records that come more than once, in whatever order.

use std::collections::BTreeSet;
use std::time::Duration;

use curt_core::ports::{ClickSink, ProducerId, SequencedRecord};
use curt_testkit::engines::kafka;
use curt_testkit::need;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::world::{Stranger, address, all, open, source, texts};

fn records(numbers: impl IntoIterator<Item = u64>) -> Vec<SequencedRecord> {
    let record = |sequence: u64| SequencedRecord {
        sequence,
        bytes: sequence.to_string().into_bytes().into(),
    };
    numbers.into_iter().map(record).collect()
}

#[tokio::test]
async fn a_forwarder_that_begins_again_adds_its_rest_over_all_partitions() {
    let cluster = need!(kafka::shared());
    let address = address(&cluster);
    let numbers = |range: std::ops::Range<u64>| range.map(|number| number << 17);
    // Each sink is a process of its own: what it sent before, it does not know.
    for range in [0..60, 40..90, 0..90, 80..120] {
        let sink = open(&address, 3).sink().unwrap();
        sink.append(ProducerId(9), &records(numbers(range)))
            .await
            .unwrap();
    }
    let kafka = open(&address, 3);
    let (source, metrics) = source(&kafka);
    let mut found = Vec::new();
    let assigned = source.assignment().await.unwrap();
    assert_eq!(assigned, [0, 1, 2]);
    for partition in assigned {
        let of_it = texts(&source, partition, 0).await;
        assert!(
            of_it.len() > 10,
            "partition {partition} has {}",
            of_it.len()
        );
        found.extend(of_it.iter().map(|text| text.parse::<u64>().unwrap()));
    }
    found.sort_unstable();
    assert_eq!(found, numbers(0..120).collect::<Vec<_>>());
    assert_eq!(metrics.repeated(), 60 + 50 + 90 + 40 - 120);
}

#[tokio::test]
async fn what_was_seen_is_known_to_whoever_reads_on_from_any_offset() {
    let cluster = need!(kafka::shared());
    let address = address(&cluster);
    let kafka = open(&address, 1);
    let sink = kafka.sink().unwrap();
    sink.append(ProducerId(1), &records(0..50)).await.unwrap();
    let (first, _) = source(&kafka);
    first.assignment().await.unwrap();
    let page = first.poll(0, 0, 30, Duration::ZERO).await.unwrap();
    let next = page.last().unwrap().offset + 1;
    first.commit(0, next).await.unwrap();
    // Sent again, from another process.
    let again = open(&address, 1).sink().unwrap();
    again.append(ProducerId(1), &records(10..60)).await.unwrap();
    let expected: Vec<String> = (30..60_u64).map(|number| number.to_string()).collect();
    assert_eq!(texts(&first, 0, next).await, expected);
    drop(first);
    // With the hint that was committed, and before it, and without.
    let (second, metrics) = source(&open(&address, 1));
    second.assignment().await.unwrap();
    assert_eq!(texts(&second, 0, next).await, expected);
    assert_eq!(metrics.repeated(), 40);
    assert_eq!(texts(&second, 0, next + 10).await, expected[10..]);
    assert_eq!(texts(&second, 0, 0).await.len(), 60);
    let elsewhere = format!("{address}-other");
    let (third, _) = source(&open(&elsewhere, 1));
    third.assignment().await.unwrap();
    assert_eq!(texts(&third, 0, next + 10).await, expected[10..]);
}

#[tokio::test]
async fn a_tenth_twice_and_a_tenth_out_of_order_is_exact() {
    let cluster = need!(kafka::shared());
    let address = address(&cluster);
    let kafka = open(&address, 1);
    let (source, metrics) = source(&kafka);
    source.assignment().await.unwrap();
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let count = 5_000_u64;
    let mut sent: Vec<u64> = (0..count).collect();
    for place in 1..sent.len() - 20 {
        if random.random_bool(0.1) {
            // The first stays: it says that all before it is durable.
            sent[place..place + 20].shuffle(&mut random);
        }
    }
    let twice: Vec<u64> = sent
        .iter()
        .copied()
        .filter(|_| random.random_bool(0.1))
        .collect();
    let stranger = Stranger::new(&address, 0);
    let send = |number: u64| {
        let before = number.checked_sub(1).map(|before| format!(".{before:x}"));
        let position = format!("7.{number:x}{}", before.unwrap_or_default());
        stranger.send(number.to_string().as_bytes(), Some(&position));
    };
    for number in &sent {
        send(*number);
        if twice.contains(number) {
            send(*number);
        }
    }
    twice.iter().for_each(|number| send(*number));
    stranger.flush();
    let found = texts(&source, 0, 0).await;
    let distinct: BTreeSet<u64> = found.iter().map(|text| text.parse().unwrap()).collect();
    assert_eq!(found.len() as u64, count);
    assert_eq!(distinct, (0..count).collect());
    assert_eq!(metrics.repeated(), 2 * twice.len() as u64);
}

#[tokio::test]
async fn a_topic_that_was_made_anew_is_refused() {
    let cluster = need!(kafka::shared());
    let kafka = open(&address(&cluster), 1);
    let sink = kafka.sink().unwrap();
    sink.append(ProducerId(1), &records(0..5)).await.unwrap();
    let (source, _) = source(&kafka);
    source.assignment().await.unwrap();
    assert_eq!(all(&source, 0, 5).await, []);
    let refused = source.poll(0, 6, 10, Duration::ZERO).await.unwrap_err();
    assert!(refused.detail.contains("made anew"), "{refused}");
}
