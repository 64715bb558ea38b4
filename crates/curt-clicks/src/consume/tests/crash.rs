//! Counts are exact whatever happens at whatever step (C-1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{
    ClickSource, ClickStore, ClickWindow, Erasure, Salt, StreamId, StreamPartition, StreamRecord,
};
use curt_core::{ClickSubject, Day, ErrorKind, LinkId, PortError, PortResult, UnixMillis};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::world::{OWNERS, World, click, encoded, link, quick};
use crate::consume::{ConsumerMetrics, ConsumerPorts, ConsumerSettings, Pipeline};

/// What happens to a port's call, before it is heard and before its answer is.
enum Fate {
    /// The process dies at this step, counted from 0: nothing happens any more.
    DiesAt(u64),
    /// One step in four fails, fixed by the seed, and its caller cannot know what came of the call.
    FailsBySeed(u64),
    /// Steps before this one fail.
    FailsBefore(u64),
}

struct Trouble {
    fate: Fate,
    steps: AtomicU64,
    died: Notify,
}

impl Trouble {
    fn new(fate: Fate) -> Arc<Self> {
        Arc::new(Self {
            fate,
            steps: AtomicU64::new(0),
            died: Notify::new(),
        })
    }

    async fn step(&self) -> PortResult<()> {
        let step = self.steps.fetch_add(1, Ordering::SeqCst);
        match self.fate {
            Fate::DiesAt(at) if step >= at => {
                self.died.notify_one();
                std::future::pending().await
            }
            Fate::FailsBySeed(seed)
                if StdRng::seed_from_u64(seed << 32 | step).random_bool(0.25) =>
            {
                Err(no_answer())
            }
            Fate::FailsBefore(end) if step < end => Err(no_answer()),
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

fn troubled(world: &World, trouble: &Arc<Trouble>) -> ConsumerPorts {
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
        ..ports
    }
}

const CLICKS: u32 = 40;

/// Clicks of two links by ten people.
async fn filled() -> World {
    let world = World::new();
    let keys = ["a", "b"];
    let clicks = (0..CLICKS).map(|n| click(keys[n as usize % 2], n % 10));
    world.capture(&clicks.collect::<Vec<_>>()).await;
    world
}

async fn assert_exact(world: &World, what: &str) {
    let clicks = u64::from(CLICKS);
    for (subject, want) in [
        (link("a"), clicks / 2),
        (link("b"), clicks / 2),
        (OWNERS, clicks),
        (ClickSubject::Everything, clicks),
    ] {
        assert_eq!(world.total(&subject).await, want, "{what}: {subject:?}");
    }
    let visitors = world.visitors(&OWNERS).await;
    assert_eq!(visitors.len(), 1, "{what}");
    assert_eq!(visitors[0].1, 10, "{what}: the salt outlives the process");
    assert_eq!(world.clicks().await.len(), CLICKS as usize, "{what}");
    assert_eq!(world.offset().await, clicks, "{what}");
}

/// Runs a pipeline that ends when all is counted, or dies on the way; says whether it died.
async fn run(world: &World, fate: Fate, settings: ConsumerSettings) -> bool {
    let trouble = Trouble::new(fate);
    let ports = troubled(world, &trouble);
    let stop = CancellationToken::new();
    stop.cancel();
    let pipeline = Pipeline::new(ports, settings, ConsumerMetrics::default());
    tokio::select! {
        biased;
        () = trouble.died.notified() => true,
        () = pipeline.run(stop) => false,
    }
}

#[tokio::test]
async fn a_death_at_any_step_loses_nothing_and_counts_nothing_twice_c1() {
    for window_polls in [1, 3] {
        let settings = ConsumerSettings {
            poll_max: 7,
            read_bytes_max: 7 * window_polls * encoded(&click("b", 0)).len() as u64,
            window: std::time::Duration::from_secs(3_600),
            ..quick()
        };
        let mut step = 0;
        loop {
            let world = filled().await;
            let died = run(&world, Fate::DiesAt(step), settings).await;
            // Again and again at the same step of what is left, then to the end.
            for _ in 0..3 {
                run(&world, Fate::DiesAt(step), settings).await;
            }
            run(&world, Fate::DiesAt(u64::MAX), settings).await;
            assert_exact(&world, &format!("dead at step {step}")).await;
            step += 1;
            if !died {
                break;
            }
        }
        assert!(step > 30, "only {step} steps were tried");
    }
}

#[tokio::test]
async fn answers_that_do_not_come_are_waited_for_c1() {
    for seed in 0..20 {
        let world = filled().await;
        let trouble = Trouble::new(Fate::FailsBySeed(seed));
        let stop = CancellationToken::new();
        let pipeline = Pipeline::new(
            troubled(&world, &trouble),
            quick(),
            ConsumerMetrics::default(),
        );
        let running = tokio::spawn(pipeline.run(stop.clone()));
        let all = async {
            while world.offset().await < u64::from(CLICKS) {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        let minute = std::time::Duration::from_secs(60);
        tokio::time::timeout(minute, all).await.unwrap();
        stop.cancel();
        running.await.unwrap();
        assert_exact(&world, &format!("seed {seed}")).await;
    }
}

/// A consumer that was thought dead goes on beside its successor (E13).
#[tokio::test(flavor = "multi_thread")]
async fn two_consumers_of_one_partition_count_once_c1() {
    for _ in 0..20 {
        let world = filled().await;
        let stop = CancellationToken::new();
        stop.cancel();
        let one = |poll_max| {
            let settings = ConsumerSettings {
                poll_max,
                ..quick()
            };
            let pipeline = Pipeline::new(world.ports(), settings, ConsumerMetrics::default());
            tokio::spawn(pipeline.run(stop.clone()))
        };
        for consumer in [one(3), one(4), one(5)] {
            consumer.await.unwrap();
        }
        world.drain(quick()).await;
        assert_exact(&world, "three consumers").await;
    }
}

/// What fails at the start is the question for the position: without clicks, nothing is written that could succeed.
#[tokio::test]
async fn a_store_that_comes_back_is_counted_into_again_without_clicks() {
    let world = World::new();
    let trouble = Trouble::new(Fate::FailsBefore(50));
    let ports = ConsumerPorts {
        store: troubled(&world, &trouble).store,
        ..world.ports()
    };
    let pipeline = Pipeline::new(ports, quick(), ConsumerMetrics::default());
    let state = pipeline.state();
    let stop = CancellationToken::new();
    let running = tokio::spawn(Arc::clone(&pipeline).run(stop.clone()));
    let wait_until = async |is_stopped: bool| {
        while state.stopped().is_some() != is_stopped {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let (max, why) = (Duration::from_secs(20), "counting stands still");
    timeout(max, wait_until(true)).await.expect("no failure");
    timeout(max, wait_until(false)).await.expect(why);
    stop.cancel();
    running.await.unwrap();
}

/// A report never waits long: it reads what is stored.
#[tokio::test]
async fn a_store_that_fails_or_does_not_answer_stops_no_report() {
    for fate in [Fate::FailsBefore(u64::MAX), Fate::DiesAt(0)] {
        let world = filled().await;
        let trouble = Trouble::new(fate);
        let pipeline = Pipeline::new(
            ConsumerPorts {
                store: troubled(&world, &trouble).store,
                ..world.ports()
            },
            quick(),
            ConsumerMetrics::default(),
        );
        let requests = pipeline.flush_requests();
        let stop = CancellationToken::new();
        let running = tokio::spawn(Arc::clone(&pipeline).run(stop.clone()));
        let asking = async {
            for _ in 0..3 {
                requests.flush().await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        timeout(Duration::from_secs(60), asking).await.unwrap();
        running.abort();
    }
}
