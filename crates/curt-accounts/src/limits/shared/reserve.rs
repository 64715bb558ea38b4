//! Allowance that this process has taken ahead, from which it answers without asking the engine.
//!
//! What is in a reserve has been taken from its buckets, so that all processes together never grant more than there was.
//! The price is that up to [`BATCH_SHARE`] of a bucket, per process, may lie where nobody asks for it: it goes back with the
//! next question, or comes back with time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use curt_core::PortResult;
use curt_core::ports::{Bucket, QuotaReply, QuotaRule, Quotas};
use quick_cache::sync::Cache;
use tokio::time::Instant;

/// Buckets that have a reserve; of more, the least used lose theirs.
const RESERVES_MAX: usize = 16_384;
/// A batch is this part of its smallest bucket at most, and never more than [`BATCH_MAX`].
const BATCH_SHARE: u64 = 20;
const BATCH_MAX: u64 = 1_000;
/// A reserve that was used up sooner than this gets twice as much the next time.
const USED_UP_SOON: Duration = Duration::from_millis(100);
/// A reserve that is older than this is given back before a new one is taken; one refusal is repeated for as long.
const RESERVE_TTL: Duration = Duration::from_secs(1);

/// Reserves by the names of their buckets.
pub(super) struct Reserves(Cache<String, Arc<Reserve>>);

impl Default for Reserves {
    fn default() -> Self {
        Self(Cache::new(RESERVES_MAX))
    }
}

#[derive(Default)]
struct Reserve {
    holding: Mutex<Holding>,
    /// Held while the engine is asked: one question at a time.
    asking: tokio::sync::Mutex<()>,
}

/// What a reserve has, and the engine's last answer.
#[derive(Default)]
struct Holding {
    rules: Vec<QuotaRule>,
    left: u64,
    batch: u64,
    answer: Option<Answer>,
}

struct Answer {
    at: Instant,
    replies: Vec<QuotaReply>,
}

/// What to do before the next answers.
struct Plan {
    /// What to give back, and the rules that it was taken by: under others it would be worth something else.
    stale: u64,
    stale_rules: Vec<QuotaRule>,
    batch: u64,
}

impl Answer {
    fn is_refusal(&self) -> bool {
        self.replies.iter().any(|reply| !reply.granted)
    }

    /// Until when the same question would be refused.
    fn refuses_until(&self) -> Instant {
        let waits = self.replies.iter().map(|reply| reply.retry_after);
        self.at + waits.max().unwrap_or_default().min(RESERVE_TTL)
    }

    /// The replies as they would be now, with `left` more to take than the engine knew.
    fn replies_now(&self, left: u64) -> Vec<QuotaReply> {
        let passed = self.at.elapsed();
        let replies = self.replies.iter().map(|reply| QuotaReply {
            remaining: reply.remaining.saturating_add(left),
            retry_after: match reply.retry_after {
                Duration::MAX => Duration::MAX,
                wait => wait.saturating_sub(passed),
            },
            reset_after: reply.reset_after.saturating_sub(passed),
            ..*reply
        });
        replies.collect()
    }
}

impl Holding {
    /// Answers from what is there, if that is possible, and says whether more should be taken in time.
    fn answer(&mut self, rules: &[QuotaRule]) -> Option<(Vec<QuotaReply>, bool)> {
        if self.rules != rules {
            return None;
        }
        let answer = self.answer.as_ref()?;
        if self.left > 0 && answer.at.elapsed() <= RESERVE_TTL {
            self.left -= 1;
            let is_low = self.left == self.batch / 2 && self.left > 0;
            let mut replies = answer.replies_now(self.left);
            for reply in &mut replies {
                (reply.granted, reply.retry_after) = (true, Duration::ZERO);
            }
            return Some((replies, is_low));
        }
        let is_refused = answer.is_refusal() && Instant::now() < answer.refuses_until();
        is_refused.then(|| (answer.replies_now(0), false))
    }

