//! Buckets that refill evenly, counted without rounding.
//!
//! A bucket is one number: when it will be full again. Taking `n` of `amount` per `period` moves that instant
//! `n × period / amount` into the future, and is granted while it stays within one period from now (this is known as
//! GCRA). To keep whole numbers, instants are held multiplied by the rule's amount.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{Bucket, QuotaReply, QuotaRule, Quotas};
use curt_core::{Clock, PortResult, UnixMillis};

use super::locked;

/// Buckets that are kept before the full ones, which say nothing, are swept out.
const BUCKETS_BEFORE_SWEEP: usize = 1_024;
/// Longest period, a century and a half: the product with any amount fits into 126 bits.
const PERIOD_NANOS_MAX: u128 = 1 << 62;

/// Buckets of one process, counted by the injected clock.
pub struct MemoryQuotas {
    clock: Arc<dyn Clock>,
    buckets: Mutex<Buckets>,
}

struct Buckets {
    by_name: HashMap<Box<str>, Level>,
    sweep_at: usize,
}

/// How full a bucket is.
#[derive(Clone, Copy, Debug)]
struct Level {
    rule: QuotaRule,
    /// When the bucket is full again, in nanoseconds since 1970 times the rule's amount.
    full_at: i128,
}

impl MemoryQuotas {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
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

impl Level {
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
        let mut level = Self::full(rule);
        let missing = taken.saturating_mul(level.cost());
        level.set_missing(missing.min(level.capacity()), now);
        level
    }

    /// The level once `amount` is taken, or how long to wait until it can be.
    fn without(self, amount: u64, now: UnixMillis) -> Result<Self, Duration> {
        if amount > self.rule.amount {
            return Err(Duration::MAX);
        }
        let wanted = self
            .missing(now)
            .saturating_add(self.cost() * i128::from(amount));
        let excess = wanted.saturating_sub(self.capacity());
        if excess > 0 {
            return Err(self.time_to_refill(excess));
        }
        let mut level = self;
        level.set_missing(wanted, now);
        Ok(level)
    }

    /// The level once `amount` is put back.
    fn with(self, amount: u64, now: UnixMillis) -> Self {
        let back = self.cost().saturating_mul(i128::from(amount));
        let mut level = self;
        level.set_missing((self.missing(now) - back).max(0), now);
        level
    }

    fn reply(&self, refused_for: Option<Duration>, now: UnixMillis) -> QuotaReply {
        let missing = self.missing(now);
        let left = match self.cost() {
            0 => self.amount(),
            cost => (self.capacity() - missing) / cost,
        };
        QuotaReply {
            granted: refused_for.is_none(),
            remaining: u64::try_from(left).unwrap_or(0),
            retry_after: refused_for.unwrap_or_default(),
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
            self.by_name.retain(|_, level| level.missing(now) > 0);
            self.sweep_at = BUCKETS_BEFORE_SWEEP.max(self.by_name.len() * 2);
        }
    }

    /// How full the bucket is at `now`.
    fn level(&self, bucket: &Bucket<'_>, now: UnixMillis) -> Level {
        let mut level = match self.by_name.get(bucket.name) {
            Some(level) if level.rule == bucket.rule => *level,
            Some(level) => level.under(bucket.rule, now),
            None => Level::full(bucket.rule),
        };
        level.set_missing(level.missing(now), now);
        level
    }

    fn set(&mut self, name: &str, level: Level) {
        match self.by_name.get_mut(name) {
            Some(known) => *known = level,
            None => drop(self.by_name.insert(name.into(), level)),
        }
    }

    fn take(&mut self, buckets: &[Bucket<'_>], amount: u64, now: UnixMillis) -> Vec<QuotaReply> {
        self.sweep(now);
        let before: Vec<Level> = buckets
            .iter()
            .map(|bucket| self.level(bucket, now))
            .collect();
        let after: Vec<_> = before
            .iter()
            .map(|level| level.without(amount, now))
            .collect();
        let all_granted = after.iter().all(Result::is_ok);
        let mut replies = Vec::with_capacity(buckets.len());
        for ((bucket, before), after) in buckets.iter().zip(before).zip(after) {
            let level = after.ok().filter(|_| all_granted).unwrap_or(before);
            self.set(bucket.name, level);
            replies.push(level.reply(after.err(), now));
        }
        replies
    }
}

#[async_trait]
impl Quotas for MemoryQuotas {
    async fn take(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<Vec<QuotaReply>> {
        let now = self.clock.now();
        Ok(locked(&self.buckets).take(buckets, amount, now))
    }

    async fn give_back(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<()> {
        let now = self.clock.now();
        let mut held = locked(&self.buckets);
        for bucket in buckets {
            let level = held.level(bucket, now).with(amount, now);
            held.set(bucket.name, level);
        }
        Ok(())
    }
}
