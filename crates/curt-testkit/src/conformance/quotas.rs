//! Clauses of [`Quotas`].

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use curt_core::UnixMillis;
use curt_core::ports::{QuotaReply, QuotaRule, Quotas};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{RACERS, Suite, race, run_clauses, same};
use crate::sample::NOW;

type Port = Arc<dyn Quotas>;

pub async fn suite(make: impl AsyncFn() -> Port) {
    let mut suite = Suite::of("Quotas");
    run_clauses!(
        suite,
        make,
        an_unknown_bucket_is_full,
        a_take_is_all_or_nothing,
        a_bucket_refills_evenly,
        buckets_are_apart,
        nothing_can_be_taken_from_an_empty_rule,
        more_than_the_bucket_holds_is_never_granted,
        a_clock_that_steps_back_costs_one_period_at_most,
        racers_share_what_there_is,
        every_reply_is_true,
    );
    suite.finish();
}

const TEN_A_SECOND: QuotaRule = QuotaRule {
    amount: 10,
    period: Duration::from_secs(1),
};

fn after(millis: u64) -> UnixMillis {
    NOW.plus(Duration::from_millis(millis))
}

async fn take(quotas: &Port, amount: u64, now: UnixMillis) -> Result<QuotaReply> {
    Ok(quotas.take("a", amount, TEN_A_SECOND, now).await?)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

async fn an_unknown_bucket_is_full(quotas: Port) -> Result<()> {
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

async fn a_take_is_all_or_nothing(quotas: Port) -> Result<()> {
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

async fn a_bucket_refills_evenly(quotas: Port) -> Result<()> {
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

async fn buckets_are_apart(quotas: Port) -> Result<()> {
    take(&quotas, 10, NOW).await?;
    for name in ["b", "A", "", "a'; --", "a/b"] {
        let got = quotas.take(name, 10, TEN_A_SECOND, NOW).await?;
        ensure!(got.granted, "{name:?} was empty");
    }
    Ok(())
}

async fn nothing_can_be_taken_from_an_empty_rule(quotas: Port) -> Result<()> {
    let none = QuotaRule {
        amount: 0,
        ..TEN_A_SECOND
    };
    let got = quotas.take("a", 1, none, NOW).await?;
    ensure!(!got.granted, "granted");
    same("left", got.remaining, 0)
}

async fn more_than_the_bucket_holds_is_never_granted(quotas: Port) -> Result<()> {
    let got = take(&quotas, 11, NOW).await?;
    ensure!(!got.granted, "granted");
    same("never", got.retry_after, Duration::MAX)?;
    same("nothing was taken", got.remaining, 10)?;
    let got = take(&quotas, u64::MAX, NOW).await?;
    ensure!(!got.granted, "granted");
    Ok(())
}

async fn a_clock_that_steps_back_costs_one_period_at_most(quotas: Port) -> Result<()> {
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

async fn racers_share_what_there_is(quotas: Port) -> Result<()> {
    let replies = race(RACERS, |_| {
        let quotas = Arc::clone(&quotas);
        async move { quotas.take("a", 3, TEN_A_SECOND, NOW).await }
    })
    .await?;
    let granted = replies.iter().filter(|reply| reply.granted).count();
    same("granted", granted, 3)
}

/// Random takes at random times, each reply checked by what follows from it.
async fn every_reply_is_true(quotas: Port) -> Result<()> {
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
            let reply = quotas.take(&bucket, amount, rule, now).await?;
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
                now = now.plus(reply.retry_after);
                let later = quotas.take(&bucket, amount, rule, now).await?;
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
    let left = quotas.take(bucket, 0, rule, now).await?;
    let over = quotas.take(bucket, left.remaining + 1, rule, now).await?;
    ensure!(
        !over.granted,
        "one more than {} was granted",
        left.remaining
    );
    let all = quotas.take(bucket, left.remaining, rule, now).await?;
    ensure!(all.granted, "{} were not there", left.remaining);
    let full = now.plus(all.reset_after);
    let whole = quotas.take(bucket, rule.amount, rule, full).await?;
    ensure!(whole.granted, "not full after {:?}", all.reset_after);
    Ok(())
}
