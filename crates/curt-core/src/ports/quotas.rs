use std::time::Duration;

use async_trait::async_trait;

use crate::error::PortResult;

/// How much of something is left, counted by the engine's clock: clocks of processes differ.
#[async_trait]
pub trait Quotas: Send + Sync {
    /// Takes `amount` from every one of `buckets`, from all or from none, in one atomic step. An unknown
    /// bucket is full. Returns one reply per bucket, in order; the request was granted if every reply says so, and if
    /// one does not, nothing was taken from any. No bucket: no reply. The names are different.
    /// Called twice: takes twice. Timed out: unknown; the caller decides whether to let the request through.
    async fn take(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<Vec<QuotaReply>>;

    /// The same for a caller who may be answered from what was taken ahead of it: with no round trip to the engine for
    /// each call, and by a count that is late by as much as one process takes ahead.
    async fn take_ahead(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<Vec<QuotaReply>> {
        self.take(buckets, amount).await
    }

    /// Puts `amount` back into every one of `buckets`; none gets fuller than full. For what was taken before it
    /// was known whether it counts. Called twice: gives back twice. Timed out: unknown; the bucket refills by itself.
    async fn give_back(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<()>;
}

/// What is counted, and how much of it there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket<'a> {
    pub name: &'a str,
    pub rule: QuotaRule,
}

/// `amount` per `period`, all of which may be taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaRule {
    pub amount: u64,
    pub period: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaReply {
    /// Whether this bucket had enough.
    pub granted: bool,
    /// What could be taken now, after this call.
    pub remaining: u64,
    /// Until the same call would be granted; zero when it was. Waiting this long is enough, to the millisecond.
    /// `Duration::MAX` when it never would be: more was asked for than the bucket can hold.
    pub retry_after: Duration,
    /// Until the bucket is full again.
    pub reset_after: Duration,
}
