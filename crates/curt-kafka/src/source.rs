use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{ClickSource, StreamId, StreamRecord};
use tokio::sync::OnceCell;
use xxhash_rust::xxh3::xxh3_64;

use super::group::Group;
use super::metrics::KafkaMetrics;
use super::reader::Reader;
use super::{Kafka, failure};

/// How long the group may take to decide.
const DECISION_MAX: Duration = Duration::from_secs(20);
/// What Kafka keeps with an offset unless its brokers are told otherwise (`offset.metadata.max.bytes`).
const HINT_BYTES_MAX: usize = 4_096;

/// Reads the partitions that the group gives to this process.
pub struct KafkaSource {
    kafka: Arc<Kafka>,
    /// Joined when the topic is there: one that is absent is looked for seldom.
    group: OnceCell<Group>,
    readers: Mutex<HashMap<u32, Arc<tokio::sync::Mutex<Reader>>>>,
    /// The partitions that were told last.
    told: Mutex<Option<BTreeSet<u32>>>,
    metrics: KafkaMetrics,
}

impl KafkaSource {
    pub(super) fn new(kafka: Arc<Kafka>, metrics: KafkaMetrics) -> Self {
        Self {
            group: OnceCell::new(),
            kafka,
            readers: Mutex::default(),
            told: Mutex::default(),
            metrics,
        }
    }

    fn reader(&self, partition: u32) -> PortResult<Arc<tokio::sync::Mutex<Reader>>> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = readers.get(&partition) {
            return Ok(Arc::clone(reader));
        }
        let reader = Reader::open(&self.kafka, partition, self.metrics.clone())?;
        let reader = Arc::new(tokio::sync::Mutex::new(reader));
        readers.insert(partition, Arc::clone(&reader));
        Ok(reader)
    }

    async fn group(&self) -> PortResult<&Group> {
        let join = async {
            self.kafka.partitions().await?;
            Group::join(&self.kafka)
        };
        self.group.get_or_try_init(|| join).await
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Option<BTreeSet<u32>>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ClickSource for KafkaSource {
    /// Of topic and group: offsets of the topic are counted once for each group.
    fn id(&self) -> StreamId {
        let name = format!(
            "kafka\0{}\0{}",
            self.kafka.route.topic, self.kafka.route.group
        );
        StreamId(xxh3_64(name.as_bytes()))
    }

    async fn assignment(&self) -> PortResult<Vec<u32>> {
        let mut assigned = self.group().await?.assigned();
        let decided = tokio::time::timeout(DECISION_MAX, assigned.wait_for(Option::is_some)).await;
        let assigned = match decided {
            Ok(Ok(assigned)) => assigned.clone().unwrap_or_default(),
            Ok(Err(_)) | Err(_) => {
                let detail = format!("no partitions were assigned in {DECISION_MAX:?}");
                return Err(failure::timeout("join the group", detail));
            }
        };
        self.readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|partition, _| assigned.contains(partition));
        *self.told() = Some(assigned.clone());
        Ok(assigned.into_iter().collect())
    }

    fn assigned(&self) -> Vec<u32> {
        let told = self.told();
        told.iter().flatten().copied().collect()
    }

    async fn assignment_changed(&self) {
        let Some(group) = self.group.get() else {
            return std::future::pending().await;
        };
        let mut assigned = group.assigned();
        let is_other = |now: &Option<BTreeSet<u32>>| now.is_some() && *now != *self.told();
        // The sender lives as long as the group.
        let _changed = assigned.wait_for(is_other).await;
    }

    async fn poll(
        &self,
        partition: u32,
        from: u64,
        limit: usize,
        wait: Duration,
    ) -> PortResult<Vec<StreamRecord>> {
        let reader = self.reader(partition)?;
        let mut reader = reader.lock().await;
        reader.poll(from, limit, wait).await
    }

    /// Kafka keeps records for as long as the topic's retention says, for other readers.
    async fn commit(&self, partition: u32, offset: u64) -> PortResult<()> {
        let reader = self.reader(partition)?;
        let hint = reader.lock().await.checkpoint(offset);
        let Some(hint) = hint.filter(|hint| hint.len() <= HINT_BYTES_MAX) else {
            return Ok(());
        };
        let (number, offset) = (
            i32::try_from(partition).unwrap_or(i32::MAX),
            i64::try_from(offset).unwrap_or(i64::MAX),
        );
        let topic = &self.kafka.route.topic;
        match self.group.get() {
            Some(group) => group.commit(topic, number, offset, &hint),
            None => Ok(()),
        }
    }
}
