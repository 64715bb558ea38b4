//! Buckets that refill evenly, counted without rounding.
//!
//! A bucket is one number: when it will be full again. Taking `n` of `amount` per `period` moves that instant
//! `n × period / amount` into the future, and is granted while it stays within one period from now (this is known as
//! GCRA). To keep whole numbers, instants are held multiplied by the rule's amount.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{QuotaReply, QuotaRule, Quotas};
use curt_core::{PortResult, UnixMillis};

use super::locked;

/// Buckets that are kept before the full ones, which say nothing, are swept out.
const BUCKETS_BEFORE_SWEEP: usize = 1_024;
/// Longest period, a century and a half: the product with any amount fits into 126 bits.
const PERIOD_NANOS_MAX: u128 = 1 << 62;

#[derive(Debug)]
pub struct MemoryQuotas {
    buckets: Mutex<Buckets>,
}

#[derive(Debug)]
struct Buckets {
    by_name: HashMap<Box<str>, Bucket>,
    sweep_at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    rule: QuotaRule,
    /// When the bucket is full again, in nanoseconds since 1970 times the rule's amount.
    full_at: i128,
}

impl MemoryQuotas {
    #[must_use]
    pub fn new() -> Self {
        Self {
            buckets: Mutex::new(Buckets {
                by_name: HashMap::new(),
                sweep_at: BUCKETS_BEFORE_SWEEP,
            }),
        }
    }

    /// Buckets that are remembered now.
    #[must_use]
    pub fn bucket_count(&self) -> usize {
        locked(&self.buckets).by_name.len()
    }
}

impl Default for MemoryQuotas {
    fn default() -> Self {
        Self::new()
    }
}

impl Bucket {
    fn full(rule: QuotaRule) -> Self {
        Self {
            rule,
            full_at: i128::MIN,
        }
    }

    /// What refilling one unit takes, times the amount.
    fn cost(&self) -> i128 {
        let nanos = self.rule.period.as_nanos().min(PERIOD_NANOS_MAX);
        i128::try_from(nanos).unwrap_or(i128::MAX)
    }

    fn capacity(&self) -> i128 {
        self.cost() * self.amount()
    }

    fn amount(&self) -> i128 {
        i128::from(self.rule.amount)
    }

    fn instant(&self, now: UnixMillis) -> i128 {
        (i128::from(now.0) * 1_000_000).saturating_mul(self.amount())
    }

    /// What is missing from a full bucket at `now`. Never more than all of it: after the clock has stepped back, the
    /// bucket is empty at worst.
    fn missing(&self, now: UnixMillis) -> i128 {
        let until_full = self.full_at.saturating_sub(self.instant(now));
        until_full.clamp(0, self.capacity())
    }

    fn set_missing(&mut self, missing: i128, now: UnixMillis) {
        self.full_at = self.instant(now).saturating_add(missing);
    }

    /// The same bucket under a new rule: what was taken stays taken, as far as the new bucket can miss it.
    fn under(self, rule: QuotaRule, now: UnixMillis) -> Self {
        let taken = match self.cost() {
            0 => 0,
            cost => (self.missing(now) + cost - 1) / cost,
        };
        let mut bucket = Self::full(rule);
        let missing = taken.saturating_mul(bucket.cost());
        bucket.set_missing(missing.min(bucket.capacity()), now);
        bucket
    }

    fn take(&mut self, amount: u64, now: UnixMillis) -> QuotaReply {
        let missing = self.missing(now);
        self.set_missing(missing, now);
        if amount > self.rule.amount {
            return self.reply(false, Duration::MAX, now);
        }
        let wanted = missing.saturating_add(self.cost() * i128::from(amount));
        let excess = wanted.saturating_sub(self.capacity());
        if excess > 0 {
            return self.reply(false, self.time_to_refill(excess), now);
        }
        self.set_missing(wanted, now);
        self.reply(true, Duration::ZERO, now)
    }

    fn reply(&self, granted: bool, retry_after: Duration, now: UnixMillis) -> QuotaReply {
        let missing = self.missing(now);
        let left = match self.cost() {
            0 => self.amount(),
            cost => (self.capacity() - missing) / cost,
        };
        QuotaReply {
            granted,
            remaining: u64::try_from(left).unwrap_or(0),
            retry_after,
            reset_after: self.time_to_refill(missing),
        }
    }

    /// Time until `missing` has come back, rounded up to what the caller's clock can measure.
    fn time_to_refill(&self, missing: i128) -> Duration {
        let per_milli = self.amount().saturating_mul(1_000_000).max(1);
        let whole = missing / per_milli;
        let millis = whole + i128::from(missing % per_milli > 0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

impl Buckets {
    /// An unknown bucket is full, so that full ones need not be known.
    fn sweep(&mut self, now: UnixMillis) {
        if self.by_name.len() >= self.sweep_at {
            self.by_name.retain(|_, bucket| bucket.missing(now) > 0);
            self.sweep_at = BUCKETS_BEFORE_SWEEP.max(self.by_name.len() * 2);
        }
    }
}

#[async_trait]
impl Quotas for MemoryQuotas {
    async fn take(
        &self,
        name: &str,
        amount: u64,
        rule: QuotaRule,
        now: UnixMillis,
    ) -> PortResult<QuotaReply> {
        let mut buckets = locked(&self.buckets);
        buckets.sweep(now);
        let known = buckets.by_name.get(name).copied();
        let mut bucket = match known {
            Some(bucket) if bucket.rule == rule => bucket,
            Some(bucket) => bucket.under(rule, now),
            None => Bucket::full(rule),
        };
        let reply = bucket.take(amount, now);
        buckets.by_name.insert(name.into(), bucket);
        Ok(reply)
    }
}
