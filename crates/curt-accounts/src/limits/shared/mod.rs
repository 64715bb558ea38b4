//! Quotas that several processes count together in one engine, and what each does while that engine is away.
//!
//! Every reply of the engine is noted in this process's own count. Without the engine that count goes on from what was
//! seen last, so that nobody is refused for its absence and nobody goes without a limit. The overshoot is bounded: of the
//! servers that ever asked about a bucket, the one that asked last knows all that was granted, and each other one grants
//! a whole bucket at most: `servers × amount` in all, as refilled since. What is granted meanwhile is not taken from the
//! engine when it comes back: that adds one `amount` at most.

mod breaker;
mod reserve;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::names::event;
use curt_core::ports::{Bucket, QuotaReply, Quotas};
use curt_core::{ErrorKind, PortError, PortResult};

use self::breaker::Breaker;
use self::reserve::Reserves;

/// Quotas in an engine that other processes use, too. Calls never fail while `local` does not.
pub struct SharedQuotas {
    engine: Arc<dyn Quotas>,
    /// This process's own count.
    local: Arc<dyn Quotas>,
    timeout: Duration,
    breaker: Breaker,
    reserves: Reserves,
    fallbacks: AtomicU64,
}

impl SharedQuotas {
    /// An answer of `engine` that takes longer than `timeout` counts as none.
    #[must_use]
    pub fn new(engine: Arc<dyn Quotas>, local: Arc<dyn Quotas>, timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            engine,
            local,
            timeout,
            breaker: Breaker::default(),
            reserves: Reserves::default(),
            fallbacks: AtomicU64::new(0),
        })
    }

    /// Returns whether this process counts alone now.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.breaker.is_open()
    }

    /// Returns how many calls this process has answered by its own count since the start.
    #[must_use]
    pub fn fallbacks(&self) -> u64 {
        self.fallbacks.load(Ordering::Relaxed)
    }

    /// Asks the engine, unless it failed a moment ago.
    async fn ask<T>(&self, question: impl Future<Output = PortResult<T>>) -> Option<T> {
        if !self.breaker.admits() {
            self.fallbacks.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let answer = tokio::time::timeout(self.timeout, question).await;
        let failure = match answer {
            Ok(Ok(answer)) => {
                if self.breaker.close() {
                    tracing::info!(
                        event = event::QUOTAS_RECOVERED,
                        "limits counted together again"
                    );
                }
                return Some(answer);
            }
            Ok(Err(failure)) => failure,
            Err(_) => PortError::new(
                ErrorKind::Timeout,
                "quotas",
                "ask",
                format!("no answer within limits.shared_timeout, {:?}", self.timeout),
            ),
        };
        self.fallbacks.fetch_add(1, Ordering::Relaxed);
        if self.breaker.open() {
            tracing::warn!(event = event::QUOTAS_DEGRADED, %failure, "limits counted by this process alone");
        }
        None
    }

    /// Brings the own count down to what the engine says is left.
    async fn note(&self, bucket: &Bucket<'_>, reply: &QuotaReply) -> PortResult<()> {
        let bucket = [*bucket];
        let known = self.local.take(&bucket, 0).await?;
        let known = known.first().map_or(0, |known| known.remaining);
        if let excess @ 1.. = known.saturating_sub(reply.remaining) {
            self.local.take(&bucket, excess).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Quotas for SharedQuotas {
    async fn take(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<Vec<QuotaReply>> {
        let Some(replies) = self.ask(self.engine.take(buckets, amount)).await else {
            return self.local.take(buckets, amount).await;
        };
        for (bucket, reply) in buckets.iter().zip(&replies) {
            self.note(bucket, reply).await?;
        }
        Ok(replies)
    }

    async fn take_ahead(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<Vec<QuotaReply>> {
        match amount {
            1 => self.reserves.take_one(self, buckets).await,
            _ => self.take(buckets, amount).await,
        }
    }

    async fn give_back(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<()> {
        // What the engine does not hear of comes back with time.
        let _heard = self.ask(self.engine.give_back(buckets, amount)).await;
        self.local.give_back(buckets, amount).await
    }
}
