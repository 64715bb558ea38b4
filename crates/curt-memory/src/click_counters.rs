use std::collections::BTreeMap;
use std::mem;
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{ClickCounters, Counted, CounterWindow};

use super::locked;

#[derive(Debug, Default)]
pub struct MemoryClickCounters {
    partitions: Mutex<BTreeMap<u32, Partition>>,
}

#[derive(Debug, Default)]
struct Partition {
    offset: u64,
    counts: BTreeMap<Box<str>, u64>,
    windows: BTreeMap<Box<str>, CounterWindow>,
}

impl MemoryClickCounters {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl ClickCounters for MemoryClickCounters {
    async fn offset(&self, partition: u32) -> PortResult<u64> {
        let partitions = locked(&self.partitions);
        Ok(partitions.get(&partition).map_or(0, |known| known.offset))
    }

    async fn add(
        &self,
        partition: u32,
        seen: u64,
        next: u64,
        counts: &[Counted],
    ) -> PortResult<bool> {
        let mut partitions = locked(&self.partitions);
        let partition = partitions.entry(partition).or_default();
        if partition.offset != seen {
            return Ok(false);
        }
        partition.offset = next;
        for Counted { name, count } in counts {
            let sum = partition.counts.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        Ok(true)
    }

    async fn take_window(&self, partition: u32, window: &str) -> PortResult<CounterWindow> {
        let mut partitions = locked(&self.partitions);
        let partition = partitions.entry(partition).or_default();
        if let Some(taken) = partition.windows.get(window) {
            return Ok(taken.clone());
        }
        let counts = mem::take(&mut partition.counts);
        let counted = |(name, count)| Counted { name, count };
        let taken = CounterWindow {
            offset: partition.offset,
            counts: counts.into_iter().map(counted).collect(),
        };
        partition.windows.insert(window.into(), taken.clone());
        Ok(taken)
    }

    async fn forget(&self, partition: u32, window: &str) -> PortResult<()> {
        if let Some(partition) = locked(&self.partitions).get_mut(&partition) {
            partition.windows.remove(window);
        }
        Ok(())
    }
}
