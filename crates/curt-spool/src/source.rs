use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_adapter_kit::off_runtime;
use curt_core::ports::{ClickSource, StreamId, StreamRecord};
use curt_core::{ErrorKind, PortError, PortResult};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::partition::Partition;
use super::{BACKEND, Core, Spool};

const POLL: &str = "poll clicks";
const COMMIT: &str = "commit clicks";
/// Between two looks for new records.
const POLL_EVERY: Duration = Duration::from_millis(100);

#[async_trait]
impl ClickSource for Spool {
    fn id(&self) -> StreamId {
        self.core.id
    }

    async fn assignment(&self) -> PortResult<Vec<u32>> {
        Ok((0..).take(self.core.partitions.len()).collect())
    }

    /// Looks again and again while it waits: a writer that told of its records would make a redirect slower.
    async fn poll(
        &self,
        partition: u32,
        from: u64,
        limit: usize,
        wait: Duration,
    ) -> PortResult<Vec<StreamRecord>> {
        let mut left = wait;
        loop {
            let core = Arc::clone(&self.core);
            let read = move || {
                let partition = core.partition(POLL, partition)?;
                let records = partition.poll(from, limit, &core.dead_letters);
                records.map_err(|error| failed(POLL, error))
            };
            let records = match Handle::current().runtime_flavor() {
                // The thread is its caller's own: it may wait for the disk, and another one would take longer.
                RuntimeFlavor::CurrentThread => read()?,
                _ => off_runtime(BACKEND, POLL, read).await?,
            };
            if !records.is_empty() || left.is_zero() {
                return Ok(records);
            }
            let pause = left.min(POLL_EVERY);
            tokio::time::sleep(pause).await;
            left -= pause;
        }
    }

    async fn commit(&self, partition: u32, offset: u64) -> PortResult<()> {
        let core = Arc::clone(&self.core);
        off_runtime(BACKEND, COMMIT, move || {
            let partition = core.partition(COMMIT, partition)?;
            let committed = partition.commit(offset, &core.budget);
            core.segment_waker.wake();
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
}

fn failed(op: &'static str, error: std::io::Error) -> PortError {
    let detail = "a file of the spool failed: check the disk";
    PortError::new(ErrorKind::Unavailable, BACKEND, op, detail).with_source(error)
}
