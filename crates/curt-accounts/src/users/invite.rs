use std::fmt;
use std::time::Duration;

use curt_core::names::audit;
use curt_core::ports::Invite;
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
    pub async fn revoke_invite(&self, code: &str, origin: Origin) -> Result<bool, AccountError> {
        let now = self.clock.now();
        let taken = self.accounts.take_invite(&token::hash(code), now).await?;
        if let Some(invite) = &taken {
            let role = invite.role.name();
            self.audit.record(origin, audit::INVITE_REVOKED, role).await;
        }
        Ok(taken.is_some())
    }

    /// Whether the code would let somebody sign up now.
    pub async fn is_invited(&self, code: &str) -> Result<bool, AccountError> {
        let now = self.clock.now();
        Ok(self
            .accounts
            .invite(&token::hash(code), now)
            .await?
            .is_some())
    }
}
