//! Clauses of [`LinkCache`]. A cache may lose entries at any time; one under test is expected to keep a few dozen.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use curt_core::clock::ManualClock;
use curt_core::ports::{CachedLink, LinkCache};
use curt_core::{Link, Revision, ServedLink};

use crate::conformance::{race, same};
use crate::sample::{NOW, full_link, id, link};

/// How long an entry lives, and how long it takes to have ended for certain: engines count whole seconds.
const TTL: Duration = Duration::from_secs(2);
const LONGER: Duration = Duration::from_millis(3_100);
/// How long one lives that is not to end within the test, on a busy machine either.
const LASTING: Duration = Duration::from_secs(300);
const ABSENT: CachedLink = CachedLink::Absent(NOW);

/// A cache, and the clock that it goes by if that is not the engine's own.
pub struct TimedCache {
    pub cache: Arc<dyn LinkCache>,
    pub clock: Option<Arc<ManualClock>>,
}

impl TimedCache {
    async fn pass(&self, time: Duration) {
        match &self.clock {
            Some(clock) => clock.advance(time),
            None => tokio::time::sleep(time).await,
        }
    }

    async fn set(&self, entry: CachedLink) -> Result<()> {
        Ok(self.cache.set_if_newer(&id("a"), entry, LASTING).await?)
    }

    async fn invalidate(&self, revision: Option<Revision>) -> Result<()> {
        Ok(self.cache.invalidate(&id("a"), revision, LASTING).await?)
    }

    async fn get(&self, key: &str) -> Result<Option<CachedLink>> {
        Ok(self.cache.get_many(&[id(key)]).await?.remove(0))
    }

    async fn expect(&self, what: &str, want: Option<CachedLink>) -> Result<()> {
        same(what, self.get("a").await?, want)
    }
}

fn revision(generation: u32, version: u32) -> Revision {
    Revision {
        generation,
        version,
    }
}

fn present(generation: u32, version: u32) -> CachedLink {
    served(&Link {
        revision: revision(generation, version),
        ..full_link("a")
    })
}

fn served(link: &Link) -> CachedLink {
    CachedLink::Present(ServedLink::new(link, NOW))
}

pub async fn entries_come_in_the_order_asked(timed: TimedCache) -> Result<()> {
    let cache = &timed.cache;
    same("nothing asked", cache.get_many(&[]).await?, Vec::new())?;
    cache.set_if_newer(&id("b"), ABSENT, LASTING).await?;
    timed.set(present(1, 1)).await?;
    let asked = ["b", "unknown", "a", "b", "A", "a"].map(id);
    let (absent, present) = (Some(ABSENT), Some(present(1, 1)));
    let want = [absent.clone(), None, present.clone(), absent, None, present];
    same("entries", cache.get_many(&asked).await?, want.to_vec())
}

pub async fn a_served_link_is_kept_whole(timed: TimedCache) -> Result<()> {
    for link in [link("a"), full_link("a")] {
        timed.invalidate(Some(link.revision)).await?;
        timed.set(served(&link)).await?;
        timed.expect("the link", Some(served(&link))).await?;
    }
    Ok(())
}

pub async fn a_set_called_twice_starts_its_time_again(timed: TimedCache) -> Result<()> {
    for ttl in [TTL, LASTING] {
        let cache = &timed.cache;
        cache.set_if_newer(&id("a"), present(1, 1), ttl).await?;
    }
    timed.pass(LONGER).await;
    timed.expect("the link", Some(present(1, 1))).await
}

pub async fn a_higher_revision_stays(timed: TimedCache) -> Result<()> {
    for (higher, lower) in [
        (present(1, 3), present(1, 2)),
        (present(2, 1), present(1, 9)),
        (present(2, 10), present(2, 9)),
    ] {
        timed.set(higher.clone()).await?;
        timed.set(lower).await?;
        timed.expect("after a slow reader", Some(higher)).await?;
    }
    Ok(())
}

pub async fn an_equal_revision_is_overwritten(timed: TimedCache) -> Result<()> {
    let later = Link {
        revision: revision(1, 1),
        ..link("a")
    };
    timed.set(present(1, 1)).await?;
    timed.set(served(&later)).await?;
    timed.expect("the later load", Some(served(&later))).await
}

pub async fn absence_never_hides_a_link(timed: TimedCache) -> Result<()> {
    timed.set(ABSENT).await?;
    timed.expect("absence", Some(ABSENT)).await?;
    timed.set(present(1, 1)).await?;
    timed.expect("over absence", Some(present(1, 1))).await?;
    timed.set(ABSENT).await?;
    timed.expect("after absence", Some(present(1, 1))).await
}

pub async fn entries_end(timed: TimedCache) -> Result<()> {
    let cache = &timed.cache;
    cache.set_if_newer(&id("a"), present(1, 5), TTL).await?;
    cache.set_if_newer(&id("b"), ABSENT, LASTING).await?;
    timed.pass(LONGER).await;
    timed.expect("the link", None).await?;
    same("a longer one", timed.get("b").await?, Some(ABSENT))?;
    timed.set(present(1, 4)).await?;
    let want = Some(present(1, 4));
    timed.expect("nothing is left to compare with", want).await
}

