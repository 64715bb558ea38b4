use async_trait::async_trait;

use crate::account::Role;
use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::owner::OwnerId;

/// Single-use permissions to sign up.
#[async_trait]
pub trait Invites: Send + Sync {
    /// Adds an invitation if its hash is new, and says whether it did.
    async fn add_invite(&self, invite: &Invite) -> PortResult<bool>;

    /// Removes the invitation with that hash and returns it, if it has not expired at `now`. Of two callers one gets
    /// it. Absent or expired: `None`.
    async fn take_invite(
        &self,
        secret_hash: &[u8; 32],
        now: UnixMillis,
    ) -> PortResult<Option<Invite>>;

    /// The invitation with that hash, if it has not expired at `now`; it stays.
    async fn invite(&self, secret_hash: &[u8; 32], now: UnixMillis) -> PortResult<Option<Invite>>;
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Invite {
    /// SHA-256 of what the invited person shows.
    pub secret_hash: [u8; 32],
    pub role: Role,
    pub made_by: OwnerId,
    pub created_at: UnixMillis,
    pub expires_at: UnixMillis,
}
