//! Addresses that have used up their misses. Until such an address may miss again, no key is looked up for it: who tries
//! keys past the limit cannot tell those that lead somewhere from those that do not.

use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, Ordering};

use curt_core::UnixMillis;
use quick_cache::sync::Cache;

use super::address::prefixes;
use super::{Decision, Limits};

/// Addresses that are held at the same time; of more, the least used go free.
const HELD_MAX: usize = 65_536;

#[derive(Clone, Copy)]
struct Hold {
    since: UnixMillis,
    until: UnixMillis,
    decision: Decision,
}

pub(super) struct HeldAddresses {
    /// When the last hold ends, in milliseconds since 1970. Mostly that is long ago, and one look at it is all that a
    /// visitor costs.
    latest: AtomicI64,
    by_prefix: Cache<IpAddr, Hold>,
}

impl Default for HeldAddresses {
    fn default() -> Self {
        Self {
            latest: AtomicI64::new(i64::MIN),
            by_prefix: Cache::new(HELD_MAX),
        }
    }
}

impl HeldAddresses {
    pub(super) fn hold(&self, prefix: IpAddr, decision: Decision, now: UnixMillis) {
        let until = now.plus(decision.retry_after.min(decision.rule.period));
        let hold = Hold {
            since: now,
            until,
            decision,
        };
        self.by_prefix.insert(prefix, hold);
        self.latest.fetch_max(until.0, Ordering::Relaxed);
    }

    /// Whether any address may be held at `now`.
    fn is_any(&self, now: UnixMillis) -> bool {
        now.0 < self.latest.load(Ordering::Relaxed)
    }

    fn of(&self, address: IpAddr, now: UnixMillis) -> Option<Decision> {
        if !self.is_any(now) {
            return None;
        }
        let holds = prefixes(address).filter_map(|prefix| self.by_prefix.get(&prefix));
        // A clock that stepped back holds nobody for longer than was said.
        let longest = holds
            .filter(|hold| hold.since <= now && now < hold.until)
            .max_by_key(|hold| hold.until)?;
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
    /// Why no key is looked up for this address now, if so. Costs a relaxed load while no address is held.
    #[must_use]
    pub fn held(&self, address: IpAddr, now: UnixMillis) -> Option<Decision> {
        self.held.of(address, now)
    }

    /// Whether it is worth asking [`held`](Self::held) about an address: one relaxed load.
    #[must_use]
    pub fn holds_any(&self, now: UnixMillis) -> bool {
        self.held.is_any(now)
    }
}
