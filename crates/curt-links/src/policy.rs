//! What decides beside the link itself how it is served: blocked targets and accounts whose visits are counted.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use curt_core::{ApiKeyNumber, Link, OwnerId, Visibility};

use crate::blocklist::Blocklist;

/// Accounts with a limit on the visits of their links, or without any that are served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitedAccounts {
    pub users: HashSet<OwnerId>,
    pub keys: HashSet<ApiKeyNumber>,
    /// There is a limit for everybody who has an account.
    pub every_user: bool,
    /// There is a limit for every API key.
    pub every_key: bool,
    /// Users whose links are gone while they are disabled.
    pub gone_users: HashSet<OwnerId>,
}

impl LimitedAccounts {
    fn made(&self, link: &Link) -> bool {
        let has_owner = link.owner != OwnerId::ANONYMOUS;
        let by_user = self.users.contains(&link.owner) || self.every_user && has_owner;
        let by_key = |key| self.every_key || self.keys.contains(&key);
        by_user || link.made_with.is_some_and(by_key)
    }
}

/// How a link is served while it is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// To everybody.
    Open,
    /// By a decision at each visit.
    Guarded,
    /// To nobody.
    Blocked,
    /// To nobody, because its owner is disabled.
    Gone,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Policy {
    pub(super) blocklist: Arc<Blocklist>,
    limited: Arc<LimitedAccounts>,
    /// The accounts have not been read yet: how a link is to be served cannot be told.
    is_pending: bool,
}

impl Policy {
    pub(super) fn is_pending(&self) -> bool {
        self.is_pending
    }

    pub(super) fn service(&self, link: &Link) -> Service {
        if self.blocklist.blocks_address(link.target.as_str()) {
            Service::Blocked
        } else if self.limited.gone_users.contains(&link.owner) {
            Service::Gone
        } else if link.visibility != Visibility::Public
            || link.max_clicks.is_some()
            || self.limited.made(link)
        {
            Service::Guarded
        } else {
            Service::Open
        }
    }
}

/// The policy in force.
#[derive(Default)]
pub(super) struct InForce(RwLock<Policy>);

impl InForce {
    pub(super) fn now(&self) -> Policy {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Says whether that changed anything.
    pub(super) fn block(&self, list: Blocklist) -> bool {
        let mut policy = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = *policy.blocklist != list;
        if is_new {
            policy.blocklist = Arc::new(list);
        }
        is_new
    }

    pub(super) fn await_limits(&self) {
        let mut policy = self.0.write().unwrap_or_else(PoisonError::into_inner);
        policy.is_pending = true;
    }

    /// Says whether that changed anything.
    pub(super) fn limit(&self, accounts: LimitedAccounts) -> bool {
        let mut policy = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = policy.is_pending || *policy.limited != accounts;
        if is_new {
            policy.limited = Arc::new(accounts);
            policy.is_pending = false;
        }
        is_new
    }
}
