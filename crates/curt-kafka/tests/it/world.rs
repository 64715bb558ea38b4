use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{ClickSource, ClickWriter, SplitRecord, StreamRecord};
use curt_kafka::{Kafka, KafkaMetrics, KafkaSettings};
use curt_testkit::engines::kafka::Cluster;
use curt_testkit::engines::unique;
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

/// An address of a topic of its own.
pub(crate) fn address(cluster: &Cluster) -> String {
    let name = unique("clicks");
    format!("kafka://{}/{name}?group={name}", cluster.addresses())
}

pub(crate) fn open(address: &str, partitions: u32) -> Arc<Kafka> {
    let settings = KafkaSettings {
        partitions,
        session_timeout: Duration::from_secs(6),
        fetch_wait: Duration::from_millis(10),
        ..KafkaSettings::default()
    };
    Kafka::open(address, settings).unwrap()
}

/// A client that knows nothing of curt, for one partition.
pub(crate) struct Stranger {
    producer: BaseProducer,
    topic: String,
    partition: i32,
}

impl Stranger {
    pub(crate) fn new(address: &str, partition: i32) -> Self {
        let rest = address.strip_prefix("kafka://").unwrap();
        let (hosts, topic) = rest.split_once('/').unwrap();
        let producer = ClientConfig::new()
            .set("bootstrap.servers", hosts)
            .set("linger.ms", "0")
            .create();
        Self {
            producer: producer.unwrap(),
            topic: topic.split('?').next().unwrap().into(),
            partition,
        }
    }

    pub(crate) fn send(&self, bytes: &[u8], position: Option<&str>) {
        let mut record = BaseRecord::<(), [u8]>::to(&self.topic)
            .partition(self.partition)
            .payload(bytes);
        if let Some(position) = position {
            record = record.headers(OwnedHeaders::new().insert(Header {
                key: "curt-position",
                value: Some(position),
            }));
        }
        self.producer
            .send(record)
            .map_err(|(error, _)| error)
            .unwrap();
    }

    pub(crate) fn flush(&self) {
        // Its own flush looks ten times a second.
        while self.producer.in_flight_count() > 0 {
            self.producer.poll(Duration::from_millis(1));
        }
    }
}

impl std::fmt::Debug for Stranger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stranger")
    }
}

impl ClickWriter for Stranger {
    fn write(&mut self, record: SplitRecord<'_>) -> bool {
        let mut bytes = Vec::new();
        record.join(&mut bytes);
        self.send(&bytes, None);
        self.flush();
        true
    }
}

pub(crate) fn source(kafka: &Arc<Kafka>) -> (Arc<dyn ClickSource>, KafkaMetrics) {
    let metrics = KafkaMetrics::default();
    (kafka.source(metrics.clone()), metrics)
}

/// Everything from `from` on, as texts.
pub(crate) async fn texts(source: &Arc<dyn ClickSource>, partition: u32, from: u64) -> Vec<String> {
    let records = all(source, partition, from).await;
    let text = |record: &StreamRecord| String::from_utf8_lossy(&record.bytes).into_owned();
    records.iter().map(text).collect()
}

pub(crate) async fn all(
    source: &Arc<dyn ClickSource>,
    partition: u32,
    from: u64,
) -> Vec<StreamRecord> {
    let polled = source.poll(partition, from, usize::MAX, Duration::ZERO);
    polled.await.unwrap()
}
