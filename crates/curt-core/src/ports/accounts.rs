use async_trait::async_trait;

use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::owner::OwnerId;

/// Owners and the API keys that act for them.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// Adds an owner if neither id nor name is taken, and says whether it did. Called twice: the second is refused.
    async fn add_owner(&self, owner: &Owner) -> PortResult<bool>;

    /// The owner of that name. Absent: `None`.
    async fn owner_by_name(&self, name: &str) -> PortResult<Option<Owner>>;

    /// All owners, oldest first.
    async fn owners(&self) -> PortResult<Vec<Owner>>;

    /// Adds an API key if its prefix is free and its owner has no other key of that name that is not revoked; says
    /// whether it did.
    async fn add_api_key(&self, key: &ApiKey) -> PortResult<bool>;

    /// The key with that prefix, revoked or not. Absent: `None`.
    async fn api_key(&self, prefix: &str) -> PortResult<Option<ApiKey>>;

    /// All keys, of one owner or of all, oldest first, revoked ones included.
    async fn api_keys(&self, owner: Option<OwnerId>) -> PortResult<Vec<ApiKey>>;

    /// Revokes the key at `now` and says whether this call did. Absent or revoked before: `false`.
    async fn revoke_api_key(&self, prefix: &str, now: UnixMillis) -> PortResult<bool>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub id: OwnerId,
    pub name: Box<str>,
    pub created_at: UnixMillis,
}

/// What is kept of an API key: enough to recognise it, not enough to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// The public part, by which the row is found.
    pub prefix: Box<str>,
    /// SHA-256 of the secret part, which has 128 random bits or more: no slow hash is needed.
    pub secret_hash: [u8; 32],
    pub owner: OwnerId,
    pub name: Box<str>,
    pub created_at: UnixMillis,
    pub expires_at: Option<UnixMillis>,
    pub revoked_at: Option<UnixMillis>,
}