pub async fn the_highest_of_racing_sets_stays(timed: TimedCache) -> Result<()> {
    for round in 1..=8 {
        race(32, |n| {
            let cache = Arc::clone(&timed.cache);
            async move {
                let version = u32::try_from(n).unwrap_or(0) + 1;
                if n % 4 == 0 {
                    let revision = Some(revision(round, version));
                    cache.invalidate(&id("a"), revision, LASTING).await
                } else {
                    let entry = present(round, version);
                    cache.set_if_newer(&id("a"), entry, LASTING).await
                }
            }
        })
        .await?;
        let what = format!("round {round}");
        timed.expect(&what, Some(present(round, 32))).await?;
    }
    Ok(())
}

pub async fn an_invalidated_link_is_no_entry(timed: TimedCache) -> Result<()> {
    for there in [ABSENT, present(1, 1), present(1, 2)] {
        timed.set(there).await?;
        timed.invalidate(Some(revision(1, 2))).await?;
        timed.expect("the marker", None).await?;
    }
    Ok(())
}

pub async fn a_marker_refuses_what_is_older(timed: TimedCache) -> Result<()> {
    timed.invalidate(Some(revision(2, 2))).await?;
    for older in [ABSENT, present(1, 9), present(2, 1)] {
        timed.set(older).await?;
        timed.expect("after a slow reader", None).await?;
    }
    Ok(())
}

pub async fn a_marker_accepts_its_revision_and_newer_ones(timed: TimedCache) -> Result<()> {
    for newer in [present(1, 2), present(1, 3), present(2, 1)] {
        timed.invalidate(Some(revision(1, 2))).await?;
        timed.set(newer.clone()).await?;
        timed.expect("the link", Some(newer)).await?;
    }
    Ok(())
}

pub async fn a_marker_is_left_over_nothing(timed: TimedCache) -> Result<()> {
    timed.invalidate(Some(revision(4, 1))).await?;
    timed.set(present(3, 9)).await?;
    timed.expect("after a slow reader", None).await
}

pub async fn a_late_invalidation_changes_nothing(timed: TimedCache) -> Result<()> {
    timed.set(present(1, 5)).await?;
    timed.invalidate(Some(revision(1, 3))).await?;
    timed.expect("the newest", Some(present(1, 5))).await?;
    timed.set(present(1, 4)).await?;
    timed.expect("the newest", Some(present(1, 5))).await
}

pub async fn a_repeated_marker_starts_its_time_again(timed: TimedCache) -> Result<()> {
    for outcome in [Some(revision(1, 5)), None] {
        for ttl in [TTL, LASTING] {
            timed.cache.invalidate(&id("a"), outcome, ttl).await?;
        }
        timed.pass(LONGER).await;
        timed.set(present(1, 4)).await?;
        timed.expect("after a slow reader", None).await?;
    }
    Ok(())
}

pub async fn markers_end(timed: TimedCache) -> Result<()> {
    let known = Some(revision(1, 5));
    timed.cache.invalidate(&id("a"), known, TTL).await?;
    timed.pass(LONGER).await;
    timed.set(present(1, 4)).await?;
    timed.expect("the link", Some(present(1, 4))).await
}

pub async fn an_unknown_outcome_removes_every_revision(timed: TimedCache) -> Result<()> {
    timed.set(present(u32::MAX, u32::MAX)).await?;
    timed.invalidate(None).await?;
    timed.expect("the marker", None).await
}

pub async fn an_unknown_outcome_refuses_every_set_until_it_ends(timed: TimedCache) -> Result<()> {
    timed.cache.invalidate(&id("a"), None, TTL).await?;
    for loaded in [ABSENT, present(1, 1), present(u32::MAX, u32::MAX)] {
        timed.set(loaded).await?;
        timed.expect("while it lasts", None).await?;
    }
    timed.pass(LONGER).await;
    timed.set(present(1, 1)).await?;
    timed.expect("afterwards", Some(present(1, 1))).await
}

pub async fn a_known_revision_does_not_lift_an_unknown_outcome(timed: TimedCache) -> Result<()> {
    timed.invalidate(None).await?;
    timed.invalidate(Some(revision(1, 5))).await?;
    timed.set(present(1, 5)).await?;
    timed.expect("the link", None).await
}

pub async fn no_racing_set_survives_an_unknown_outcome(timed: TimedCache) -> Result<()> {
    race(32, |n| {
        let cache = Arc::clone(&timed.cache);
        async move {
            let version = u32::try_from(n).unwrap_or(0) + 1;
            if n == 16 {
                cache.invalidate(&id("a"), None, LASTING).await
            } else {
                let entry = present(1, version);
                cache.set_if_newer(&id("a"), entry, LASTING).await
            }
        }
    })
    .await?;
    timed.expect("the link", None).await
}

pub async fn a_cleared_cache_has_nothing_and_takes_everything(timed: TimedCache) -> Result<()> {
    timed.set(present(1, 5)).await?;
    timed.expect("the link", Some(present(1, 5))).await?;
    timed.cache.clear().await?;
    timed.expect("the link", None).await?;
    timed.set(present(1, 4)).await?;
    timed.expect("an older one", Some(present(1, 4))).await?;
    timed.invalidate(None).await?;
    timed.cache.clear().await?;
    timed.set(present(1, 1)).await?;
    timed.expect("without a marker", Some(present(1, 1))).await
}

pub async fn usage_is_told(timed: TimedCache) -> Result<()> {
    timed.set(present(1, 1)).await?;
    let usage = timed.cache.usage().await?;
    anyhow::ensure!(usage.bytes > 0, "{usage:?}");
    Ok(())
}
