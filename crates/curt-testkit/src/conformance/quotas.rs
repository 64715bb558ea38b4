//! Clauses of [`Quotas`].

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use curt_core::UnixMillis;
use curt_core::clock::ManualClock;
use curt_core::ports::{Bucket, QuotaReply, QuotaRule, Quotas};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{RACERS, race, same};
use crate::sample::NOW;

type Port = Clocked;

/// A test for each clause. `$open` gives a fresh adapter, with what keeps it alive.
#[macro_export]
macro_rules! quotas_tests {
    ($open:expr) => {
        mod quotas {
            use super::*;
            $crate::clause_tests!(
                $open,
                quotas,
                an_unknown_bucket_is_full,
                a_take_is_all_or_nothing,
                a_bucket_refills_evenly,
                buckets_are_apart,
                what_is_given_back_can_be_taken_again,
                nothing_can_be_taken_from_an_empty_rule,
                more_than_the_bucket_holds_is_never_granted,
                a_clock_that_steps_back_costs_one_period_at_most,
                racers_share_what_there_is,
                several_buckets_are_taken_from_together,
                one_empty_bucket_keeps_the_others_full,
                no_bucket_no_reply,
                racers_never_overshoot_the_smallest_of_several_buckets,
                waiting_for_the_slowest_of_several_buckets_is_just_enough,
                every_reply_is_true
            );
        }
    };
}

/// The port and the clock that it counts by, which the clauses set before each call.
#[derive(Clone)]
pub struct Clocked {
    pub quotas: Arc<dyn Quotas>,
    pub clock: Arc<ManualClock>,
}

impl Clocked {
    fn at(&self, now: UnixMillis) -> &dyn Quotas {
        self.clock.set(now);
        &*self.quotas
    }
}

const TEN_A_SECOND: QuotaRule = QuotaRule {
    amount: 10,
    period: Duration::from_secs(1),
};

fn after(millis: u64) -> UnixMillis {
    NOW.plus(Duration::from_millis(millis))
}

async fn take(quotas: &Port, amount: u64, now: UnixMillis) -> Result<QuotaReply> {
    take_from(quotas, "a", TEN_A_SECOND, amount, now).await
}

