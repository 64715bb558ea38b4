//! How old copies may be.
//!
//! While the channel of invalidations is known to work, a copy may be used for longer, because a change would have been
//! told. That knowledge is a lease: it ends by the wall clock, which goes on while the process stands still.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use curt_core::clock::UnixMillis;

use super::negative_cache::is_fresh;

/// How long the channel counts as working after a question that the engine has answered. The worst that a cut channel adds
/// to the age of a copy (L-2).
pub const CHANNEL_LEASE: Duration = Duration::from_secs(1);

/// How long a change may go unseen at worst (L-2), where the server that made it could tell neither the channel nor a cache
/// server that this process reaches.
const UNSEEN_MAX: Duration = Duration::from_secs(5);

/// The channel has not answered yet.
const NEVER: i64 = i64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyAge {
    Fresh,
    /// Near its end: may be used, and should be loaded again if it is wanted often.
    Aging,
    Stale,
}

pub(super) struct Freshness {
    /// Age in milliseconds below which nothing else is asked.
    soft: u64,
    entry_ttl: Option<Duration>,
    /// The same while the channel works; at least as long.
    confirmed_ttl: Duration,
    confirmed_at: AtomicI64,
    /// Changes that were made before this time may not have been told.
    missed_until: AtomicI64,
}

impl Freshness {
    pub(super) fn new(entry_ttl: Option<Duration>, confirmed_ttl: Option<Duration>) -> Self {
        Self {
            soft: entry_ttl.map_or(u64::MAX, |ttl| millis(soft(ttl))),
            confirmed_ttl: confirmed_ttl.max(entry_ttl).unwrap_or_default(),
            entry_ttl,
            confirmed_at: AtomicI64::new(NEVER),
            missed_until: AtomicI64::new(i64::MIN),
        }
    }

    /// Judges at `now` what a load has found that began at `loaded_at`.
    pub(super) fn age(&self, loaded_at: UnixMillis, now: UnixMillis) -> CopyAge {
        // Of a clock that stepped back, a very high age.
        let age = now.0.wrapping_sub(loaded_at.0).cast_unsigned();
        if age < self.soft {
            return CopyAge::Fresh;
        }
        self.judge(age, now)
    }

    fn judge(&self, age: u64, now: UnixMillis) -> CopyAge {
        let Some(entry_ttl) = self.entry_ttl else {
            return CopyAge::Fresh;
        };
        let confirmed_at = UnixMillis(self.confirmed_at.load(Ordering::Relaxed));
        let ttl = match is_fresh(confirmed_at, now, CHANNEL_LEASE) {
            true => self.confirmed_ttl,
            false => entry_ttl,
        };
        match age {
            _ if age >= millis(ttl) => CopyAge::Stale,
            _ if age >= millis(soft(ttl)) => CopyAge::Aging,
            _ => CopyAge::Fresh,
        }
    }

    /// Notes that every change has been told that was made before this time.
    pub(super) fn confirm(&self, at: UnixMillis) {
        self.confirmed_at.store(at.0, Ordering::Relaxed);
    }

    pub(super) fn is_confirmed(&self, now: UnixMillis) -> bool {
        let confirmed_at = UnixMillis(self.confirmed_at.load(Ordering::Relaxed));
        is_fresh(confirmed_at, now, CHANNEL_LEASE)
    }

    /// Notes that changes may have been missed that were made before this time.
    pub(super) fn note_missed(&self, until: UnixMillis) {
        self.missed_until.store(until.0, Ordering::Relaxed);
    }

    /// Returns when a load must have begun at least for what it put into the shared cache to be believed at `now`: of a
    /// change since then this process has been told, or it is so young that the copy made of it ends in time.
    pub(super) fn shared_since(&self, now: UnixMillis) -> UnixMillis {
        let Some(entry_ttl) = self.entry_ttl else {
            return UnixMillis(i64::MIN);
        };
        let age_max = millis(UNSEEN_MAX.saturating_sub(entry_ttl));
        let young = now.0.saturating_sub_unsigned(age_max);
        UnixMillis(match self.is_confirmed(now) {
            true => young.min(self.missed_until.load(Ordering::Relaxed)),
            false => young,
        })
    }

    pub(super) fn entry_ttl(&self) -> Option<Duration> {
        self.entry_ttl
    }
}

/// When the refresh of a copy that is wanted often begins.
fn soft(ttl: Duration) -> Duration {
    ttl - ttl / 4
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Option<Duration> = Some(Duration::from_secs(1));
    const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

    fn at(millis: i64) -> UnixMillis {
        UnixMillis(1_800_000_000_000 + millis)
    }

    #[test]
    fn a_copy_ages_and_ends() {
        let freshness = Freshness::new(SECOND, None);
        for (millis, age) in [
            (0, CopyAge::Fresh),
            (749, CopyAge::Fresh),
            (750, CopyAge::Aging),
            (999, CopyAge::Aging),
            (1_000, CopyAge::Stale),
            (-1, CopyAge::Stale),
        ] {
            assert_eq!(freshness.age(at(0), at(millis)), age, "{millis}");
        }
    }

    #[test]
    fn without_other_writers_a_copy_never_ends() {
        let freshness = Freshness::new(None, None);
        for millis in [-1, 0, 1_000_000_000] {
            assert_eq!(freshness.age(at(0), at(millis)), CopyAge::Fresh);
        }
    }

    #[test]
    fn entries_of_the_shared_cache_are_believed_if_young_or_of_a_time_of_which_everything_was_told()
    {
        let freshness = Freshness::new(SECOND, MINUTE);
        let young = |now: i64| at(now - 4_000);
        assert_eq!(freshness.shared_since(at(0)), young(0));
        freshness.confirm(at(0));
        let all = UnixMillis(i64::MIN);
        assert_eq!(freshness.shared_since(at(999)), all);
        assert_eq!(freshness.shared_since(at(1_000)), young(1_000));
        freshness.note_missed(at(2_000));
        freshness.confirm(at(3_000));
        assert_eq!(freshness.shared_since(at(3_000)), young(3_000));
        freshness.confirm(at(60_000));
        assert_eq!(freshness.shared_since(at(60_000)), at(2_000));
        assert_eq!(Freshness::new(None, None).shared_since(at(0)), all);
    }

    #[test]
    fn a_channel_that_answers_lets_copies_live_longer_and_only_while_it_does() {
        let freshness = Freshness::new(SECOND, MINUTE);
        assert_eq!(freshness.age(at(0), at(2_000)), CopyAge::Stale);
        freshness.confirm(at(30_000));
        assert!(freshness.is_confirmed(at(30_999)));
        assert_eq!(freshness.age(at(0), at(30_999)), CopyAge::Fresh);
        assert_eq!(freshness.age(at(0), at(31_000)), CopyAge::Stale);
        assert_eq!(freshness.age(at(30_500), at(31_000)), CopyAge::Fresh);
        // The clock stepped back: the lease is not from the future.
        assert_eq!(freshness.age(at(20_000), at(29_999)), CopyAge::Stale);
    }
}
