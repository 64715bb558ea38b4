//! One partition, read from any offset.

use std::sync::Arc;
use std::time::Duration;

use curt_adapter_kit::off_runtime;
use curt_core::ports::StreamRecord;
use curt_core::{ErrorKind, PortError, PortResult, names};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::producer::Producer as _;
use rdkafka::{Offset, TopicPartitionList};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::context::Quiet;
use super::metrics::KafkaMetrics;
use super::position::{HEADER, Position};
use super::seen::Seen;
use super::{ANSWER_MAX, BACKEND, Kafka, failure, milliseconds};

const OP: &str = "poll clicks";

pub(super) struct Reader {
    kafka: Arc<Kafka>,
    partition: i32,
    consumer: Arc<BaseConsumer<Quiet>>,
    /// Told when there are records after there were none.
    arrived: Arc<Notify>,
    place: Option<Place>,
    /// What had been seen at an offset that was committed.
    checkpoint: Option<Checkpoint>,
    metrics: KafkaMetrics,
}

/// Where reading stands.
struct Place {
    /// The offset that goes on without a gap.
    expected: u64,
    /// Up to where the partition was read.
    next: u64,
    seen: Seen,
    /// Whether records were taken and a wait may have ended before they were given.
    is_cut: bool,
}

#[derive(Clone)]
struct Checkpoint {
    offset: u64,
    seen: Seen,
}