/// Takes from one bucket.
async fn take_from(
    quotas: &Port,
    name: &str,
    rule: QuotaRule,
    amount: u64,
    now: UnixMillis,
) -> Result<QuotaReply> {
    let mut replies = quotas
        .at(now)
        .take(&[Bucket { name, rule }], amount)
        .await?;
    same("replies", replies.len(), 1)?;
    replies.pop().context("no reply")
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub async fn an_unknown_bucket_is_full(quotas: Port) -> Result<()> {
    let want = QuotaReply {
        granted: true,
        remaining: 10,
        retry_after: Duration::ZERO,
        reset_after: Duration::ZERO,
    };
    same("asking for nothing", take(&quotas, 0, NOW).await?, want)?;
    let got = take(&quotas, 10, NOW).await?;
    ensure!(got.granted, "all of it at once: {got:?}");
    same("left", got.remaining, 0)?;
    same("until full", got.reset_after, millis(1_000))
}

pub async fn a_take_is_all_or_nothing(quotas: Port) -> Result<()> {
    take(&quotas, 7, NOW).await?;
    let got = take(&quotas, 4, NOW).await?;
    let want = QuotaReply {
        granted: false,
        remaining: 3,
        retry_after: millis(100),
        reset_after: millis(700),
    };
    same("too much", got, want)?;
    let got = take(&quotas, 3, NOW).await?;
    ensure!(
        got.granted && got.remaining == 0,
        "nothing was taken: {got:?}"
    );
    Ok(())
}

pub async fn a_bucket_refills_evenly(quotas: Port) -> Result<()> {
    take(&quotas, 10, NOW).await?;
    ensure!(!take(&quotas, 1, after(99)).await?.granted, "too early");
    ensure!(take(&quotas, 1, after(100)).await?.granted, "one is back");
    ensure!(!take(&quotas, 1, after(199)).await?.granted, "too early");
    same(
        "by half a second",
        take(&quotas, 0, after(600)).await?.remaining,
        5,
    )?;
    same(
        "never over full",
        take(&quotas, 0, after(99_000)).await?.remaining,
        10,
    )
}

pub async fn what_is_given_back_can_be_taken_again(quotas: Port) -> Result<()> {
    let bucket = |name| Bucket {
        name,
        rule: TEN_A_SECOND,
    };
    quotas.at(NOW).give_back(&[bucket("a")], 5).await?;
    let got = take(&quotas, 0, NOW).await?;
    same("no fuller than full", got.remaining, 10)?;
    take(&quotas, 10, NOW).await?;
    take_from(&quotas, "b", TEN_A_SECOND, 4, NOW).await?;
    let both = [bucket("a"), bucket("b")];
    quotas.at(NOW).give_back(&both, 1).await?;
    quotas.at(NOW).give_back(&both, 1).await?;
    same("of one", take(&quotas, 0, NOW).await?.remaining, 2)?;
    let other = take_from(&quotas, "b", TEN_A_SECOND, 0, NOW).await?;
    same("of the other", other.remaining, 8)?;
    quotas
        .at(after(50))
        .give_back(&[bucket("a")], u64::MAX)
        .await?;
    let got = take(&quotas, 10, after(50)).await?;
    ensure!(got.granted, "full again: {got:?}");
    Ok(())
}

pub async fn buckets_are_apart(quotas: Port) -> Result<()> {
    take(&quotas, 10, NOW).await?;
    for name in ["b", "A", "", "a'; --", "a/b"] {
        let got = take_from(&quotas, name, TEN_A_SECOND, 10, NOW).await?;
        ensure!(got.granted, "{name:?} was empty");
    }
    Ok(())
}

pub async fn nothing_can_be_taken_from_an_empty_rule(quotas: Port) -> Result<()> {
    let none = QuotaRule {
        amount: 0,
        ..TEN_A_SECOND
    };
    let got = take_from(&quotas, "a", none, 1, NOW).await?;
    ensure!(!got.granted, "granted");
    same("left", got.remaining, 0)
}

pub async fn more_than_the_bucket_holds_is_never_granted(quotas: Port) -> Result<()> {
    let got = take(&quotas, 11, NOW).await?;
    ensure!(!got.granted, "granted");
    same("never", got.retry_after, Duration::MAX)?;
    same("nothing was taken", got.remaining, 10)?;
    let got = take(&quotas, u64::MAX, NOW).await?;
    ensure!(!got.granted, "granted");
    Ok(())
}

pub async fn a_clock_that_steps_back_costs_one_period_at_most(quotas: Port) -> Result<()> {
    take(&quotas, 10, after(3_600_000)).await?;
    let got = take(&quotas, 1, NOW).await?;
    ensure!(
        got.retry_after <= TEN_A_SECOND.period,
        "waits {:?}",
        got.retry_after
    );
    let got = take(&quotas, 1, NOW.plus(got.retry_after)).await?;
    ensure!(got.granted, "waiting was not enough");
    Ok(())
}

pub async fn racers_share_what_there_is(quotas: Port) -> Result<()> {
    let replies = race(RACERS, |_| {
        let quotas = quotas.clone();
        async move { quotas.at(NOW).take(&[A], 3).await }
    })
    .await?;
    let granted = replies.iter().filter(|replies| replies[0].granted).count();
    same("granted", granted, 3)
}

const A: Bucket<'_> = Bucket {
    name: "a",
    rule: TEN_A_SECOND,
};
const FIVE_A_MINUTE: Bucket<'_> = Bucket {
    name: "b",
    rule: QuotaRule {
        amount: 5,
        period: Duration::from_secs(60),
    },
};

fn refilled_in(granted: bool, remaining: u64, retry: u64, reset: u64) -> QuotaReply {
    QuotaReply {
        granted,
        remaining,
        retry_after: millis(retry),
        reset_after: millis(reset),
    }
}

pub async fn several_buckets_are_taken_from_together(quotas: Port) -> Result<()> {
    let got = quotas.at(NOW).take(&[A, FIVE_A_MINUTE], 4).await?;
    let want = vec![
        refilled_in(true, 6, 0, 400),
        refilled_in(true, 1, 0, 48_000),
    ];
    same("one reply per bucket, in order", got, want)?;
    let got = quotas.at(NOW).take(&[FIVE_A_MINUTE, A], 1).await?;
    let want = vec![
        refilled_in(true, 0, 0, 60_000),
        refilled_in(true, 5, 0, 500),
    ];
    same("in another order", got, want)
}

pub async fn one_empty_bucket_keeps_the_others_full(quotas: Port) -> Result<()> {
    take_from(&quotas, "b", FIVE_A_MINUTE.rule, 3, NOW).await?;
    for buckets in [[A, FIVE_A_MINUTE], [FIVE_A_MINUTE, A]] {
        let mut got = quotas.at(NOW).take(&buckets, 3).await?;
        got.sort_by_key(|reply| reply.granted);
        let want = vec![
            refilled_in(false, 2, 12_000, 36_000),
            refilled_in(true, 10, 0, 0),
        ];
        same("what each bucket has", got, want)?;
    }
    let got = quotas.at(NOW).take(&[A, FIVE_A_MINUTE], 2).await?;
    ensure!(
        got.iter().all(|reply| reply.granted),
        "nothing had been taken: {got:?}"
    );
    Ok(())
}

