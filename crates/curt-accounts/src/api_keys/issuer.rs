//! What an API key may hand on: nothing that lives longer, may do more, or counts into another limit than it does.

use curt_core::ports::ApiKey;
use curt_core::{Allowance, ApiKeyNumber, Field, FieldError, OwnerId, Scope, Scopes, UnixMillis};

use super::ApiKeys;
use crate::error::AccountError;
use crate::principal::Principal;

/// Who issues or replaces a key: a user with these scopes, by this API key, by a session, or the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyIssuer {
    pub(super) scopes: Scopes,
    pub(super) prefix: Option<Box<str>>,
}

impl From<Scopes> for KeyIssuer {
    fn from(scopes: Scopes) -> Self {
        Self {
            scopes,
            prefix: None,
        }
    }
}

impl From<&Principal> for KeyIssuer {
    fn from(principal: &Principal) -> Self {
        Self {
            scopes: principal.scopes,
            prefix: principal.api_key().map(Into::into),
        }
    }
}

impl ApiKeys {
    /// The key that the issuer showed, as it is now. One that ended meanwhile is [`AccountError::IssuerEnded`].
    pub(super) async fn parent(
        &self,
        issuer: &KeyIssuer,
        now: UnixMillis,
    ) -> Result<Option<ApiKey>, AccountError> {
        let Some(prefix) = issuer.prefix.as_deref() else {
            return Ok(None);
        };
        let parent = self.accounts.api_key(prefix).await?;
        let parent = parent.filter(|parent| parent.is_in_force(now));
        parent.map(Some).ok_or(AccountError::IssuerEnded)
    }
}

/// When a key ends that is to end at `wanted`: with its parent at the latest.
pub(super) fn bounded_expiry(
    wanted: Option<UnixMillis>,
    parent: Option<&ApiKey>,
    now: UnixMillis,
) -> Result<Option<UnixMillis>, FieldError> {
    let refused = |code, why| Err(FieldError::new(Field::ExpiresAt, code, why));
    if wanted.is_some_and(|at| at <= now || at > UnixMillis::MAX) {
        return refused("not_in_future", "The expiry must be in the future.");
    }
    match (wanted, parent.and_then(ApiKey::ends_at)) {
        (Some(wanted), Some(end)) if wanted > end => {
            refused("not_allowed", "A key cannot outlive the key that makes it.")
        }
        (wanted, end) => Ok(wanted.or(end)),
    }
}

/// What a key is allowed for which `wanted` was asked. Only whoever has [`Scope::Admin`] may ask; what a limited key
/// makes has its limits.
pub(super) fn granted_allowance(
    wanted: Allowance,
    issuer: &KeyIssuer,
    parent: Option<&ApiKey>,
) -> Result<Allowance, FieldError> {
    let limited = parent.map(|parent| parent.allowance);
    let limited = limited.filter(|allowance| *allowance != Allowance::default());
    let refused = |why| Err(FieldError::new(Field::Allowance, "not_allowed", why));
    match limited {
        _ if wanted != Allowance::default() && !issuer.scopes.has(Scope::Admin) => {
            refused("Only an administrator may set what a key is allowed.")
        }
        Some(limited) if wanted != Allowance::default() && wanted != limited => {
            refused("What a limited key makes has its limits.")
        }
        Some(limited) => Ok(limited),
        None => Ok(wanted),
    }
}

/// The buckets that a key of `user` with `wanted` counts into: those of its parent, unless an administrator whose key
/// is not limited makes it with limits of its own or for another user.
pub(super) fn quota_bucket(
    user: OwnerId,
    wanted: Allowance,
    issuer: &KeyIssuer,
    parent: Option<&ApiKey>,
) -> Option<ApiKeyNumber> {
    let parent = parent?;
    let is_limited = parent.allowance != Allowance::default();
    let is_apart = wanted != Allowance::default() || user != parent.user;
    let has_own = issuer.scopes.has(Scope::Admin) && !is_limited && is_apart;
    (!has_own).then_some(parent.bucket)
}

/// Whether the issuer may replace the key: with an API key only itself and what counts into the same limits, so that a
/// limit cannot be left by way of another key; with an administrator's that is not limited any.
pub(super) fn may_replace(issuer: &KeyIssuer, asker: Option<&ApiKey>, old: &ApiKey) -> bool {
    let Some(asker) = asker else {
        return true;
    };
    let is_limited = asker.allowance != Allowance::default();
    asker.bucket == old.bucket || issuer.scopes.has(Scope::Admin) && !is_limited
}
