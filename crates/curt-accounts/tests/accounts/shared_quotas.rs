//! Quotas that several servers count together, with the engine there, away and slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use curt_accounts::SharedQuotas;
use curt_core::clock::ManualClock;
use curt_core::ports::{Bucket, QuotaReply, QuotaRule, Quotas};
use curt_core::{ErrorKind, PortError, PortResult};
use curt_memory::MemoryQuotas;

use crate::world::START;

const SERVERS: usize = 3;
const TIMEOUT: Duration = Duration::from_millis(100);

/// The engine that all servers share.
struct Engine {
    inner: MemoryQuotas,
    away: AtomicBool,
    silent: AtomicBool,
    calls: AtomicU64,
}

impl Engine {
    async fn answer(&self) -> PortResult<()> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.silent.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
        }
        match self.away.load(Ordering::SeqCst) {
            true => {
                let kind = ErrorKind::Unavailable;
                Err(PortError::new(kind, "engine", "take", "away"))
            }
            false => Ok(()),
        }
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Quotas for Engine {
    async fn take(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<Vec<QuotaReply>> {
        self.answer().await?;
        self.inner.take(buckets, amount).await
    }

    async fn give_back(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<()> {
        self.answer().await?;
        self.inner.give_back(buckets, amount).await
    }
}

struct Fleet {
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    servers: Vec<Arc<SharedQuotas>>,
}

fn fleet() -> Fleet {
    let clock = Arc::new(ManualClock::at(START));
    let engine = Arc::new(Engine {
        inner: MemoryQuotas::new(clock.clone()),
        away: AtomicBool::new(false),
        silent: AtomicBool::new(false),
        calls: AtomicU64::new(0),
    });
    let server = |_| {
        let local = Arc::new(MemoryQuotas::new(clock.clone()));
        SharedQuotas::new(engine.clone(), local, TIMEOUT)
    };
    let servers = (0..SERVERS).map(server).collect();
    Fleet {
        clock,
        engine,
        servers,
    }
}

fn hourly(amount: u64) -> Bucket<'static> {
    Bucket {
        name: "redirect/user/7",
        rule: QuotaRule {
            amount,
            period: Duration::from_secs(3_600),
        },
    }
}

async fn is_granted(quotas: &SharedQuotas, bucket: Bucket<'_>) -> bool {
    quotas.take(&[bucket], 1).await.unwrap()[0].granted
}

async fn is_granted_ahead(quotas: &SharedQuotas, bucket: Bucket<'_>) -> bool {
    quotas.take_ahead(&[bucket], 1).await.unwrap()[0].granted
}

impl Fleet {
    /// Asks the servers in turn, and returns what they granted together.
    async fn take_in_turn(&self, bucket: Bucket<'_>, count: usize) -> u64 {
        let mut granted = 0;
        for number in 0..count {
            let server = &self.servers[number % SERVERS];
            granted += u64::from(is_granted(server, bucket).await);
        }
        granted
    }
}

#[tokio::test(start_paused = true)]
async fn servers_grant_no_more_together_than_there_is() {
    let fleet = fleet();
    assert_eq!(fleet.take_in_turn(hourly(100), 400).await, 100);
    assert_eq!(fleet.servers[0].fallbacks(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_the_engine_each_server_counts_for_itself() {
    let fleet = fleet();
    fleet.engine.away.store(true, Ordering::SeqCst);
    assert_eq!(fleet.take_in_turn(hourly(10), 300).await, 30);
    assert!(fleet.servers.iter().all(|server| server.is_degraded()));
    // The breaker keeps the engine from being asked for each of them.
    assert_eq!(fleet.engine.calls(), 3);
    let replies = fleet.servers[0].take(&[hourly(10)], 1).await.unwrap();
    assert_eq!(replies[0].retry_after, Duration::from_secs(360));
}

/// Whenever the engine is lost: what servers saw of it is not granted a second time.
#[tokio::test(start_paused = true)]
async fn a_lost_engine_costs_no_more_than_one_bucket_per_server() {
    for granted_before in 0..=10 {
        for asked in 1..=SERVERS {
            let fleet = fleet();
            let mut granted = 0;
            for number in 0..granted_before {
                let server = &fleet.servers[number % asked];
                granted += u64::from(is_granted(server, hourly(10)).await);
            }
            fleet.engine.away.store(true, Ordering::SeqCst);
            granted += fleet.take_in_turn(hourly(10), 120).await;
            let context = format!("{granted_before} before, by {asked}");
            assert!(granted <= 30, "{granted} granted; {context}");
            if granted_before == 10 && asked == 1 {
                assert_eq!(granted, 30, "{context}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_comes_back_counts_again() {
    let fleet = fleet();
    fleet.engine.away.store(true, Ordering::SeqCst);
    assert_eq!(fleet.take_in_turn(hourly(10), 30).await, 30);
    fleet.engine.away.store(false, Ordering::SeqCst);
    assert_eq!(fleet.take_in_turn(hourly(10), 3).await, 0, "before a pause");
    tokio::time::advance(Duration::from_secs(1)).await;
    let again = fleet.take_in_turn(hourly(10), 60).await;
    assert_eq!(again, 10, "one bucket more at most");
    assert!(fleet.servers.iter().all(|server| !server.is_degraded()));
}

#[tokio::test(start_paused = true)]
async fn a_silent_engine_is_waited_for_once_in_a_pause() {
    let fleet = fleet();
    fleet.engine.silent.store(true, Ordering::SeqCst);
    let began = tokio::time::Instant::now();
    for _ in 0..100 {
        is_granted(&fleet.servers[0], hourly(1_000)).await;
    }
    assert_eq!(began.elapsed(), TIMEOUT);
}

/// Clicks at full speed on three servers: no more than there is, nearly all of it, and hardly a question to the engine.
#[tokio::test(start_paused = true)]
async fn what_is_taken_ahead_needs_few_questions_and_never_overshoots() {
    let fleet = fleet();
    let mut granted = 0;
    for _ in 0..2_000 {
        for server in &fleet.servers {
            granted += u64::from(is_granted_ahead(server, hourly(2_000)).await);
        }
    }
    // All of it, but for what two of the servers may keep for themselves.
    assert!((1_800..=2_000).contains(&granted), "{granted}");
    assert!(fleet.engine.calls() <= 150, "{}", fleet.engine.calls());
    let replies = fleet.servers[0].take_ahead(&[hourly(2_000)], 1).await;
    assert!(!replies.unwrap()[0].granted);
}

#[tokio::test(start_paused = true)]
async fn a_reserve_that_is_not_used_goes_back() {
    let fleet = fleet();
    let [busy, other] = [&fleet.servers[0], &fleet.servers[1]];
    for _ in 0..50 {
        assert!(is_granted_ahead(busy, hourly(2_000)).await);
    }
    let known = other.take(&[hourly(2_000)], 0).await.unwrap()[0].remaining;
    assert!(known < 1_950, "nothing was taken ahead: {known}");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(is_granted_ahead(busy, hourly(2_000)).await);
    let known = other.take(&[hourly(2_000)], 0).await.unwrap()[0].remaining;
    assert_eq!(known, 1_949);
}

#[tokio::test(start_paused = true)]
async fn small_buckets_are_exact_ahead_and_refusals_are_remembered() {
    let fleet = fleet();
    let mut granted = 0;
    for _ in 0..100 {
        for server in &fleet.servers {
            granted += u64::from(is_granted_ahead(server, hourly(10)).await);
        }
    }
    assert_eq!(granted, 10);
    assert!(fleet.engine.calls() <= 13, "{}", fleet.engine.calls());
    // A refusal is believed for a second at most; then what came back is found.
    fleet.clock.set(START.plus(Duration::from_secs(720)));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(is_granted_ahead(&fleet.servers[0], hourly(10)).await);
}

#[tokio::test(start_paused = true)]
async fn a_new_rule_is_obeyed_at_once() {
    let fleet = fleet();
    let server = &fleet.servers[0];
    for _ in 0..50 {
        assert!(is_granted_ahead(server, hourly(2_000)).await);
    }
    assert!(!is_granted_ahead(server, hourly(10)).await);
    assert!(is_granted_ahead(server, hourly(4_000)).await);
}
