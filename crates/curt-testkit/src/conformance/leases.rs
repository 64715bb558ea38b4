//! Clauses of [`Leases`].

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use curt_core::ports::{Lease, Leases};

use super::{RACERS, TestTime, race, same};

type Port = Arc<dyn Leases>;

/// A test for each clause. `$open` gives two [`Holders`](crate::conformance::leases::Holders) of free leases, with what
/// keeps them alive.
#[macro_export]
macro_rules! leases_tests {
    ($open:expr) => {
        mod leases {
            use super::*;
            $crate::clause_tests!(
                $open,
                leases,
                one_holder_at_a_time,
                names_are_apart,
                a_released_lease_is_free,
                a_lease_runs_out,
                a_renewed_lease_lasts,
                a_lost_lease_is_worth_nothing,
                fencing_tokens_grow_and_tokens_differ,
                one_racer_wins
            );
        }
    };
}

/// How long a lease lasts that is to run out, and how long it takes to have run out for certain.
const TTL: Duration = Duration::from_millis(1_000);
const LONGER: Duration = Duration::from_millis(1_600);
/// How long one lasts that is not to run out within the test, on a busy machine either.
const LASTING: Duration = Duration::from_secs(300);
/// How long one lasts that is renewed, and how long after: twice that is more than it lasts.
const RENEWED_TTL: Duration = Duration::from_millis(3_000);
const RENEWED_AFTER: Duration = Duration::from_millis(1_600);

/// Two holders of the same leases.
pub struct Holders {
    /// Describes itself as `first`.
    pub first: Port,
    /// Describes itself as `second`.
    pub second: Port,
    pub time: TestTime,
}

async fn held(leases: &Port, name: &str) -> Result<Lease> {
    held_for(LASTING, leases, name).await
}

async fn held_for(ttl: Duration, leases: &Port, name: &str) -> Result<Lease> {
    let lease = leases.acquire(name, ttl).await?;
    lease.with_context(|| format!("the lease {name:?} is not free"))
}

async fn refused(leases: &Port, name: &str, why: &str) -> Result<()> {
    ensure!(leases.acquire(name, LASTING).await?.is_none(), "{why}");
    Ok(())
}

pub async fn one_holder_at_a_time(leases: Holders) -> Result<()> {
    let Holders { first, second, .. } = leases;
    same("free", first.holder("a").await?, None)?;
    let lease = held(&first, "a").await?;
    same("the name", &*lease.name, "a")?;
    refused(&second, "a", "held by the first").await?;
    for leases in [&first, &second] {
        same("who", leases.holder("a").await?.as_deref(), Some("first"))?;
    }
    Ok(())
}

pub async fn names_are_apart(leases: Holders) -> Result<()> {
    let Holders { first, second, .. } = leases;
    held(&first, "shard-1").await?;
    held(&second, "shard-11").await?;
    held(&second, "Shard-1").await?;
    same(
        "who",
        second.holder("shard-11").await?.as_deref(),
        Some("second"),
    )?;
    same("free", first.holder("shard").await?, None)
}

pub async fn a_released_lease_is_free(leases: Holders) -> Result<()> {
    let Holders { first, second, .. } = leases;
    let lease = held(&first, "a").await?;
    first.release(lease.clone()).await?;
    same("free", first.holder("a").await?, None)?;
    ensure!(
        !first.renew(&lease, LASTING).await?,
        "a released lease was renewed"
    );
    held(&second, "a").await?;
    first.release(lease).await?;
    same(
        "called twice",
        first.holder("a").await?.as_deref(),
        Some("second"),
    )
}

pub async fn a_lease_runs_out(leases: Holders) -> Result<()> {
    let Holders {
        first,
        second,
        time,
    } = leases;
    held_for(TTL, &first, "a").await?;
    time.pass(LONGER).await;
    same("free", second.holder("a").await?, None)?;
    held(&second, "a").await?;
    same("who", first.holder("a").await?.as_deref(), Some("second"))
}

pub async fn a_renewed_lease_lasts(leases: Holders) -> Result<()> {
    let Holders {
        first,
        second,
        time,
    } = leases;
    let lease = held_for(RENEWED_TTL, &first, "a").await?;
    for _ in 0..2 {
        time.pass(RENEWED_AFTER).await;
        let is_ours = first.renew(&lease, RENEWED_TTL).await?;
        ensure!(is_ours, "a lease that is ours");
        refused(&second, "a", "renewed by the first").await?;
    }
    time.pass(RENEWED_TTL + LONGER - TTL).await;
    held(&second, "a").await?;
    Ok(())
}

pub async fn a_lost_lease_is_worth_nothing(leases: Holders) -> Result<()> {
    let Holders {
        first,
        second,
        time,
    } = leases;
    let lost = held_for(TTL, &first, "a").await?;
    time.pass(LONGER).await;
    ensure!(
        !first.renew(&lost, TTL).await?,
        "a lease that ran out was renewed"
    );
    let lease = held(&second, "a").await?;
    ensure!(
        !first.renew(&lost, TTL).await?,
        "somebody else's was renewed"
    );
    first.release(lost).await?;
    same("who", first.holder("a").await?.as_deref(), Some("second"))?;
    ensure!(
        second.renew(&lease, TTL).await?,
        "the new holder's was lost"
    );
    Ok(())
}

pub async fn fencing_tokens_grow_and_tokens_differ(leases: Holders) -> Result<()> {
    let Holders {
        first,
        second,
        time,
    } = leases;
    let mut leases: Vec<Lease> = Vec::new();
    for round in 0..4 {
        let holder = if round % 2 == 0 { &first } else { &second };
        let lease = held_for(TTL, holder, "a").await?;
        if let Some(before) = leases.last() {
            ensure!(
                lease.fencing_token > before.fencing_token,
                "{lease:?} after {before:?}"
            );
        }
        let known = leases.iter().any(|before| before.token == lease.token);
        ensure!(!known, "a token came twice: {lease:?}");
        leases.push(lease.clone());
        if round < 2 {
            holder.release(lease).await?;
        } else {
            time.pass(LONGER).await;
        }
    }
    Ok(())
}

pub async fn one_racer_wins(leases: Holders) -> Result<()> {
    let Holders { first, second, .. } = leases;
    let leases = race(RACERS, |n| {
        let leases = Arc::clone(if n % 2 == 0 { &first } else { &second });
        async move { leases.acquire("a", LASTING).await }
    })
    .await?;
    same("winners", leases.iter().flatten().count(), 1)
}
