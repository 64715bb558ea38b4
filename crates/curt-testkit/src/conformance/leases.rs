//! Clauses of [`Leases`].

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use curt_core::ports::{Lease, Leases};

use super::{RACERS, Suite, race, same};

type Port = Arc<dyn Leases>;

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
}

/// `make` gives two holders that share leases nobody holds; `pass` lets time pass, by moving the adapter's clock or by
/// waiting.
pub async fn suite(make: impl AsyncFn() -> Holders, pass: impl AsyncFn(Duration)) {
    let mut suite = Suite::of("Leases");
    macro_rules! timed {
        ($($clause:ident),+ $(,)?) => {
            $( suite.clause(stringify!($clause), async { $clause(make().await, &pass).await }).await; )+
        };
    }
    timed!(
        one_holder_at_a_time,
        names_are_apart,
        a_released_lock_is_free,
        a_lease_runs_out,
        a_renewed_lease_lasts,
        a_lost_lease_is_worth_nothing,
        fences_grow_and_tokens_differ,
        one_racer_wins,
    );
    suite.finish();
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

async fn one_holder_at_a_time(leases: Holders, _: &impl AsyncFn(Duration)) -> Result<()> {
    let Holders { first, second } = leases;
    same("free", first.holder("a").await?, None)?;
    let lease = held(&first, "a").await?;
    same("the name", &*lease.name, "a")?;
    refused(&second, "a", "held by the first").await?;
    for leases in [&first, &second] {
        same("who", leases.holder("a").await?.as_deref(), Some("first"))?;
    }
    Ok(())
}

async fn names_are_apart(leases: Holders, _: &impl AsyncFn(Duration)) -> Result<()> {
    let Holders { first, second } = leases;
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

async fn a_released_lock_is_free(leases: Holders, _: &impl AsyncFn(Duration)) -> Result<()> {
    let Holders { first, second } = leases;
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

async fn a_lease_runs_out(leases: Holders, pass: &impl AsyncFn(Duration)) -> Result<()> {
    let Holders { first, second } = leases;
    held_for(TTL, &first, "a").await?;
    pass(LONGER).await;
    same("free", second.holder("a").await?, None)?;
    held(&second, "a").await?;
    same("who", first.holder("a").await?.as_deref(), Some("second"))
}

async fn a_renewed_lease_lasts(leases: Holders, pass: &impl AsyncFn(Duration)) -> Result<()> {
    let Holders { first, second } = leases;
    let lease = held_for(RENEWED_TTL, &first, "a").await?;
    for _ in 0..2 {
        pass(RENEWED_AFTER).await;
        let is_ours = first.renew(&lease, RENEWED_TTL).await?;
        ensure!(is_ours, "a lease that is ours");
        refused(&second, "a", "renewed by the first").await?;
    }
    pass(RENEWED_TTL + LONGER - TTL).await;
    held(&second, "a").await?;
    Ok(())
}

async fn a_lost_lease_is_worth_nothing(
    leases: Holders,
    pass: &impl AsyncFn(Duration),
) -> Result<()> {
    let Holders { first, second } = leases;
    let lost = held_for(TTL, &first, "a").await?;
    pass(LONGER).await;
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

async fn fences_grow_and_tokens_differ(
    leases: Holders,
    pass: &impl AsyncFn(Duration),
) -> Result<()> {
    let Holders { first, second } = leases;
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
            pass(LONGER).await;
        }
    }
    Ok(())
}

async fn one_racer_wins(leases: Holders, _: &impl AsyncFn(Duration)) -> Result<()> {
    let Holders { first, second } = leases;
    let leases = race(RACERS, |n| {
        let leases = Arc::clone(if n % 2 == 0 { &first } else { &second });
        async move { leases.acquire("a", LASTING).await }
    })
    .await?;
    same("winners", leases.iter().flatten().count(), 1)
}
