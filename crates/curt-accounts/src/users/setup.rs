//! The first account. Whoever started a server proves it with a token that was printed there, on every server of the
//! installation; once anybody can sign in, the door is closed for ever, whatever is shown.
//!
//! The token's hash is kept with the invitations, in a form that no invitation's code can have: what opens the setup
//! does not sign anybody up. It ends when it was made, by its row, which tells it from invitations in lists of them.

use std::time::Duration;

use curt_core::names::audit;
use curt_core::ports::Invite;
use curt_core::{PortResult, Role, UnixMillis, User};

use super::UserOperations;
use super::admit::{self, AdmittedUser, NewUser};
use crate::audit::Origin;
use crate::error::{AccountError, TRIES_MAX, exhausted};
use crate::token;

/// How long a token is good; a later start prints a new one.
const SETUP_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The complement of a code's hash is the hash of no code that anybody could find.
fn setup_hash(token: &str) -> [u8; 32] {
    token::hash(token).map(|byte| !byte)
}

impl UserOperations {
    /// Opens the setup and returns a token for it, if nobody can sign in. Tokens of other servers and of earlier starts
    /// are as good. Makes the operator's account if there is none: of all who then come with a token at once, one changes
    /// that row.
    pub async fn setup_token(&self) -> Result<Option<String>, AccountError> {
        if self.accounts.anybody_can_sign_in().await? {
            return Ok(None);
        }
        let operator = self.ensure_operator().await?;
        let expires_at = self.clock.now().plus(SETUP_TTL).min(UnixMillis::MAX);
        for _ in 0..TRIES_MAX {
            let token = token::secret();
            let invite = Invite {
                secret_hash: setup_hash(&token),
                role: Role::Admin,
                made_by: operator.id,
                created_at: expires_at,
                expires_at,
            };
            if self.accounts.add_invite(&invite).await? {
                return Ok(Some(token));
            }
        }
        Err(exhausted("add a setup token"))
    }

    /// Whether this stands for a setup, and not for an invitation.
    pub(super) fn is_setup(invite: &Invite) -> bool {
        invite.created_at >= invite.expires_at
    }

    /// Whether [`set_up`](Self::set_up) would look at a form that comes with this token.
    pub async fn is_setup_open(&self, token: &str) -> PortResult<bool> {
        Ok(self.is_setup_token(token).await? && !self.accounts.anybody_can_sign_in().await?)
    }

    async fn is_setup_token(&self, token: &str) -> PortResult<bool> {
        let now = self.clock.now();
        let found = self.accounts.invite(&setup_hash(token), now).await?;
        Ok(found.is_some())
    }

    /// Makes the first administrator out of the operator's account.
    pub async fn set_up(
        &self,
        token: &str,
        new: &NewUser,
        origin: Origin,
    ) -> Result<User, AccountError> {
        if !self.is_setup_token(token).await? {
            return Err(AccountError::SetupClosed);
        }
        let user = self.make_first_admin(new, origin).await?;
        self.audit
            .record(origin.by(user.id), audit::SETUP_DONE, &user.email)
            .await;
        Ok(user)
    }

    async fn make_first_admin(&self, new: &NewUser, origin: Origin) -> Result<User, AccountError> {
        if self.accounts.anybody_can_sign_in().await? {
            return Err(AccountError::SetupClosed);
        }
        let admitted = admit::admitted(new)?;
        let hash = self.passwords.hash(origin.into(), &new.password).await?;
        let operator = self.operator().await?;
        let operator = operator.ok_or(AccountError::SetupClosed)?;
        let (_, user) = self
            .change(operator.id, |user| {
                if user.password_hash.is_some() {
                    return Err(AccountError::SetupClosed);
                }
                copy_names(user, &admitted);
                user.password_hash = Some(hash.clone());
                Ok(())
            })
            .await?;
        self.credentials.invalidate_all();
        Ok(user)
    }
}

fn copy_names(user: &mut User, admitted: &AdmittedUser) {
    user.first_name = admitted.first_name.clone();
    user.middle_name = admitted.middle_name.clone();
    user.last_name = admitted.last_name.clone();
    user.email = admitted.email.clone();
}
