//! How many live feeds may be open at once: each reads its rollups every second.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use curt_accounts::{Principal, rate_limit_prefix};
use curt_core::{OwnerId, Role};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::problem::{Problem, ProblemCode};
use crate::settings::FeedSettings;

/// Feeds that read at the same time. The others wait, and tell the more when it is their turn.
const READS_MAX: usize = 2;

/// The open feeds of a server.
#[derive(Debug)]
pub(crate) struct Feeds {
    settings: FeedSettings,
    open: Mutex<OpenFeeds>,
    reads: Semaphore,
}

#[derive(Debug, Default)]
struct OpenFeeds {
    /// Of everybody.
    all: usize,
    /// Of those who are no administrators.
    ordinary: usize,
    by_user: HashMap<OwnerId, usize>,
    /// Of those who are no administrators: one behind the same address as an attacker is not kept out.
    by_address: HashMap<IpAddr, usize>,
}

/// Who opens a feed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FeedOwner {
    user: OwnerId,
    is_admin: bool,
    address: IpAddr,
}

impl FeedOwner {
    pub(super) fn new(principal: &Principal, address: IpAddr) -> Self {
        Self {
            user: principal.user,
            is_admin: principal.role == Role::Admin,
            address: rate_limit_prefix(address),
        }
    }
}

impl Feeds {
    pub(crate) fn new(settings: FeedSettings) -> Self {
        Self {
            settings,
            open: Mutex::default(),
            reads: Semaphore::new(READS_MAX),
        }
    }

    /// Counts a feed, or tells which limit is reached.
    pub(super) fn admit(self: &Arc<Self>, owner: FeedOwner) -> Result<Slot, Problem> {
        let settings = &self.settings;
        let mut open = self.locked();
        let too_many = |whose: String| {
            Problem::new(ProblemCode::TooManyFeeds).detail(format!(
                "{whose}. Close feeds that nobody looks at, or try again after the time in Retry-After."
            ))
        };
        if count_of(&open.by_user, &owner.user) >= settings.per_user_max {
            let most = settings.per_user_max;
            return Err(too_many(format!("A user has at most {most} live feeds")));
        }
        let for_ordinary = settings.max.saturating_sub(settings.reserved_for_admins);
        if open.all >= settings.max || (!owner.is_admin && open.ordinary >= for_ordinary) {
            let most = settings.max;
            return Err(too_many(format!(
                "This server has at most {most} live feeds"
            )));
        }
        if !owner.is_admin {
            if count_of(&open.by_address, &owner.address) >= settings.per_address_max {
                let most = settings.per_address_max;
                return Err(too_many(format!(
                    "An address has at most {most} live feeds"
                )));
            }
            open.ordinary += 1;
            *open.by_address.entry(owner.address).or_default() += 1;
        }
        open.all += 1;
        *open.by_user.entry(owner.user).or_default() += 1;
        Ok(Slot {
            feeds: Arc::clone(self),
            owner,
        })
    }

    fn locked(&self) -> MutexGuard<'_, OpenFeeds> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count_of<K: Eq + Hash>(counts: &HashMap<K, usize>, key: &K) -> usize {
    counts.get(key).copied().unwrap_or(0)
}

fn take_one<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    match counts.get_mut(key) {
        Some(count) if *count > 1 => *count -= 1,
        _ => drop(counts.remove(key)),
    }
}

/// One open feed, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    feeds: Arc<Feeds>,
    owner: FeedOwner,
}

impl Slot {
    /// Waits until the feed may read. `None` only if nothing bounds reads any more.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.feeds.reads.acquire().await.ok()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.feeds.locked();
        open.all -= 1;
        take_one(&mut open.by_user, &self.owner.user);
        if !self.owner.is_admin {
            open.ordinary -= 1;
            take_one(&mut open.by_address, &self.owner.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const SETTINGS: FeedSettings = FeedSettings {
        max: 100,
        per_user_max: 10,
        per_address_max: 40,
        reserved_for_admins: 20,
    };

    fn owner(user: u64, is_admin: bool, address: u8) -> FeedOwner {
        FeedOwner {
            user: OwnerId(user),
            is_admin,
            address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, address)),
        }
    }

    #[test]
    fn nobody_takes_all_feeds_and_a_closed_one_makes_room() {
        let feeds = Arc::new(Feeds::new(SETTINGS));
        let take = |user, is_admin, address| feeds.admit(owner(user, is_admin, address)).ok();
        let mut own: Vec<_> = std::iter::from_fn(|| take(1, false, 1)).collect();
        assert_eq!(own.len(), SETTINGS.per_user_max);
        // Many accounts of one address.
        own.extend((2..1_000).filter_map(|user| take(user, false, 1)));
        assert_eq!(own.len(), SETTINGS.per_address_max);
        // Many accounts of many addresses.
        let others = (1_000..2_000).filter_map(|user| take(user, false, (user % 250) as u8));
        let others: Vec<_> = others.collect();
        assert_eq!(
            own.len() + others.len(),
            SETTINGS.max - SETTINGS.reserved_for_admins
        );
        // Administrators, at the address of the attackers too.
        let admins = (3_000..4_000).filter_map(|user| take(user, true, 1));
        let admins: Vec<_> = admins.collect();
        assert_eq!(admins.len(), SETTINGS.reserved_for_admins);
        own.pop();
        assert!(take(5_000, false, 200).is_some());
        drop((own, others, admins));
        let open = feeds.locked();
        assert_eq!((open.all, open.ordinary), (0, 0));
        assert!(open.by_user.is_empty() && open.by_address.is_empty());
    }
}