pub async fn no_bucket_no_reply(quotas: Port) -> Result<()> {
    same("replies", quotas.at(NOW).take(&[], 1).await?, vec![])
}

pub async fn racers_never_overshoot_the_smallest_of_several_buckets(quotas: Port) -> Result<()> {
    let replies = race(RACERS, |n| {
        let quotas = quotas.clone();
        async move {
            // Half of them name the buckets the other way round, as two kinds of request would.
            if n % 2 == 0 {
                quotas.at(NOW).take(&[A, FIVE_A_MINUTE], 1).await
            } else {
                quotas.at(NOW).take(&[FIVE_A_MINUTE, A], 1).await
            }
        }
    })
    .await?;
    let is_granted = |replies: &&Vec<QuotaReply>| replies.iter().all(|reply| reply.granted);
    same("granted", replies.iter().filter(is_granted).count(), 5)?;
    same(
        "left in the larger",
        take(&quotas, 0, NOW).await?.remaining,
        5,
    )
}

pub async fn waiting_for_the_slowest_of_several_buckets_is_just_enough(quotas: Port) -> Result<()> {
    let thirds = Bucket {
        name: "c",
        rule: QuotaRule {
            amount: 3,
            period: Duration::from_secs(1),
        },
    };
    let buckets = [A, thirds, FIVE_A_MINUTE];
    let mut now = NOW;
    for amount in [3, 1, 1, 2, 3, 3] {
        let replies = quotas.at(now).take(&buckets, amount).await?;
        let wait = replies.iter().map(|reply| reply.retry_after).max();
        let Some(wait) = wait.filter(|wait| !wait.is_zero()) else {
            continue;
        };
        let early = now.plus(wait - millis(1));
        let replies = quotas.at(early).take(&buckets, amount).await?;
        ensure!(
            replies.iter().any(|reply| !reply.granted),
            "one millisecond less than {wait:?} was enough"
        );
        now = now.plus(wait);
        let replies = quotas.at(now).take(&buckets, amount).await?;
        ensure!(
            replies.iter().all(|reply| reply.granted),
            "{wait:?} were not enough: {replies:?}"
        );
    }
    ensure!(now > NOW, "nobody had to wait");
    Ok(())
}

/// Random takes at random times, each reply checked by what follows from it.
pub async fn every_reply_is_true(quotas: Port) -> Result<()> {
    let mut random = StdRng::seed_from_u64(0x5EED);
    for round in 0..100 {
        let rule = QuotaRule {
            amount: random.random_range(1..=1_000),
            period: millis(random.random_range(1..=100_000)),
        };
        let bucket = format!("bucket {round}");
        let (mut now, mut granted) = (NOW, 0);
        for _ in 0..20 {
            now = now.plus(millis(random.random_range(0..5_000)));
            let amount = random.random_range(0..=rule.amount);
            let reply = take_from(&quotas, &bucket, rule, amount, now).await?;
            let context = format!("{rule:?}, {amount} at {now}: {reply:?}");
            granted += amount * u64::from(reply.granted);
            let refilled = rule.amount * millis_of(now.since(NOW)) / millis_of(rule.period);
            ensure!(
                granted <= rule.amount + refilled,
                "{granted} granted; {context}"
            );
            ensure!(reply.granted == reply.retry_after.is_zero(), "{context}");
            ensure!(reply.retry_after <= rule.period + millis(1), "{context}");
            ensure!(reply.reset_after <= rule.period + millis(1), "{context}");
            if !reply.granted {
                ensure!(reply.remaining < amount, "was there; {context}");
                let early = now.plus(reply.retry_after - millis(1));
                let sooner = take_from(&quotas, &bucket, rule, amount, early).await?;
                ensure!(!sooner.granted, "waiting less was enough; {context}");
                now = now.plus(reply.retry_after);
                let later = take_from(&quotas, &bucket, rule, amount, now).await?;
                ensure!(later.granted, "waiting was not enough; {context}");
                granted += amount;
            }
        }
        what_is_left_can_be_taken(&quotas, &bucket, rule, now).await?;
    }
    Ok(())
}

fn millis_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

async fn what_is_left_can_be_taken(
    quotas: &Port,
    bucket: &str,
    rule: QuotaRule,
    now: UnixMillis,
) -> Result<()> {
    let left = take_from(quotas, bucket, rule, 0, now).await?;
    let over = take_from(quotas, bucket, rule, left.remaining + 1, now).await?;
    ensure!(
        !over.granted,
        "one more than {} was granted",
        left.remaining
    );
    let all = take_from(quotas, bucket, rule, left.remaining, now).await?;
    ensure!(all.granted, "{} were not there", left.remaining);
    let full = now.plus(all.reset_after);
    let whole = take_from(quotas, bucket, rule, rule.amount, full).await?;
    ensure!(whole.granted, "not full after {:?}", all.reset_after);
    Ok(())
}