impl Reader {
    pub(super) fn open(
        kafka: &Arc<Kafka>,
        partition: u32,
        metrics: KafkaMetrics,
    ) -> PortResult<Self> {
        let mut config = kafka.config();
        config
            // For hints that were committed; this client is no member.
            .set("group.id", &kafka.route.group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            // Only behind a look at where the partition begins and ends.
            .set("auto.offset.reset", "earliest")
            .set(
                "fetch.wait.max.ms",
                milliseconds(kafka.settings.fetch_wait),
            )
            .set("queued.max.messages.kbytes", "8192")
            .set("queued.min.messages", "20000");
        let mut consumer: BaseConsumer<Quiet> = config
            .create_with_context(Quiet::default())
            .map_err(|error| failure::of(OP, error))?;
        let arrived = Arc::<Notify>::default();
        let told = Arc::clone(&arrived);
        consumer.set_nonempty_callback(move || told.notify_one());
        Ok(Self {
            kafka: Arc::clone(kafka),
            partition: i32::try_from(partition).unwrap_or(i32::MAX),
            consumer: Arc::new(consumer),
            arrived,
            place: None,
            checkpoint: None,
            metrics,
        })
    }

    /// As [`ClickSource::poll`](curt_core::ports::ClickSource::poll). Without a wait it reads up to what was there when it
    /// was called.
    pub(super) async fn poll(
        &mut self,
        from: u64,
        limit: usize,
        wait: Duration,
    ) -> PortResult<Vec<StreamRecord>> {
        let goes_on = |place: &Place| place.expected == from && !place.is_cut;
        if !self.place.as_ref().is_some_and(goes_on) {
            self.place = None;
            self.place = Some(self.seek(from).await?);
        }
        let mut records = Vec::new();
        let deadline = Instant::now() + if wait.is_zero() { ANSWER_MAX } else { wait };
        let mut end = None;
        loop {
            self.drain(from, limit, &mut records)?;
            let is_enough = records.len() >= limit || (!records.is_empty() && !wait.is_zero());
            if is_enough {
                break;
            }
            if wait.is_zero() {
                if end.is_none() {
                    end = Some(self.bounds().await?.1);
                    continue;
                }
                let next = self.place.as_ref().map_or(0, |place| place.next);
                if end.is_some_and(|end| next >= end) {
                    break;
                }
            }
            if let Some(place) = &mut self.place {
                place.is_cut = !records.is_empty();
            }
            let is_late = timeout_at(deadline, self.arrived.notified()).await.is_err();
            match is_late {
                true if wait.is_zero() && records.is_empty() => {
                    let detail = format!("no records of partition {} in time", self.partition);
                    return Err(failure::timeout(OP, detail));
                }
                true => break,
                false => {}
            }
        }
        if let Some(place) = &mut self.place {
            place.is_cut = false;
            place.expected = records
                .last()
                .map_or(from, |last| last.offset.saturating_add(1));
        }
        Ok(records)
    }

    /// Takes what has arrived. Records before `from` are noted and not given.
    fn drain(
        &mut self,
        from: u64,
        limit: usize,
        records: &mut Vec<StreamRecord>,
    ) -> PortResult<()> {
        let Some(place) = &mut self.place else {
            return Ok(());
        };
        let mut failed = None;
        while records.len() < limit {
            let message = match self.consumer.poll(Duration::ZERO) {
                None => break,
                Some(Ok(message)) => message,
                Some(Err(KafkaError::PartitionEOF(_))) => continue,
                // The library tells of every connection that it tries in vain, and goes on by itself: an error that
                // records follow is over, and an outage has left many, of which the caller would wait for each.
                Some(Err(error)) => {
                    failed = Some(error);
                    continue;
                }
            };
            failed = None;
            let offset = u64::try_from(message.offset()).unwrap_or_default();
            if offset < place.next {
                continue;
            }
            place.next = offset.saturating_add(1);
            let is_new = position(&message).is_none_or(|position| place.seen.note(&position));
            if offset < from {
                continue;
            }
            if !is_new {
                self.metrics.repeated.inc();
                continue;
            }
            let bytes = message.payload().unwrap_or_default();
            records.push(StreamRecord {
                offset,
                bytes: bytes.into(),
                stored_bytes: 0,
            });
        }
        match failed {
            // What was taken already must not be lost; the error comes again if it lasts.
            Some(error) if records.is_empty() => Err(failure::of(OP, error)),
            _ => Ok(()),
        }
    }

    /// Begins to read so that records from `from` on are told from those that came before.
    async fn seek(&mut self, from: u64) -> PortResult<Place> {
        let (begin, end) = self.bounds().await?;
        if from > end {
            let detail = format!(
                "partition {} ends at {end}, and {from} was counted: the topic was made anew; name another group in \
                 store.stream (?group=NAME) to count it from its start",
                self.partition
            );
            return Err(PortError::new(ErrorKind::Corrupt, BACKEND, OP, detail));
        }
        if from > 0 && from < begin {
            self.metrics.lost.inc_by(begin - from);
            tracing::error!(
                event = names::event::STREAM_LOST,
                partition = self.partition,
                lost = begin - from,
                "retention removed uncounted clicks"
            );
        }
        let is_before = |checkpoint: &Checkpoint| checkpoint.offset <= from;
        let checkpoint = match self.checkpoint.clone().filter(is_before) {
            Some(checkpoint) => checkpoint,
            None => self
                .committed()
                .await?
                .filter(is_before)
                .unwrap_or(Checkpoint {
                    offset: 0,
                    seen: Seen::default(),
                }),
        };
        let next = checkpoint.offset.max(begin);
        let mut list = TopicPartitionList::new();
        let offset = Offset::Offset(i64::try_from(next).unwrap_or(i64::MAX));
        list.add_partition_offset(&self.kafka.route.topic, self.partition, offset)
            .and_then(|()| self.consumer.assign(&list))
            .map_err(|error| failure::of(OP, error))?;
        self.checkpoint = Some(checkpoint.clone());
        Ok(Place {
            expected: from,
            next,
            seen: checkpoint.seen,
            is_cut: false,
        })
    }

    /// The offset of the oldest record, and that after the newest.
    async fn bounds(&self) -> PortResult<(u64, u64)> {
        let (kafka, partition) = (Arc::clone(&self.kafka), self.partition);
        off_runtime(BACKEND, OP, move || {
            let questions = kafka.questions()?;
            let client = questions.client();
            let bounds = client.fetch_watermarks(&kafka.route.topic, partition, ANSWER_MAX);
            let (begin, end) =
                bounds.map_err(|error| client.context().explain(failure::of(OP, error)))?;
            client.context().note_answer();
            Ok((
                u64::try_from(begin).unwrap_or(0),
                u64::try_from(end).unwrap_or(0),
            ))
        })
        .await
    }

    /// The hint that was left by whoever read the partition before.
    async fn committed(&self) -> PortResult<Option<Checkpoint>> {
        let (consumer, kafka) = (Arc::clone(&self.consumer), Arc::clone(&self.kafka));
        let partition = self.partition;
        off_runtime(BACKEND, OP, move || {
            let topic = kafka.route.topic.as_str();
            let mut list = TopicPartitionList::new();
            list.add_partition(topic, partition);
            let found = consumer.committed_offsets(list, ANSWER_MAX);
            let found = found.map_err(|error| failure::of(OP, error))?;
            let Some(element) = found.find_partition(topic, partition) else {
                return Ok(None);
            };
            let offset = match element.offset() {
                Offset::Offset(offset) => u64::try_from(offset).ok(),
                _ => None,
            };
            let seen = Seen::from_snapshot(element.metadata());
            Ok(offset
                .zip(seen)
                .map(|(offset, seen)| Checkpoint { offset, seen }))
        })
        .await
    }

    /// Notes that `offset` was committed, and returns the hint for whoever goes on from there; `None` where this reader
    /// does not know what had been seen, or a record may still come late.
    pub(super) fn checkpoint(&mut self, offset: u64) -> Option<String> {
        let place = self.place.as_ref()?;
        if place.expected != offset {
            return None;
        }
        let hint = place.seen.snapshot()?;
        self.checkpoint = Some(Checkpoint {
            offset,
            seen: place.seen.clone(),
        });
        Some(hint)
    }
}

fn position(message: &BorrowedMessage<'_>) -> Option<Position> {
    let mut headers = message.headers()?.iter();
    let header = headers.find(|header| header.key == HEADER)?;
    Position::decode(header.value?)
}
