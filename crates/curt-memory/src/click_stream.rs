use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::ports::{ClickStream, StreamId, StreamRecord};
use curt_core::{ErrorKind, PortError, PortResult};

use super::{BACKEND, locked};

/// Records that a partition keeps when nobody says otherwise.
const RECORDS_DEFAULT: usize = 1 << 20;

/// A stream in this process. Each call of `append` goes to the next partition in turn; a full partition throttles.
#[derive(Debug)]
pub struct MemoryClickStream {
    id: StreamId,
    /// Records that one partition keeps until they are committed.
    cap: usize,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    partitions: Vec<Partition>,
    next: usize,
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
        let partitions = vec![Partition::default(); partitions.max(1) as usize];
        Self {
            // Offsets begin anew with every stream, so positions of an earlier one must not be taken for its own.
            id: StreamId(RandomState::new().hash_one(())),
            cap,
            log: Mutex::new(Log {
                partitions,
                next: 0,
            }),
        }
    }
}

impl Default for MemoryClickStream {
    fn default() -> Self {
        Self::new(1, RECORDS_DEFAULT)
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
impl ClickStream for MemoryClickStream {
    fn id(&self) -> StreamId {
        self.id
    }

    async fn append(&self, records: &[Box<[u8]>]) -> PortResult<()> {
        let mut log = locked(&self.log);
        let turn = log.next;
        log.next = (turn + 1) % log.partitions.len();
        let partition = &mut log.partitions[turn];
        if partition.records.len() + records.len() > self.cap {
            let detail = format!("partition {turn} is full; its consumer is behind");
            let kind = ErrorKind::Throttled;
            return Err(PortError::new(kind, BACKEND, "append clicks", detail));
        }
        partition.records.extend(records.iter().cloned());
        Ok(())
    }

    async fn partitions(&self) -> PortResult<u32> {
        Ok(u32::try_from(locked(&self.log).partitions.len()).unwrap_or(u32::MAX))
    }

    async fn poll(&self, partition: u32, from: u64, limit: usize) -> PortResult<Vec<StreamRecord>> {
        let mut log = locked(&self.log);
        let partition = log.partition("poll clicks", partition)?;
        let skipped = usize::try_from(from.saturating_sub(partition.base)).unwrap_or(usize::MAX);
        let records = (partition.base..).zip(&partition.records);
        let wanted = records.skip(skipped).take(limit);
        Ok(wanted
            .map(|(offset, bytes)| StreamRecord {
                offset,
                bytes: bytes.clone(),
            })
            .collect())
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
