use std::time::Duration;

use curt_core::{PortResult, UnixMillis};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use super::context::Quiet;
use super::{ANSWER_MAX, Kafka, failure};

const OP: &str = "read the stream";

/// Records of all partitions as they come, for people who look on: no group hears of it, and records that were sent again
/// come again.
pub struct KafkaTail {
    consumer: BaseConsumer<Quiet>,
}

impl KafkaTail {
    /// From the records of `since` on, or with those that come next.
    pub(super) fn open(
        kafka: &Kafka,
        partitions: u32,
        since: Option<UnixMillis>,
    ) -> PortResult<Self> {
        let mut config = kafka.config();
        config
            // Asked for by the library, and never joined.
            .set("group.id", format!("{}-tail", kafka.route.group))
            .set("enable.auto.commit", "false")
            .set("fetch.wait.max.ms", "100");
        let consumer: BaseConsumer<Quiet> = config
            .create_with_context(Quiet::default())
            .map_err(|error| failure::of(OP, error))?;
        let mut list = TopicPartitionList::new();
        let start = since.map_or(Offset::End, |since| Offset::Offset(since.0.max(0)));
        let topic = &kafka.route.topic;
        for number in 0..partitions {
            let number = i32::try_from(number).unwrap_or(i32::MAX);
            list.add_partition_offset(topic, number, start)
                .map_err(|error| failure::of(OP, error))?;
        }
        if since.is_some() {
            list = consumer
                .offsets_for_times(list, ANSWER_MAX)
                .map_err(|error| failure::of(OP, error))?;
        }
        consumer
            .assign(&list)
            .map_err(|error| failure::of(OP, error))?;
        Ok(Self { consumer })
    }

    /// The next record, or `None` after `wait`. Blocks.
    pub fn next(&self, wait: Duration) -> PortResult<Option<Vec<u8>>> {
        match self.consumer.poll(wait) {
            None => Ok(None),
            Some(Ok(message)) => Ok(Some(message.payload().unwrap_or_default().to_vec())),
            Some(Err(error)) => Err(failure::of(OP, error)),
        }
    }
}
