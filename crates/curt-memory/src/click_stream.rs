use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{
    ClickSink, ClickSource, DeadLetters, ProducerId, SequencedRecord, StreamId, StreamRecord,
};
use curt_core::{ErrorKind, PortError, PortResult};
use tokio::sync::Notify;

use super::{BACKEND, locked};

/// A stream in this process. The records of a producer go to one partition; a full partition throttles.
#[derive(Debug)]
pub struct MemoryClickStream {
    id: StreamId,
    /// Records that one partition keeps until they are committed.
    cap: usize,
    log: Mutex<Log>,
    appended: Notify,
}

#[derive(Debug)]
struct Log {
    partitions: Vec<Partition>,
    /// The last sequence number of each producer.
    sequences: HashMap<ProducerId, u64>,
}

#[derive(Clone, Debug, Default)]
struct Partition {
    /// Offset of the oldest record that is kept.
    base: u64,
    records: VecDeque<Box<[u8]>>,
}

impl MemoryClickStream {
    #[must_use]
    pub fn new(partitions: u32, cap: usize) -> Self {
        Self {
            // Offsets begin anew with every stream, so those of an earlier one must not be taken for its own.
            id: StreamId(RandomState::new().hash_one(())),
            cap,
            log: Mutex::new(Log {
                partitions: vec![Partition::default(); partitions.max(1) as usize],
                sequences: HashMap::new(),
            }),
            appended: Notify::new(),
        }
    }

    fn read(&self, partition: u32, from: u64, limit: usize) -> PortResult<Vec<StreamRecord>> {
        let mut log = locked(&self.log);
        let partition = log.partition("poll clicks", partition)?;
        let skipped = usize::try_from(from.saturating_sub(partition.base)).unwrap_or(usize::MAX);
        let records = (partition.base..).zip(&partition.records);
        let wanted = records.skip(skipped).take(limit);
        Ok(wanted
            .map(|(offset, bytes)| StreamRecord {
                offset,
                bytes: bytes.clone(),
                stored_bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            })
            .collect())
    }
}

impl Log {
    fn partition(&mut self, op: &'static str, number: u32) -> PortResult<&mut Partition> {
        let count = self.partitions.len();
        self.partitions.get_mut(number as usize).ok_or_else(|| {
            let detail = format!("there is no partition {number}, only {count} from 0 on");
            PortError::new(ErrorKind::Invalid, BACKEND, op, detail)
        })
    }
}

#[async_trait]
impl ClickSink for MemoryClickStream {
    async fn append(&self, producer: ProducerId, records: &[SequencedRecord]) -> PortResult<()> {
        let mut log = locked(&self.log);
        let last = log.sequences.get(&producer).copied();
        let is_new = |record: &&SequencedRecord| last.is_none_or(|last| record.sequence > last);
        let new: Vec<&SequencedRecord> = records.iter().filter(is_new).collect();
        let Some(newest) = new.last() else {
            return Ok(());
        };
        let number = producer.0 % log.partitions.len() as u64;
        let number = usize::try_from(number).unwrap_or_default();
        let partition = &mut log.partitions[number];
        if partition.records.len() + new.len() > self.cap {
            let detail = format!("partition {number} is full; its consumer is behind");
            let kind = ErrorKind::Throttled;
            return Err(PortError::new(kind, BACKEND, "append clicks", detail));
        }
        let bytes = new.iter().map(|record| record.bytes.clone());
        partition.records.extend(bytes);
        log.sequences.insert(producer, newest.sequence);
        self.appended.notify_waiters();
        Ok(())
    }
}

#[async_trait]
impl ClickSource for MemoryClickStream {
    fn id(&self) -> StreamId {
        self.id
    }

    async fn assignment(&self) -> PortResult<Vec<u32>> {
        Ok((0..).take(locked(&self.log).partitions.len()).collect())
    }

    async fn poll(
        &self,
        partition: u32,
        from: u64,
        limit: usize,
        wait: Duration,
    ) -> PortResult<Vec<StreamRecord>> {
        let found = async {
            loop {
                // Before the look, so that an append between both wakes it.
                let appended = self.appended.notified();
                let records = self.read(partition, from, limit)?;
                if !records.is_empty() {
                    return Ok(records);
                }
                appended.await;
            }
        };
        let found = tokio::time::timeout(wait, found).await;
        found.unwrap_or_else(|_| Ok(Vec::new()))
    }

    async fn commit(&self, partition: u32, offset: u64) -> PortResult<()> {
        let mut log = locked(&self.log);
        let partition = log.partition("commit clicks", partition)?;
        let done = offset.saturating_sub(partition.base);
        let done = usize::try_from(done).unwrap_or(usize::MAX);
        let done = done.min(partition.records.len());
        partition.records.drain(..done);
        partition.base += done as u64;
        Ok(())
    }
}

/// Keeps where the records were and why they could not be read.
#[derive(Debug, Default)]
pub struct MemoryDeadLetters(Mutex<Vec<(u32, u64, &'static str)>>);

impl MemoryDeadLetters {
    /// Partition, offset and reason of each.
    #[must_use]
    pub fn letters(&self) -> Vec<(u32, u64, &'static str)> {
        locked(&self.0).clone()
    }
}

impl DeadLetters for MemoryDeadLetters {
    fn put(&self, partition: u32, offset: u64, reason: &'static str, _record: &[u8]) {
        locked(&self.0).push((partition, offset, reason));
    }
}