    /// Decides on the next batch.
    fn plan(&mut self, rules: &[QuotaRule]) -> Plan {
        let amounts = rules.iter().map(|rule| rule.amount);
        let most = (amounts.min().unwrap_or(0) / BATCH_SHARE).clamp(1, BATCH_MAX);
        let age = self.answer.as_ref().map(|answer| answer.at.elapsed());
        let is_same = self.rules == rules;
        self.batch = match age.filter(|_| is_same) {
            Some(age) if age < USED_UP_SOON => self.batch.saturating_mul(2).clamp(1, most),
            Some(age) if age <= RESERVE_TTL => self.batch.clamp(1, most),
            _ => 1,
        };
        let is_stale = age.is_some_and(|age| age > RESERVE_TTL) || !is_same;
        let stale = match is_stale {
            true => std::mem::take(&mut self.left),
            false => 0,
        };
        Plan {
            stale,
            stale_rules: std::mem::replace(&mut self.rules, rules.to_vec()),
            batch: self.batch,
        }
    }
}

impl Reserves {
    /// Takes one from every bucket, or from none.
    pub(super) async fn take_one(
        &self,
        quotas: &dyn Quotas,
        buckets: &[Bucket<'_>],
    ) -> PortResult<Vec<QuotaReply>> {
        let names: Vec<&str> = buckets.iter().map(|bucket| bucket.name).collect();
        let names = names.join("\n");
        let reserve = match self.0.get(&names) {
            Some(reserve) => reserve,
            None => {
                let made = || Ok::<_, std::convert::Infallible>(Arc::default());
                self.0.get_or_insert_with(&names, made).unwrap_or_default()
            }
        };
        let rules: Vec<QuotaRule> = buckets.iter().map(|bucket| bucket.rule).collect();
        let answered = reserve.lock().answer(&rules);
        if let Some((replies, is_low)) = answered {
            // In time: the others are answered from the rest meanwhile.
            if is_low && let Ok(asking) = reserve.asking.try_lock() {
                reserve.refill(quotas, buckets, &rules).await?;
                drop(asking);
            }
            return Ok(replies);
        }
        let _asking = reserve.asking.lock().await;
        // Those who waited find what the first one took.
        if let Some((replies, _)) = reserve.lock().answer(&rules) {
            return Ok(replies);
        }
        reserve.refill(quotas, buckets, &rules).await?;
        let answered = reserve.lock().answer(&rules);
        match answered {
            Some((replies, _)) => Ok(replies),
            // Used up by others in the meantime, who did not wait.
            None => quotas.take(buckets, 1).await,
        }
    }
}

impl Reserve {
    fn lock(&self) -> MutexGuard<'_, Holding> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next batch, or as much of it as there is.
    async fn refill(
        &self,
        quotas: &dyn Quotas,
        buckets: &[Bucket<'_>],
        rules: &[QuotaRule],
    ) -> PortResult<()> {
        let plan = self.lock().plan(rules);
        if plan.stale > 0 {
            let taken = buckets.iter().zip(plan.stale_rules);
            let taken: Vec<_> = taken
                .map(|(bucket, rule)| Bucket { rule, ..*bucket })
                .collect();
            quotas.give_back(&taken, plan.stale).await?;
        }
        let mut amount = plan.batch;
        loop {
            let replies = quotas.take(buckets, amount).await?;
            let answer = Answer {
                at: Instant::now(),
                replies,
            };
            let is_refusal = answer.is_refusal();
            if is_refusal && amount > 1 {
                let left = answer.replies.iter().map(|reply| reply.remaining);
                amount = left.min().unwrap_or(0).clamp(1, amount - 1);
                continue;
            }
            let mut holding = self.lock();
            holding.left += if is_refusal { 0 } else { amount };
            holding.answer = Some(answer);
            return Ok(());
        }
    }
}
