//! What decides beside the link itself how it is served: blocked targets, and accounts whose clicks are counted.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use curt_core::{LimitedAccounts, ServedLink, Visibility};

use crate::blocklist::Blocklist;
use crate::resolve::Resolver;

/// The policy in force in this process, for the side that writes and for the side that redirects. When a change
/// returns, no link is served by what was in force before.
#[derive(Default)]
pub struct LinkPolicy {
    in_force: RwLock<PolicySnapshot>,
    /// Those who keep copies that were decided about.
    resolvers: Mutex<Vec<Weak<Resolver>>>,
}

impl LinkPolicy {
    /// Replaces the blocklist, for new links too, and returns whether it is another one.
    pub fn block(&self, list: Blocklist) -> bool {
        self.change(|policy| {
            let is_new = *policy.blocklist != list;
            if is_new {
                policy.blocklist = Arc::new(list);
            }
            is_new
        })
    }

    /// Lets no link be served, as `Unavailable`, until [`limit`](Self::limit) is called for the first time: a server that
    /// starts without its database does not know yet whose links are limited. To be called before the first request.
    pub fn await_limits(&self) {
        self.change(|policy| {
            policy.is_pending = true;
            false
        });
    }

    /// Returns whether [`limit`](Self::limit) has still to be called.
    #[must_use]
    pub fn awaits_limits(&self) -> bool {
        self.now().is_pending
    }

    /// Replaces the accounts whose links are [`Guarded`](crate::Resolution::Guarded) or
    /// [`Gone`](crate::Resolution::Gone), and returns whether they are others. Costs a comparison while they stay the
    /// same.
    pub fn limit(&self, accounts: LimitedAccounts) -> bool {
        self.change(|policy| {
            let is_new = policy.is_pending || *policy.limited != accounts;
            if is_new {
                policy.limited = Arc::new(accounts);
                policy.is_pending = false;
            }
            is_new
        })
    }

    /// Returns the blocklist in force.
    #[must_use]
    pub fn blocklist(&self) -> Arc<Blocklist> {
        self.now().blocklist
    }

    pub(crate) fn now(&self) -> PolicySnapshot {
        let in_force = self.in_force.read();
        in_force.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the resolver drop its copies at every change.
    pub(crate) fn add_resolver(&self, resolver: &Arc<Resolver>) {
        let mut resolvers = self
            .resolvers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        resolvers.push(Arc::downgrade(resolver));
    }

    /// Copies are dropped after the change: a load that begins later is judged by it.
    fn change(&self, change: impl FnOnce(&mut PolicySnapshot) -> bool) -> bool {
        let in_force = self.in_force.write();
        let is_new = change(&mut in_force.unwrap_or_else(PoisonError::into_inner));
        if is_new {
            let resolvers = self.resolvers.lock();
            let resolvers = resolvers.unwrap_or_else(PoisonError::into_inner);
            for resolver in resolvers.iter().filter_map(Weak::upgrade) {
                resolver.invalidate_all();
            }
        }
        is_new
    }
}

/// How a link is served while it is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// To everybody.
    Open,
    /// By a decision at each click.
    Guarded,
    /// To nobody.
    Blocked,
    /// To nobody, because its owner is disabled.
    Gone,
}

/// The policy as it was at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicySnapshot {
    blocklist: Arc<Blocklist>,
    limited: Arc<LimitedAccounts>,
    /// The accounts have not been read yet: how a link is to be served cannot be told.
    pub(crate) is_pending: bool,
}

impl PolicySnapshot {
    pub(crate) fn service(&self, link: &ServedLink) -> Service {
        let (_, attribution) = link.attribution();
        let owner = attribution.owner;
        if self.blocklist.blocks_address(link.location()) {
            Service::Blocked
        } else if self.limited.gone_users.contains(&owner) {
            Service::Gone
        } else if link.visibility() != Visibility::Public
            || link.has_limited_clicks()
            || self.limited.limits(owner, link.made_with())
        {
            Service::Guarded
        } else {
            Service::Open
        }
    }
}
