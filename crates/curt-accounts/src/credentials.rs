//! Whom a shown token stands for, remembered for a second.

use curt_core::{PortResult, UnixMillis};

use crate::constant_time::ConstantTime;
use crate::principal::Principal;
use crate::token::{self, TokenKind};
use crate::ttl_cache::TtlCache;

/// Authentications by tokens of every kind, by the hash of the token: what the memory holds must not be usable as one.
pub(crate) type CredentialCache = TtlCache<[u8; 32], Authentication>;

#[derive(Clone, Debug)]
pub(crate) struct Authentication {
    pub(crate) principal: Option<Principal>,
    pub(crate) ends_at: Option<UnixMillis>,
}

impl Authentication {
    pub(crate) const REFUSED: Self = Self {
        principal: None,
        ends_at: None,
    };

    pub(crate) fn principal_at(self, now: UnixMillis) -> Option<Principal> {
        if self.ends_at.is_some_and(|at| at <= now) {
            return None;
        }
        self.principal
    }
}

/// Whom a token stands for: by what was decided about it within the last second, or by what `look` finds out now from
/// its public part and its secret. A refusal takes [constant time](ConstantTime), whatever the reason.
pub(crate) async fn authenticate_token<'t, Look>(
    credentials: &CredentialCache,
    form: TokenKind,
    token: &'t str,
    now: UnixMillis,
    look: impl FnOnce(&'t str, &'t str) -> Look,
) -> PortResult<Option<Principal>>
where
    Look: Future<Output = PortResult<Authentication>>,
{
    let begun = ConstantTime::begin();
    let principal = match form.split(token) {
        Some((id, secret)) => {
            authenticate_cached(credentials, token, now, look(id, secret)).await?
        }
        None => None,
    };
    if principal.is_none() {
        begun.wait_for_step_end().await;
    }
    Ok(principal)
}

async fn authenticate_cached(
    credentials: &CredentialCache,
    token: &str,
    now: UnixMillis,
    look: impl Future<Output = PortResult<Authentication>>,
) -> PortResult<Option<Principal>> {
    let name = cache_key(token);
    if let Some(verdict) = credentials.get(&name, now) {
        return Ok(verdict.principal_at(now));
    }
    let begun = credentials.begin_read();
    let verdict = look.await?;
    credentials.put(name, verdict.clone(), now, begun);
    Ok(verdict.principal_at(now))
}

pub(crate) fn cache_key(token: &str) -> [u8; 32] {
    token::hash(token)
}
