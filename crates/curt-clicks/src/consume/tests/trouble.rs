//! Ports whose calls fail, or whose process dies at a step.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{
    ClickCounters, ClickSource, ClickStore, ClickWindow, CounterAddition, CounterWindow, Erasure,
    Salt, StreamId, StreamPartition, StreamRecord,
};
use curt_core::{Day, ErrorKind, LinkId, PortError, PortResult, UnixMillis};
use curt_memory::MemoryClickCounters;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;

use super::world::World;
use crate::consume::ConsumerPorts;

/// What happens to a port's call, before it is heard and before its answer is.
pub(super) enum Fate {
    /// The process dies at this step, counted from 0: nothing happens any more.
    DiesAt(u64),
    /// One step in four fails, fixed by the seed, and its caller cannot know what came of the call.
    FailsBySeed(u64),
    /// Steps before this one fail.
    FailsBefore(u64),
    /// The second addition to the counters is refused, as while another consumer has added.
    RefusesAnAddition,
    /// The counters are emptied at this step.
    EmptiesAt(u64, Arc<MemoryClickCounters>),
}

pub(super) struct Trouble {
    fate: Fate,
    steps: AtomicU64,
    /// How many were tried.
    additions: AtomicU64,
    pub(super) died: Notify,
}

impl Trouble {
    pub(super) fn new(fate: Fate) -> Arc<Self> {
        Arc::new(Self {
            fate,
            steps: AtomicU64::new(0),
            additions: AtomicU64::new(0),
            died: Notify::new(),
        })
    }

    async fn step(&self) -> PortResult<()> {
        let step = self.steps.fetch_add(1, Ordering::SeqCst);
        match &self.fate {
            Fate::DiesAt(at) if step >= *at => {
                self.died.notify_one();
                std::future::pending().await
            }
            Fate::FailsBySeed(seed)
                if StdRng::seed_from_u64(seed << 32 | step).random_bool(0.25) =>
            {
                Err(no_answer())
            }
            Fate::FailsBefore(end) if step < *end => Err(no_answer()),
            Fate::EmptiesAt(at, counters) if step == *at => {
                counters.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn pass<T>(&self, call: impl Future<Output = PortResult<T>> + Send) -> PortResult<T> {
        self.step().await?;
        let answer = call.await;
        self.step().await?;
        answer
    }
}

fn no_answer() -> PortError {
    PortError::new(ErrorKind::Timeout, "trouble", "answer", "no answer came")
}

struct Troubled<T: ?Sized> {
    inner: Arc<T>,
    trouble: Arc<Trouble>,
}

#[async_trait]
impl ClickSource for Troubled<dyn ClickSource> {
    fn id(&self) -> StreamId {
        self.inner.id()
    }

    async fn assignment(&self) -> PortResult<Vec<u32>> {
        self.trouble.pass(self.inner.assignment()).await
    }

    async fn poll(
        &self,
        partition: u32,
        from: u64,
        limit: usize,
        wait: Duration,
    ) -> PortResult<Vec<StreamRecord>> {
        self.trouble
            .pass(self.inner.poll(partition, from, limit, wait))
            .await
    }

    async fn commit(&self, partition: u32, offset: u64) -> PortResult<()> {
        self.trouble
            .pass(self.inner.commit(partition, offset))
            .await
    }
}

#[async_trait]
impl ClickStore for Troubled<dyn ClickStore> {
    async fn offset(&self, partition: StreamPartition) -> PortResult<u64> {
        self.trouble.pass(self.inner.offset(partition)).await
    }

    async fn apply(&self, flush: ClickWindow) -> PortResult<bool> {
        self.trouble.pass(self.inner.apply(flush)).await
    }

    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt> {
        self.trouble.pass(self.inner.salt(day, fresh)).await
    }

    async fn forget_salts(&self, before: Day) -> PortResult<()> {
        self.inner.forget_salts(before).await
    }

    async fn purge_clicks(&self, before: UnixMillis, limit: usize) -> PortResult<u64> {
        self.inner.purge_clicks(before, limit).await
    }

    async fn trim_clicks(&self, bytes_max: u64, limit: usize) -> PortResult<u64> {
        self.inner.trim_clicks(bytes_max, limit).await
    }

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64> {
        self.inner.purge_rollups(before, limit).await
    }

    async fn erase_clicks(
        &self,
        link: LinkId,
        generation: u32,
        pieces_max: usize,
    ) -> PortResult<Erasure> {
        self.inner.erase_clicks(link, generation, pieces_max).await
    }

    async fn erase_rollups(
        &self,
        link: LinkId,
        generation: u32,
        pieces_max: usize,
    ) -> PortResult<Erasure> {
        self.inner.erase_rollups(link, generation, pieces_max).await
    }
}

#[async_trait]
impl ClickCounters for Troubled<dyn ClickCounters> {
    async fn add(
        &self,
        partition: StreamPartition,
        addition: CounterAddition,
    ) -> PortResult<Option<u64>> {
        let before = self.trouble.additions.fetch_add(1, Ordering::SeqCst);
        if matches!(self.trouble.fate, Fate::RefusesAnAddition) && before == 1 {
            return Ok(None);
        }
        self.trouble.pass(self.inner.add(partition, addition)).await
    }

    async fn window(&self, partition: StreamPartition) -> PortResult<Option<CounterWindow>> {
        self.trouble.pass(self.inner.window(partition)).await
    }

    async fn forget(&self, partition: StreamPartition, from: u64) -> PortResult<()> {
        self.trouble.pass(self.inner.forget(partition, from)).await
    }
}

pub(super) fn troubled(world: &World, trouble: &Arc<Trouble>) -> ConsumerPorts {
    let ports = world.ports();
    ConsumerPorts {
        source: Arc::new(Troubled {
            inner: Arc::clone(&ports.source),
            trouble: Arc::clone(trouble),
        }),
        store: Arc::new(Troubled {
            inner: Arc::clone(&ports.store),
            trouble: Arc::clone(trouble),
        }),
        counters: ports.counters.map(|inner| {
            let trouble = Arc::clone(trouble);
            Arc::new(Troubled { inner, trouble }) as Arc<dyn ClickCounters>
        }),
        ..ports
    }
}
