//! Addresses that have used up their misses. Until such an address may miss again, no key is looked up for it: who tries
//! keys past the limit cannot tell those that lead somewhere from those that do not.

use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, Ordering};

use curt_core::UnixMillis;
use quick_cache::sync::Cache;

use super::address::prefixes;
use super::{Decision, Limits};

/// Addresses that are throttled at the same time; of more, the least used go free.
const THROTTLED_MAX: usize = 65_536;

#[derive(Clone, Copy)]
struct Throttle {
    since: UnixMillis,
    until: UnixMillis,
    decision: Decision,
}

pub(super) struct ThrottledAddresses {
    /// When the last throttle ends, in milliseconds since 1970. Mostly that is long ago, and one look at it is all that a
    /// visitor costs.
    latest: AtomicI64,
    by_prefix: Cache<IpAddr, Throttle>,
}

impl Default for ThrottledAddresses {
    fn default() -> Self {
        Self {
            latest: AtomicI64::new(i64::MIN),
            by_prefix: Cache::new(THROTTLED_MAX),
        }
    }
}

impl ThrottledAddresses {
    pub(super) fn throttle(&self, prefix: IpAddr, decision: Decision, now: UnixMillis) {
        let until = now.plus(decision.retry_after.min(decision.rule.period));
        let throttle = Throttle {
            since: now,
            until,
            decision,
        };
        self.by_prefix.insert(prefix, throttle);
        self.latest.fetch_max(until.0, Ordering::Relaxed);
    }

    /// Whether any address may be throttled at `now`.
    fn throttles_any(&self, now: UnixMillis) -> bool {
        now.0 < self.latest.load(Ordering::Relaxed)
    }

    fn decision_of(&self, address: IpAddr, now: UnixMillis) -> Option<Decision> {
        if !self.throttles_any(now) {
            return None;
        }
        let throttles = prefixes(address).filter_map(|prefix| self.by_prefix.get(&prefix));
        // A clock that stepped back throttles no address for longer than was said.
        let longest = throttles
            .filter(|throttle| throttle.since <= now && now < throttle.until)
            .max_by_key(|throttle| throttle.until)?;
        let retry_after = longest.until.since(now);
        let said = longest.decision;
        Some(Decision {
            retry_after,
            reset_after: said.reset_after.saturating_sub(now.since(longest.since)),
            ..said
        })
    }
}

impl Limits {
    /// Why no key is looked up for this address now, if so. Costs a relaxed load while no address is throttled.
    #[must_use]
    pub fn throttle_decision(&self, address: IpAddr, now: UnixMillis) -> Option<Decision> {
        self.throttled.decision_of(address, now)
    }

    /// Whether it is worth asking [`throttle_decision`](Self::throttle_decision) about an address: one relaxed load.
    #[must_use]
    pub fn throttles_any(&self, now: UnixMillis) -> bool {
        self.throttled.throttles_any(now)
    }
}
