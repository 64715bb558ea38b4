use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use curt_core::clock::ManualClock;
use curt_core::{ErrorKind, PortError};
use curt_memory::{MemoryClickStream, MemoryDeadLetters};
use curt_testkit::sample::NOW;

use super::*;
use crate::record::{ClickRecord, Method, Outcome, UtmText, decode_any, encode};

/// A stream that refuses its first appends, or loses the answers to them.
struct Unsteady {
    stream: MemoryClickStream,
    failures: AtomicU32,
    is_answer_lost: bool,
}

#[async_trait]
impl ClickSink for Unsteady {
    async fn append(&self, producer: ProducerId, records: &[SequencedRecord]) -> PortResult<()> {
        let left = self.failures.load(Ordering::Relaxed);
        if left == 0 || self.is_answer_lost {
            self.stream.append(producer, records).await?;
        }
        if left > 0 {
            self.failures.store(left - 1, Ordering::Relaxed);
            return Err(PortError::new(ErrorKind::Timeout, "test", "append", "away"));
        }
        Ok(())
    }
}

fn click(key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let click = ClickRecord {
        at: NOW,
        domain: curt_core::DomainId(0),
        key,
        generation: 1,
        outcome: Outcome::Redirected,
        method: Method::Get,
        prefetch: false,
        address: [203, 0, 113, 9].into(),
        agent: b"Agent",
        referrer: b"",
        language: b"",
        utm: UtmText::default(),
        attribution: curt_core::Attribution::default(),
    };
    encode(&click, &mut bytes);
    bytes
}

struct World {
    spool: Arc<MemoryClickStream>,
    dead_letters: Arc<MemoryDeadLetters>,
    sink: Arc<Unsteady>,
}

impl World {
    fn new(failures: u32, is_answer_lost: bool) -> Self {
        Self {
            spool: Arc::new(MemoryClickStream::new(2, 10_000)),
            dead_letters: Arc::default(),
            sink: Arc::new(Unsteady {
                stream: MemoryClickStream::new(1, 10_000),
                failures: failures.into(),
                is_answer_lost,
            }),
        }
    }

    fn forwarder(&self) -> Arc<Forwarder> {
        let ports = ForwardPorts {
            source: self.spool.clone(),
            dead_letters: self.dead_letters.clone(),
            sink: self.sink.clone(),
            clock: Arc::new(ManualClock::at(NOW)),
        };
        let settings = ForwardSettings {
            batch: 7,
            retry: Duration::from_millis(1),
            ..ForwardSettings::default()
        };
        Forwarder::new(ports, settings, ForwardMetrics::default())
    }

    async fn capture(&self, producer: u64, records: Vec<Vec<u8>>) {
        let numbered = (0..).zip(records).map(|(sequence, bytes)| SequencedRecord {
            sequence,
            bytes: bytes.into(),
        });
        let records: Vec<SequencedRecord> = numbered.collect();
        self.spool
            .append(ProducerId(producer), &records)
            .await
            .unwrap();
    }

    /// The keys that arrived, sorted.
    async fn arrived(&self) -> Vec<String> {
        let polled = self.sink.stream.poll(0, 0, usize::MAX, Duration::ZERO);
        let mut buffer = Vec::new();
        let mut keys: Vec<String> = Vec::new();
        for record in polled.await.unwrap() {
            assert!(record.bytes.starts_with(b"{"));
            let click = decode_any(&record.bytes, &mut buffer).unwrap();
            assert_eq!(
                click.address.to_string(),
                "203.0.113.0",
                "it left the server"
            );
            keys.push(String::from_utf8_lossy(click.key).into());
        }
        keys.sort();
        keys
    }

    async fn kept(&self, partition: u32) -> usize {
        let polled = self.spool.poll(partition, 0, usize::MAX, Duration::ZERO);
        polled.await.unwrap().len()
    }
}

#[tokio::test]
async fn clicks_of_all_partitions_arrive_and_leave_the_spool() {
    let world = World::new(0, false);
    let mut records: Vec<Vec<u8>> = (10..30)
        .map(|n| click(format!("k{n}").as_bytes()))
        .collect();
    records.insert(3, b"\xffnonsense".to_vec());
    world.capture(0, records).await;
    world.capture(1, vec![click(b"k30")]).await;
    assert_eq!(world.forwarder().drain().await.unwrap(), 22);
    let expected: Vec<String> = (10..=30).map(|n| format!("k{n}")).collect();
    assert_eq!(world.arrived().await, expected);
    assert_eq!((world.kept(0).await, world.kept(1).await), (0, 0));
    assert_eq!(world.dead_letters.letters(), [(0, 3, "version")]);
    assert_eq!(world.forwarder().drain().await.unwrap(), 0, "called twice");
}

#[tokio::test]
async fn a_stream_that_is_away_costs_nothing_and_a_lost_answer_sends_the_same_numbers() {
    for is_answer_lost in [false, true] {
        let world = World::new(5, is_answer_lost);
        let records = (10..40).map(|n| click(format!("k{n}").as_bytes()));
        world.capture(0, records.collect()).await;
        let forwarder = world.forwarder();
        assert!(forwarder.drain().await.is_err());
        assert_eq!(
            world.kept(0).await,
            30,
            "nothing leaves before it has arrived"
        );
        let stop = CancellationToken::new();
        let running = tokio::spawn(Arc::clone(&forwarder).run(stop.clone()));
        while world.kept(0).await > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
        running.await.unwrap();
        assert_eq!(forwarder.state().stopped(), None);
        let expected: Vec<String> = (10..40).map(|n| format!("k{n}")).collect();
        assert_eq!(world.arrived().await, expected);
    }
}
