use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::DeadLetters;
use curt_core::{ErrorKind, PortError, PortResult, names};
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use tokio::time::Instant;

use super::metrics::KafkaMetrics;
use super::{ANSWER_MAX, BACKEND, Kafka, context, failure, milliseconds};

const OP: &str = "keep dead letters";
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Sends records that cannot be decoded to a topic of their own, as they are, with where they were and why in headers.
pub struct KafkaDeadLetters {
    topic: String,
    client: ThreadedProducer<Returned>,
    /// Letters that have not arrived and are not on their way.
    unsent: Arc<Mutex<Vec<Arc<Letter>>>>,
    metrics: KafkaMetrics,
}

struct Letter {
    partition: u32,
    offset: u64,
    reason: &'static str,
    record: Box<[u8]>,
}

impl KafkaDeadLetters {
    pub(super) fn open(kafka: &Kafka, metrics: KafkaMetrics) -> PortResult<Self> {
        let unsent = Arc::<Mutex<Vec<Arc<Letter>>>>::default();
        let mut config = kafka.config();
        config
            .set("acks", "all")
            .set("enable.idempotence", "true")
            .set("compression.type", "lz4")
            .set(
                "message.timeout.ms",
                milliseconds(kafka.settings.delivery_timeout),
            );
        let client = config
            .create_with_context(Returned(Arc::clone(&unsent)))
            .map_err(|error| failure::of(OP, error))?;
        Ok(Self {
            topic: kafka.route.dead_letters.clone(),
            client,
            unsent,
            metrics,
        })
    }

    fn send(&self, letter: Arc<Letter>) {
        let (partition, offset) = (letter.partition.to_string(), letter.offset.to_string());
        let mut headers = OwnedHeaders::new_with_capacity(3);
        for (key, value) in [
            ("reason", letter.reason),
            ("partition", &partition),
            ("offset", &offset),
        ] {
            headers = headers.insert(Header {
                key,
                value: Some(value),
            });
        }
        let record = BaseRecord::<(), [u8], _>::with_opaque_to(&self.topic, Arc::clone(&letter))
            .payload(&letter.record)
            .headers(headers);
        if self.client.send(record).is_err() {
            lock(&self.unsent).push(letter);
        }
    }
}

#[async_trait]
impl DeadLetters for KafkaDeadLetters {
    fn put(&self, partition: u32, offset: u64, reason: &'static str, record: &[u8]) {
        self.metrics.note_dead_letter(reason);
        tracing::debug!(
            event = names::event::CLICK_DEAD_LETTERED,
            partition,
            offset,
            reason,
            "record cannot be read"
        );
        self.send(Arc::new(Letter {
            partition,
            offset,
            reason,
            record: record.into(),
        }));
    }

    async fn sync(&self) -> PortResult<()> {
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            // In this order: one that fails is put back before it counts as arrived or not.
            let in_flight = self.client.in_flight_count();
            let unsent = std::mem::take(&mut *lock(&self.unsent));
            if unsent.is_empty() && in_flight == 0 {
                return Ok(());
            }
            for letter in unsent {
                self.send(letter);
            }
            if Instant::now() >= deadline {
                let detail = format!("topic {:?} takes none", self.topic);
                return Err(PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Puts letters back that did not arrive.
struct Returned(Arc<Mutex<Vec<Arc<Letter>>>>);

impl ClientContext for Returned {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        context::note_line(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        context::note_error(&error, reason);
    }
}

impl ProducerContext for Returned {
    type DeliveryOpaque = Arc<Letter>;

    fn delivery(&self, result: &DeliveryResult<'_>, letter: Arc<Letter>) {
        if result.is_err() {
            lock(&self.0).push(letter);
        }
    }
}

fn lock(letters: &Mutex<Vec<Arc<Letter>>>) -> std::sync::MutexGuard<'_, Vec<Arc<Letter>>> {
    letters.lock().unwrap_or_else(PoisonError::into_inner)
}
