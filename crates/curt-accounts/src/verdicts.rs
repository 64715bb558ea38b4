//! What was decided about a token a moment ago, good or bad, so that a busy client costs one read per second.

use std::time::Duration;

use curt_core::UnixMillis;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};

use crate::api_keys::Principal;

/// How long a decision may be repeated: a revoked key stops within this time everywhere.
pub const VERDICT_TTL: Duration = Duration::from_secs(1);
const VERDICTS_MAX: usize = 4_096;

/// The hash of a token: what the memory holds must not be usable as a credential.
pub(crate) type TokenHash = [u8; 32];

#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) principal: Option<Principal>,
    pub(crate) expires_at: Option<UnixMillis>,
    pub(crate) decided_at: UnixMillis,
}

impl Verdict {
    pub(crate) fn principal_at(self, now: UnixMillis) -> Option<Principal> {
        if self.expires_at.is_some_and(|at| at <= now) {
            return None;
        }
        self.principal
    }
}

pub(crate) struct Verdicts(Cache<TokenHash, Verdict>);

impl Verdicts {
    pub(crate) fn new() -> Self {
        Self(Cache::new(VERDICTS_MAX))
    }

    pub(crate) fn get(&self, token: &TokenHash, now: UnixMillis) -> Option<Verdict> {
        let verdict = self.0.get(token)?;
        // A clock that stepped back ends the verdict: it must not live for as long as the step was wide.
        let is_fresh = verdict.decided_at <= now && now.since(verdict.decided_at) < VERDICT_TTL;
        is_fresh.then_some(verdict)
    }

    pub(crate) fn put(&self, token: TokenHash, verdict: Verdict) {
        self.0.insert(token, verdict);
    }

    pub(crate) fn forget_all(&self) {
        self.0.clear();
    }
}

pub(crate) fn hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}
