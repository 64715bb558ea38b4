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

    /// Up to `limit` invitations that were not taken and have not expired at `now`, those that end first first. Engines
    /// that cannot look them up by time read a bounded number of rows for it: the list tells whether it is complete.
    async fn invites(&self, now: UnixMillis, limit: usize) -> PortResult<OpenInvites>;
}

/// Invitations that can still be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenInvites {
    pub invites: Vec<Invite>,
    /// Whether there are no others.
    pub is_complete: bool,
}

impl OpenInvites {
    /// Puts invitations in the order of the list, and leaves out what is beyond the limit.
    #[must_use]
    pub fn of(mut invites: Vec<Invite>, limit: usize) -> Self {
        invites.sort_unstable_by_key(|invite| (invite.expires_at, invite.secret_hash));
        let is_complete = invites.len() <= limit;
        invites.truncate(limit);
        Self {
            invites,
            is_complete,
        }
    }
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
