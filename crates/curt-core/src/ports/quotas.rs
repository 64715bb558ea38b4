use std::time::Duration;

use async_trait::async_trait;

use crate::clock::UnixMillis;
use crate::error::PortResult;

/// How much of something is left.
#[async_trait]
pub trait Quotas: Send + Sync {
    /// Takes `amount` from the bucket `name` at `now`, all or nothing, in one atomic step. An unknown bucket is full.
    /// Called twice: takes twice. Timed out: unknown; the caller decides whether to let the request through.
    async fn take(
        &self,
        name: &str,
        amount: u64,
        rule: QuotaRule,
        now: UnixMillis,
    ) -> PortResult<QuotaReply>;
}

/// `amount` per `period`, all of which may be taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaRule {
    pub amount: u64,
    pub period: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaReply {
    pub granted: bool,
    /// What could be taken now, after this call.
    pub remaining: u64,
    /// Until the same call would be granted; zero when it was. Waiting this long is enough, to the millisecond.
    /// `Duration::MAX` when it never would be: more was asked for than the bucket can hold.
    pub retry_after: Duration,
    /// Until the bucket is full again.
    pub reset_after: Duration,
}
