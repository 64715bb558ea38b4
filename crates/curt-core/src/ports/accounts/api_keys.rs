use async_trait::async_trait;

use crate::account::{Allowance, ApiKeyNumber, Scopes};
use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::owner::OwnerId;
use crate::ports::QuotaRule;

#[async_trait]
pub trait ApiKeys: Send + Sync {
    /// Adds a key if its prefix is free, its user has no other key of that name that is in force at `key.created_at`
    /// (neither revoked nor expired by then), and its parent, if it has one, is in force then; and gives it the next
    /// number. Otherwise: `None`. A key below a parent expires with it at the latest, whatever `key.expires_at` says:
    /// when the parent expires or for when it is revoked, as stored at this moment.
    async fn add_api_key(&self, key: &NewApiKey) -> PortResult<Option<ApiKeyNumber>>;

    /// The key with that prefix, revoked or not. Absent: `None`.
    async fn api_key(&self, prefix: &str) -> PortResult<Option<ApiKey>>;

    /// All keys, of one user or of all, in the order of their numbers, revoked ones included.
    async fn api_keys(&self, user: Option<OwnerId>) -> PortResult<Vec<ApiKey>>;

    /// Ends the named keys, and every key that descends from one of them by [`NewApiKey::parent`], at `at`, which may
    /// lie in the future, in one step: a key that is added below one of them afterwards ends then too. Returns the prefixes
    /// of the keys that this call ended, sorted. Those that are absent, or revoked for that instant or a sooner one,
    /// are not among them; their descendants may be. When a key expires plays no part.
    async fn revoke_api_keys(
        &self,
        which: KeysToRevoke<'_>,
        at: UnixMillis,
    ) -> PortResult<Vec<Box<str>>>;

    /// Replaces the key by `successor`, which takes over its name, whatever `successor.name` says, in one step: the old
    /// one ends at `ends_at`, and has the name `retired_name` from now on. Absent, not of `successor.user`, or revoked,
    /// if only for later; or the successor's prefix is taken, or another key in force has that name, which can be once
    /// the old one has expired; or the successor's parent is not in force at `successor.created_at` and not the old
    /// one's: `None`, and nothing is changed. A parent that is not the old one's bounds the successor's expiry, as in
    /// [`add_api_key`](Self::add_api_key). Called twice: the second is refused.
    async fn rotate_api_key(
        &self,
        prefix: &str,
        retired_name: &str,
        ends_at: UnixMillis,
        successor: &NewApiKey,
    ) -> PortResult<Option<ApiKeyNumber>>;

    /// Notes when each key was last used; a time older than the noted one changes nothing. Unknown prefixes are
    /// skipped. Timed out or called twice: no harm.
    async fn touch_api_keys(&self, used: &[(Box<str>, UnixMillis)]) -> PortResult<()>;

    /// Who has a limit on redirections of their own: users, and keys, revoked ones too, because the limit is that of the
    /// links that the key made, and those go on. Both are few.
    async fn redirection_limits(&self) -> PortResult<RedirectionLimits>;
}

/// Which keys are to end, beside those that descend from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysToRevoke<'a> {
    Prefix(&'a str),
    /// All of one user.
    User(OwnerId),
}

/// An API key that has no number yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApiKey {
    /// The public part, by which the row is found.
    pub prefix: Box<str>,
    /// SHA-256 of the secret part, which has 128 random bits or more: no slow hash is needed.
    pub secret_hash: [u8; 32],
    pub user: OwnerId,
    pub name: Box<str>,
    pub scopes: Scopes,
    pub allowance: Allowance,
    pub created_at: UnixMillis,
    pub expires_at: Option<UnixMillis>,
    /// The prefix of the API key that made this one, or that replaced its predecessor. `None`: a user or the operator
    /// did.
    pub parent: Option<Box<str>>,
    /// The key whose quota buckets this one counts into. `None`: it has buckets of its own.
    pub bucket: Option<ApiKeyNumber>,
}

impl NewApiKey {
    /// The key as it is stored when it has just been added.
    #[must_use]
    pub fn numbered(&self, number: ApiKeyNumber) -> ApiKey {
        ApiKey {
            number,
            prefix: self.prefix.clone(),
            secret_hash: self.secret_hash,
            user: self.user,
            name: self.name.clone(),
            scopes: self.scopes,
            allowance: self.allowance,
            created_at: self.created_at,
            expires_at: self.expires_at,
            parent: self.parent.clone(),
            bucket: self.bucket.unwrap_or(number),
            revoked_at: None,
            last_used_at: None,
        }
    }
}

/// What is kept of an API key: enough to recognise it, not enough to use it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ApiKey {
    pub number: ApiKeyNumber,
    pub prefix: Box<str>,
    pub secret_hash: [u8; 32],
    pub user: OwnerId,
    pub name: Box<str>,
    pub scopes: Scopes,
    pub allowance: Allowance,
    pub created_at: UnixMillis,
    pub expires_at: Option<UnixMillis>,
    /// As in [`NewApiKey`].
    pub parent: Option<Box<str>>,
    /// The key whose quota buckets this one counts into: itself, unless another key made it.
    pub bucket: ApiKeyNumber,
    /// The key ends at this instant, which may be in the future.
    pub revoked_at: Option<UnixMillis>,
    pub last_used_at: Option<UnixMillis>,
}

impl ApiKey {
    /// Whether the key itself lets its holder in at `now`; its user may still be disabled.
    #[must_use]
    pub fn is_in_force(&self, now: UnixMillis) -> bool {
        let ended = |at: UnixMillis| at <= now;
        !self.expires_at.is_some_and(ended) && !self.revoked_at.is_some_and(ended)
    }

    /// When the key ends by itself or by what was decided already. `None`: never.
    #[must_use]
    pub fn ends_at(&self) -> Option<UnixMillis> {
        [self.expires_at, self.revoked_at]
            .into_iter()
            .flatten()
            .min()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedirectionLimits {
    /// In the order of their ids.
    pub users: Vec<(OwnerId, QuotaRule)>,
    /// In the order of their numbers.
    pub keys: Vec<(ApiKeyNumber, QuotaRule)>,
}
