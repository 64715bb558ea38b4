use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{ClickSink, ProducerId, SequencedRecord};
use curt_core::{PortError, PortResult};
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use tokio::sync::Notify;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

use super::position::{HEADER, Position};
use super::{Kafka, context, failure, milliseconds};

const OP: &str = "append clicks";
/// Records whose numbers have the rest in common go to one partition: enough to be sent together.
const BLOCK_BITS: u32 = 18;
/// Between two looks whether the client has room for another record.
const ROOM_EVERY: Duration = Duration::from_millis(5);

/// Appends the records of this process's producers.
pub struct KafkaSink {
    kafka: Arc<Kafka>,
    /// Made anew after an error that it cannot live on with.
    client: Mutex<Arc<Client>>,
    /// What each producer has appended in this process.
    producers: Mutex<HashMap<ProducerId, Arc<tokio::sync::Mutex<Appended>>>>,
}

type Client = ThreadedProducer<Deliveries>;

#[derive(Clone, Debug, Default)]
struct Appended {
    last: Option<u64>,
    /// By partition, the number of the last record there.
    last_in: HashMap<i32, u64>,
}

impl KafkaSink {
    pub(super) fn open(kafka: Arc<Kafka>) -> PortResult<Self> {
        Ok(Self {
            client: Mutex::new(connect(&kafka)?),
            kafka,
            producers: Mutex::default(),
        })
    }

    fn appended(&self, producer: ProducerId) -> Arc<tokio::sync::Mutex<Appended>> {
        let mut producers = self
            .producers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(producers.entry(producer).or_default())
    }

    fn client(&self) -> PortResult<Arc<Client>> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((code, reason)) = client.client().fatal_error() {
            tracing::debug!(%code, reason, "kafka producer made anew");
            *client = connect(&self.kafka)?;
        }
        Ok(Arc::clone(&client))
    }

    async fn send(
        &self,
        client: &Client,
        position: &Position,
        partition: i32,
        record: &SequencedRecord,
        batch: &Arc<Batch>,
    ) -> PortResult<()> {
        let mut text = String::with_capacity(52);
        position.encode(&mut text);
        let headers = OwnedHeaders::new_with_capacity(1).insert(Header {
            key: HEADER,
            value: Some(text.as_str()),
        });
        let mut unsent =
            BaseRecord::<(), [u8], _>::with_opaque_to(&self.kafka.route.topic, Arc::clone(batch))
                .partition(partition)
                .payload(&record.bytes)
                .headers(headers);
        let deadline = Instant::now() + self.kafka.settings.delivery_timeout;
        loop {
            match client.send(unsent) {
                Ok(()) => return Ok(()),
                Err((error, record))
                    if error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull)
                        && Instant::now() < deadline =>
                {
                    unsent = record;
                    tokio::time::sleep(ROOM_EVERY).await;
                }
                Err((error, _)) => return Err(failure::of(OP, error)),
            }
        }
    }
}

#[async_trait]
impl ClickSink for KafkaSink {
    /// Records of one producer are in order within each partition. A failure may leave some of them appended: they are
    /// left out by sources when they come again.
    async fn append(&self, producer: ProducerId, records: &[SequencedRecord]) -> PortResult<()> {
        let appended = self.appended(producer);
        let mut appended = appended.lock().await;
        let is_new =
            |record: &&SequencedRecord| appended.last.is_none_or(|last| record.sequence > last);
        let new: Vec<&SequencedRecord> = records.iter().filter(is_new).collect();
        let Some(newest) = new.last() else {
            return Ok(());
        };
        let partitions = self.kafka.partitions().await?;
        let client = self.client()?;
        let batch = Arc::new(Batch::new(new.len()));
        let mut next = appended.clone();
        next.last = Some(newest.sequence);
        for record in &new {
            let partition = choose_partition(producer, record.sequence, partitions);
            let position = Position {
                producer,
                sequence: record.sequence,
                previous: next.last_in.insert(partition, record.sequence),
            };
            self.send(&client, &position, partition, record, &batch)
                .await?;
        }
        // Longer than the library waits for each.
        let wait = self.kafka.settings.delivery_timeout + super::ANSWER_MAX;
        match tokio::time::timeout(wait, batch.delivered()).await {
            Ok(delivered) => delivered?,
            Err(_) => return Err(failure::timeout(OP, format!("no answer in {wait:?}"))),
        }
        *appended = next;
        Ok(())
    }
}

/// Blocks of records take turns over the partitions: chosen by a hash, some would get half as much again as others. Each
/// producer begins elsewhere, so that many of them together do not follow each other around.
fn choose_partition(producer: ProducerId, sequence: u64, partitions: u32) -> i32 {
    let partitions = u64::from(partitions.max(1));
    let first = xxh3_64(&producer.0.to_le_bytes()) % partitions;
    let chosen = (first + (sequence >> BLOCK_BITS) % partitions) % partitions;
    i32::try_from(chosen).unwrap_or(i32::MAX)
}

fn connect(kafka: &Kafka) -> PortResult<Arc<Client>> {
    let mut config = kafka.config();
    config
        .set("acks", "all")
        .set("enable.idempotence", "true")
        .set("compression.type", "lz4")
        .set("linger.ms", "5")
        .set("batch.size", "262144")
        .set("queue.buffering.max.kbytes", "32768")
        .set(
            "message.timeout.ms",
            milliseconds(kafka.settings.delivery_timeout),
        );
    let client = config.create_with_context(Deliveries);
    client.map(Arc::new).map_err(|error| failure::of(OP, error))
}

/// Records that are waited for together.
struct Batch {
    missing: AtomicUsize,
    failed: Mutex<Option<PortError>>,
    is_complete: Notify,
}

impl Batch {
    fn new(records: usize) -> Self {
        Self {
            missing: AtomicUsize::new(records),
            failed: Mutex::default(),
            is_complete: Notify::new(),
        }
    }

    fn note(&self, failed: Option<&KafkaError>) {
        if let Some(error) = failed {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.get_or_insert_with(|| failure::of(OP, error.clone()));
        }
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.is_complete.notify_one();
        }
    }

    async fn delivered(&self) -> PortResult<()> {
        if self.missing.load(Ordering::Acquire) > 0 {
            self.is_complete.notified().await;
        }
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take().map_or(Ok(()), Err)
    }
}

struct Deliveries;

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        context::note_line(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        context::note_error(&error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Arc<Batch>;

    fn delivery(&self, result: &DeliveryResult<'_>, batch: Arc<Batch>) {
        batch.note(result.as_ref().err().map(|(error, _)| error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_fills_all_partitions_alike_and_a_record_always_goes_to_the_same() {
        let mut counts = [0_u32; 12];
        // Few blocks, and not from a first one on.
        for number in 1_001..1_061_u64 {
            let sequence = number << BLOCK_BITS;
            let partition = choose_partition(ProducerId(7), sequence, 12);
            assert_eq!(choose_partition(ProducerId(7), sequence + 5, 12), partition);
            counts[usize::try_from(partition).unwrap()] += 1;
        }
        assert_eq!(counts, [5; 12]);
    }

    #[test]
    fn producers_begin_at_different_partitions() {
        let first = |producer| choose_partition(ProducerId(producer), 0, 12);
        let firsts: std::collections::BTreeSet<i32> = (0..200).map(first).collect();
        assert_eq!(firsts, (0..12).collect());
    }
}
