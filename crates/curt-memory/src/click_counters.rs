use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{ClickCounters, Counted, CounterAddition, CounterWindow, StreamPartition};

use super::locked;

#[derive(Debug, Default)]
pub struct MemoryClickCounters {
    windows: Mutex<BTreeMap<StreamPartition, Window>>,
}

#[derive(Debug, Default)]
struct Window {
    from: u64,
    to: u64,
    counts: BTreeMap<Box<[u8]>, u64>,
    pieces: Vec<Vec<u8>>,
}

impl MemoryClickCounters {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything, as a store that is emptied does.
    pub fn clear(&self) {
        locked(&self.windows).clear();
    }
}

impl Window {
    fn bytes(&self) -> usize {
        let names = self.counts.keys().map(|name| name.len() + size_of::<u64>());
        names.sum::<usize>() + self.pieces.iter().map(Vec::len).sum::<usize>()
    }
}

#[async_trait]
impl ClickCounters for MemoryClickCounters {
    async fn add(
        &self,
        partition: StreamPartition,
        addition: CounterAddition,
    ) -> PortResult<Option<u64>> {
        let (from, seen) = (addition.from, addition.seen);
        let mut windows = locked(&self.windows);
        if !windows.contains_key(&partition) && from != seen {
            return Ok(None);
        }
        let window = windows.entry(partition).or_insert_with(|| Window {
            from,
            to: seen,
            ..Window::default()
        });
        if (window.from, window.to) != (from, seen) {
            return Ok(None);
        }
        window.to = addition.next;
        for Counted { name, count } in addition.counts {
            let sum = window.counts.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
        if !addition.piece.is_empty() {
            window.pieces.push(addition.piece);
        }
        Ok(Some(window.bytes() as u64))
    }

    async fn window(&self, partition: StreamPartition) -> PortResult<Option<CounterWindow>> {
        let windows = locked(&self.windows);
        Ok(windows.get(&partition).map(|window| CounterWindow {
            from: window.from,
            to: window.to,
            counts: window
                .counts
                .iter()
                .map(|(name, count)| Counted {
                    name: name.clone(),
                    count: *count,
                })
                .collect(),
            pieces: window.pieces.clone(),
        }))
    }

    async fn forget(&self, partition: StreamPartition, from: u64) -> PortResult<()> {
        let mut windows = locked(&self.windows);
        if windows
            .get(&partition)
            .is_some_and(|known| known.from == from)
        {
            windows.remove(&partition);
        }
        Ok(())
    }
}
