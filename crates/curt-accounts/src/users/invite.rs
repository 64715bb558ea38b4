use std::fmt;
use std::time::Duration;

use curt_core::limits::INVITES_LISTED_MAX;
use curt_core::names::audit;
use curt_core::ports::{Invite, OpenInvites};
use curt_core::{OwnerId, Role, UnixMillis};

use super::UserOperations;
use crate::audit::Origin;
use crate::error::{AccountError, TRIES_MAX, exhausted};
use crate::token;

/// A new invitation. The only moment at which its code is known.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedInvite {
    pub code: String,
    pub role: Role,
    pub expires_at: UnixMillis,
}

/// What names an invitation.
pub enum InviteRef<'a> {
    Code(&'a str),
    /// What is kept of the code, which lets nobody in.
    Hash([u8; 32]),
}

impl InviteRef<'_> {
    fn hash(&self) -> [u8; 32] {
        match self {
            Self::Code(code) => token::hash(code),
            Self::Hash(hash) => *hash,
        }
    }
}

/// Without the code.
impl fmt::Debug for IssuedInvite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invited")
            .field("role", &self.role)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl UserOperations {
    /// Lets one person sign up within `ttl`.
    pub async fn invite(
        &self,
        role: Role,
        ttl: Duration,
        origin: Origin,
    ) -> Result<IssuedInvite, AccountError> {
        let now = self.clock.now();
        let expires_at = now.plus(ttl).min(UnixMillis::MAX);
        for _ in 0..TRIES_MAX {
            let code = token::secret();
            let invite = Invite {
                secret_hash: token::hash(&code),
                role,
                made_by: origin.actor.unwrap_or(OwnerId::ANONYMOUS),
                created_at: now,
                expires_at,
            };
            if self.accounts.add_invite(&invite).await? {
                self.audit.record(origin, audit::INVITED, role.name()).await;
                return Ok(IssuedInvite {
                    code,
                    role,
                    expires_at,
                });
            }
        }
        Err(exhausted("add an invitation"))
    }

    /// Takes an invitation back. Returns whether it could still have been used.
    pub async fn revoke_invite(
        &self,
        named: InviteRef<'_>,
        origin: Origin,
    ) -> Result<bool, AccountError> {
        let now = self.clock.now();
        let taken = self.accounts.take_invite(&named.hash(), now).await?;
        if let Some(invite) = &taken {
            let role = invite.role.name();
            self.audit.record(origin, audit::INVITE_REVOKED, role).await;
        }
        Ok(taken.is_some())
    }

    /// The invitations that can still be used.
    pub async fn invites(&self) -> Result<OpenInvites, AccountError> {
        let now = self.clock.now();
        let mut found = self.accounts.invites(now, INVITES_LISTED_MAX).await?;
        found.invites.retain(|invite| !Self::is_setup(invite));
        Ok(found)
    }

    /// Whether somebody could sign up with the invitation now.
    pub async fn is_invited(&self, named: InviteRef<'_>) -> Result<bool, AccountError> {
        let now = self.clock.now();
        Ok(self.accounts.invite(&named.hash(), now).await?.is_some())
    }
}
