//! Clauses of [`LinkCache`]. A cache may lose entries at any time; one under test is expected to keep a few dozen.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use curt_core::ports::{CachedLink, LinkCache};
use curt_core::{Link, Revision};

use super::{Suite, race, same};
use crate::sample::{full_link, id, link};

type Port = Arc<dyn LinkCache>;

/// How long an entry lives, and how long it takes to be gone for certain: engines count whole seconds.
const TTL: Duration = Duration::from_secs(1);
const LONGER: Duration = Duration::from_millis(2_100);

/// `make` gives an empty cache; `pass` lets time pass, by moving the adapter's clock or by waiting.
pub async fn suite(make: impl AsyncFn() -> Port, pass: impl AsyncFn(Duration)) {
    let mut suite = Suite::of("LinkCache");
    macro_rules! timed {
        ($($clause:ident),+ $(,)?) => {
            $( suite.clause(stringify!($clause), async { $clause(make().await, &pass).await }).await; )+
        };
    }
    timed!(
        what_is_set_is_found,
        a_higher_revision_stays,
        an_equal_revision_is_overwritten,
        absence_never_hides_a_link,
        a_marker_refuses_what_is_older,
        a_marker_is_put_over_nothing,
        a_late_marker_changes_nothing,
        entries_run_out,
        the_highest_of_racing_sets_stays,
    );
    suite.finish();
}

fn revision(generation: u32, version: u32) -> Revision {
    Revision {
        generation,
        version,
    }
}

fn present(generation: u32, version: u32) -> CachedLink {
    CachedLink::Present(Box::new(Link {
        revision: revision(generation, version),
        ..full_link("a")
    }))
}

async fn set(cache: &Port, entry: CachedLink) -> Result<()> {
    Ok(cache.set(&id("a"), entry, TTL).await?)
}

async fn expect(cache: &Port, what: &str, want: CachedLink) -> Result<()> {
    same(what, cache.get(&id("a")).await?, Some(want))
}

async fn what_is_set_is_found(cache: Port, _: &impl AsyncFn(Duration)) -> Result<()> {
    same("nothing yet", cache.get(&id("a")).await?, None)?;
    set(&cache, present(1, 1)).await?;
    expect(&cache, "every field", present(1, 1)).await?;
    set(&cache, present(1, 1)).await?;
    expect(&cache, "called twice", present(1, 1)).await?;
    cache.set(&id("b"), CachedLink::Absent, TTL).await?;
    same(
        "absence",
        cache.get(&id("b")).await?,
        Some(CachedLink::Absent),
    )?;
    same("another case", cache.get(&id("A")).await?, None)?;
    let plain = CachedLink::Present(Box::new(link("c")));
    cache.set(&id("c"), plain.clone(), TTL).await?;
    same("a plain link", cache.get(&id("c")).await?, Some(plain))
}

async fn a_higher_revision_stays(cache: Port, _: &impl AsyncFn(Duration)) -> Result<()> {
    for (higher, lower) in [
        (present(1, 3), present(1, 2)),
        (present(2, 1), present(1, 9)),
        (present(2, 10), present(2, 9)),
    ] {
        set(&cache, higher.clone()).await?;
        set(&cache, lower).await?;
        expect(&cache, "after a slow reader", higher).await?;
    }
    Ok(())
}

async fn an_equal_revision_is_overwritten(cache: Port, _: &impl AsyncFn(Duration)) -> Result<()> {
    cache.invalidate(&id("a"), revision(1, 2), TTL).await?;
    set(&cache, present(1, 2)).await?;
    expect(&cache, "the link over its marker", present(1, 2)).await?;
    cache.invalidate(&id("a"), revision(1, 2), TTL).await?;
    let marker = CachedLink::Invalidated(revision(1, 2));
    expect(&cache, "the marker over the link", marker).await
}

async fn absence_never_hides_a_link(cache: Port, _: &impl AsyncFn(Duration)) -> Result<()> {
    set(&cache, CachedLink::Absent).await?;
    set(&cache, present(1, 1)).await?;
    expect(&cache, "a link over absence", present(1, 1)).await?;
    set(&cache, CachedLink::Absent).await?;
    expect(&cache, "absence over a link", present(1, 1)).await
}

async fn a_marker_refuses_what_is_older(cache: Port, _: &impl AsyncFn(Duration)) -> Result<()> {
    set(&cache, present(1, 1)).await?;
    cache.invalidate(&id("a"), revision(1, 2), TTL).await?;
    let marker = CachedLink::Invalidated(revision(1, 2));
    expect(&cache, "the marker", marker.clone()).await?;
    set(&cache, present(1, 1)).await?;
    set(&cache, CachedLink::Absent).await?;
    expect(&cache, "after slow readers", marker).await?;
    set(&cache, present(1, 3)).await?;
    expect(&cache, "after something newer", present(1, 3)).await
}

async fn a_marker_is_put_over_nothing(cache: Port, _: &impl AsyncFn(Duration)) -> Result<()> {
    cache.invalidate(&id("a"), revision(4, 1), TTL).await?;
    set(&cache, present(3, 9)).await?;
    expect(
        &cache,
        "the marker",
        CachedLink::Invalidated(revision(4, 1)),
    )
    .await
}

async fn a_late_marker_changes_nothing(cache: Port, _: &impl AsyncFn(Duration)) -> Result<()> {
    set(&cache, present(1, 5)).await?;
    cache.invalidate(&id("a"), revision(1, 3), TTL).await?;
    set(&cache, present(1, 4)).await?;
    expect(&cache, "the newest", present(1, 5)).await
}

async fn entries_run_out(cache: Port, pass: &impl AsyncFn(Duration)) -> Result<()> {
    set(&cache, present(1, 5)).await?;
    cache.invalidate(&id("b"), revision(1, 5), TTL).await?;
    cache.set(&id("long"), CachedLink::Absent, TTL * 60).await?;
    pass(LONGER).await;
    same("a link", cache.get(&id("a")).await?, None)?;
    same("a marker", cache.get(&id("b")).await?, None)?;
    same(
        "a longer one",
        cache.get(&id("long")).await?,
        Some(CachedLink::Absent),
    )?;
    set(&cache, present(1, 4)).await?;
    expect(&cache, "nothing is left to compare with", present(1, 4)).await
}

async fn the_highest_of_racing_sets_stays(cache: Port, _: &impl AsyncFn(Duration)) -> Result<()> {
    for round in 1..=8 {
        race(32, |n| {
            let cache = Arc::clone(&cache);
            async move {
                let version = u32::try_from(n).unwrap_or(0) + 1;
                if n % 4 == 0 {
                    cache
                        .invalidate(&id("a"), revision(round, version), TTL)
                        .await
                } else {
                    cache.set(&id("a"), present(round, version), TTL).await
                }
            }
        })
        .await?;
        let got = cache.get(&id("a")).await?;
        ensure!(got == Some(present(round, 32)), "round {round}: {got:?}");
    }
    Ok(())
}
