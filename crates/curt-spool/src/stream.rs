use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use curt_adapter_kit::off_runtime;
use curt_core::ports::{ClickStream, ClickWriter, StreamId, StreamRecord};
use curt_core::{ErrorKind, PortError, PortResult};

use super::frame::{PAYLOAD_BYTES_MAX, framed_bytes};
use super::partition::Partition;
use super::segment::HEADER_BYTES;
use super::{BACKEND, Core, Spool};

const APPEND: &str = "append clicks";
const POLL: &str = "poll clicks";
const COMMIT: &str = "commit clicks";

#[async_trait]
impl ClickStream for Spool {
    fn id(&self) -> StreamId {
        self.core.id
    }

    /// Goes to a partition whose writer no capture has taken; all records or none.
    async fn append(&self, records: &[Box<[u8]>]) -> PortResult<()> {
        let (core, records) = (Arc::clone(&self.core), records.to_vec());
        off_runtime(BACKEND, APPEND, move || core.append(&records)).await
    }

    async fn partitions(&self) -> PortResult<u32> {
        Ok(self.core.partitions.len() as u32)
    }

    async fn poll(&self, partition: u32, from: u64, limit: usize) -> PortResult<Vec<StreamRecord>> {
        let core = Arc::clone(&self.core);
        off_runtime(BACKEND, POLL, move || {
            let partition = core.partition(POLL, partition)?;
            let records = partition.poll(from, limit, &core.poison);
            records.map_err(|error| failed(POLL, error))
        })
        .await
    }

    async fn commit(&self, partition: u32, offset: u64) -> PortResult<()> {
        let core = Arc::clone(&self.core);
        off_runtime(BACKEND, COMMIT, move || {
            let partition = core.partition(COMMIT, partition)?;
            let committed = partition.commit(offset, &core.budget);
            core.bell.ring();
            committed.map_err(|error| failed(COMMIT, error))
        })
        .await
    }
}

impl Core {
    fn partition(&self, op: &'static str, number: u32) -> PortResult<&Partition> {
        self.partitions.get(number as usize).ok_or_else(|| {
            let count = self.partitions.len();
            let detail = format!("there is no partition {number}, only {count} from 0 on");
            PortError::new(ErrorKind::Invalid, BACKEND, op, detail)
        })
    }

    fn append(&self, records: &[Box<[u8]>]) -> PortResult<()> {
        if records.is_empty() {
            return Ok(());
        }
        let bytes = self.appendable_bytes(records)?;
        for (partition, slot) in self.partitions.iter().zip(&self.writers) {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(writer) = &mut *slot else { continue };
            if !writer.has_room_for(bytes) {
                partition.make_room(&self.budget);
            }
            if !writer.has_room_for(bytes) {
                let detail = "the spool is full; its consumer is behind";
                let kind = ErrorKind::Throttled;
                return Err(PortError::new(kind, BACKEND, APPEND, detail));
            }
            for record in records {
                writer.write(record);
            }
            return partition.sync().map_err(|error| failed(APPEND, error));
        }
        let detail = "every partition is written by a capture";
        Err(PortError::new(ErrorKind::Invalid, BACKEND, APPEND, detail))
    }

    /// What the records take together, if one segment can hold that: then they can be written all or none.
    fn appendable_bytes(&self, records: &[Box<[u8]>]) -> PortResult<usize> {
        let longest = records.iter().map(|record| record.len()).max();
        let bytes = records
            .iter()
            .map(|record| framed_bytes(record.len()))
            .sum();
        let room = (self.budget.segment_bytes() - HEADER_BYTES) as usize;
        if longest > Some(PAYLOAD_BYTES_MAX) || bytes > room {
            let detail = format!(
                "one record may have {PAYLOAD_BYTES_MAX} bytes, and all of one call {room} with what frames them"
            );
            return Err(PortError::new(ErrorKind::Invalid, BACKEND, APPEND, detail));
        }
        Ok(bytes)
    }
}

fn failed(op: &'static str, error: std::io::Error) -> PortError {
    let detail = "a file of the spool failed: check the disk";
    PortError::new(ErrorKind::Unavailable, BACKEND, op, detail).with_source(error)
}
