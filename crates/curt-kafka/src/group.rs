//! The consumer group: who reads which partition. Nothing is read here, so that a slow count never costs membership.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread;
use std::time::Duration;

use curt_core::{PortResult, names};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::{ClientContext, Offset, TopicPartitionList};
use tokio::sync::watch;

use super::{Kafka, context, failure, milliseconds};

const OP: &str = "join the group";
const POLL_EVERY: Duration = Duration::from_millis(100);
/// How long the end waits for the group to hear of it.
const LEAVE_MAX: Duration = Duration::from_secs(3);

/// Membership in the group, until it is dropped.
pub(super) struct Group {
    /// The thread that serves it has the other end.
    consumer: Weak<BaseConsumer<Membership>>,
    assigned: watch::Receiver<Option<BTreeSet<u32>>>,
    is_stopped: Arc<AtomicBool>,
    left: Mutex<mpsc::Receiver<()>>,
}

impl Group {
    pub(super) fn join(kafka: &Kafka) -> PortResult<Self> {
        let (sender, assigned) = watch::channel(None);
        let session = kafka.settings.session_timeout;
        let mut config = kafka.config();
        config
            .set("group.id", &kafka.route.group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("session.timeout.ms", milliseconds(session))
            .set("heartbeat.interval.ms", milliseconds(session / 4))
            // A topic that is new is found soon.
            .set("topic.metadata.refresh.interval.ms", "10000")
            .set("max.poll.interval.ms", milliseconds(session.max(Duration::from_secs(60))));
        let consumer: BaseConsumer<Membership> = config
            .create_with_context(Membership { assigned: sender })
            .map_err(|error| failure::of(OP, error))?;
        let consumer = Arc::new(consumer);
        let topic = kafka.route.topic.as_str();
        consumer
            .subscribe(&[topic])
            .map_err(|error| failure::of(OP, error))?;
        let is_stopped = Arc::<AtomicBool>::default();
        let (leave, left) = mpsc::channel();
        let (stopped, weak) = (Arc::clone(&is_stopped), Arc::downgrade(&consumer));
        let serve = move || {
            while !stopped.load(Ordering::Relaxed) {
                // All partitions are paused: there are no records, and errors are told where records are read.
                drop(consumer.poll(POLL_EVERY));
            }
            // Leaves the group.
            drop(consumer);
            // The other end may have stopped to wait.
            let _waiting = leave.send(());
        };
        let started = thread::Builder::new()
            .name("curt-kafka".into())
            .spawn(serve);
        started.map_err(|error| failure::of_thread(OP, error))?;
        Ok(Self {
            consumer: weak,
            assigned,
            is_stopped,
            left: Mutex::new(left),
        })
    }

    /// Partitions of this member; `None` before the group has decided.
    pub(super) fn assigned(&self) -> watch::Receiver<Option<BTreeSet<u32>>> {
        self.assigned.clone()
    }

    /// Leaves a hint for whoever reads the partition next. Nothing depends on its arrival.
    pub(super) fn commit(
        &self,
        topic: &str,
        partition: i32,
        offset: i64,
        hint: &str,
    ) -> PortResult<()> {
        let mut list = TopicPartitionList::new();
        let committed = list
            .add_partition_offset(topic, partition, Offset::Offset(offset))
            .and_then(|()| {
                if let Some(mut element) = list.find_partition(topic, partition) {
                    element.set_metadata(hint);
                }
                match self.consumer.upgrade() {
                    Some(consumer) => consumer.commit(&list, CommitMode::Async),
                    None => Ok(()),
                }
            });
        committed.map_err(|error| failure::of("commit clicks", error))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        let left = self.left.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A broker that is away is not waited for any longer: the session ends by itself.
        let _left = left.recv_timeout(LEAVE_MAX);
    }
}

/// Notes what the group decides.
struct Membership {
    assigned: watch::Sender<Option<BTreeSet<u32>>>,
}

impl ClientContext for Membership {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        context::note_line(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        context::note_error(&error, reason);
    }
}

impl ConsumerContext for Membership {
    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let change: fn(&mut BTreeSet<u32>, u32) -> bool = match rebalance {
            Rebalance::Assign(list) => {
                if let Err(error) = consumer.pause(list) {
                    context::note_error(&error, "pause");
                }
                |assigned, partition| assigned.insert(partition)
            }
            Rebalance::Revoke(_) => |assigned, partition| assigned.remove(&partition),
            Rebalance::Error(error) => return context::note_error(error, "rebalance"),
        };
        let (Rebalance::Assign(list) | Rebalance::Revoke(list)) = rebalance else {
            return;
        };
        self.assigned.send_modify(|assigned| {
            let assigned = assigned.get_or_insert_default();
            for element in list.elements() {
                change(
                    assigned,
                    u32::try_from(element.partition()).unwrap_or_default(),
                );
            }
            tracing::info!(
                event = names::event::STREAM_ASSIGNED,
                partitions = ?assigned,
                "partitions of the stream assigned"
            );
        });
    }

    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        if let Err(error) = result {
            context::note_error(&error, "commit");
        }
    }
}
