use curt_core::names::audit;
use curt_core::ports::Invite;
use curt_core::{Allowance, Role, User};

use super::UserOperations;
use super::admit::{self, AdmittedUser, NewUser};
use crate::audit::Origin;
use crate::error::{AccountError, TRIES_MAX, exhausted};
use crate::settings::SignUp;
use crate::token;

impl UserOperations {
    /// Makes an account for somebody who comes by themselves. An invitation is used up by the account that it makes,
    /// and by nothing else.
    pub async fn sign_up(
        &self,
        new: &NewUser,
        invite_code: Option<&str>,
        origin: Origin,
    ) -> Result<User, AccountError> {
        let invite = self.admission(invite_code).await?;
        let admitted = admit::admitted(new)?;
        if self
            .accounts
            .user_by_email(&admitted.email)
            .await?
            .is_some()
        {
            return Err(AccountError::EmailTaken);
        }
        let hash = self.passwords.hash(origin.into(), &new.password).await?;
        let Some(invite) = invite else {
            let user = self.insert(admitted, Some(hash), Role::Member).await?;
            return Ok(self.signed_up(user, origin).await);
        };
        let now = self.clock.now();
        let taken = self.accounts.take_invite(&invite.secret_hash, now).await?;
        let invite = taken.ok_or(AccountError::InviteInvalid)?;
        match self.insert(admitted, Some(hash), invite.role).await {
            Ok(user) => Ok(self.signed_up(user, origin).await),
            Err(failure) => {
                self.accounts.add_invite(&invite).await?;
                Err(failure)
            }
        }
    }

    /// Makes an account for somebody else.
    pub async fn add(
        &self,
        new: &NewUser,
        role: Role,
        origin: Origin,
    ) -> Result<User, AccountError> {
        let admitted = admit::admitted(new)?;
        let hash = self.passwords.hash(origin.into(), &new.password).await?;
        let user = self.insert(admitted, Some(hash), role).await?;
        self.audit
            .record(origin, audit::USER_ADDED, &user.email)
            .await;
        Ok(user)
    }

    /// What lets somebody in who shows that code: `None` where nothing is needed.
    async fn admission(&self, code: Option<&str>) -> Result<Option<Invite>, AccountError> {
        match (self.settings.sign_up, code) {
            (SignUp::Closed, _) | (SignUp::Invite, None) => Err(AccountError::SignUpClosed),
            (SignUp::Invite | SignUp::Open, Some(code)) => {
                let now = self.clock.now();
                let invite = self.accounts.invite(&token::hash(code), now).await?;
                invite.map(Some).ok_or(AccountError::InviteInvalid)
            }
            // The first account is the operator's: a stranger must not close the setup by being faster.
            (SignUp::Open, None) if !self.accounts.anybody_can_sign_in().await? => {
                Err(AccountError::SignUpClosed)
            }
            (SignUp::Open, None) => Ok(None),
        }
    }

    async fn signed_up(&self, user: User, origin: Origin) -> User {
        self.audit
            .record(origin.by(user.id), audit::SIGNED_UP, &user.email)
            .await;
        user
    }

    pub(super) async fn insert(
        &self,
        admitted: AdmittedUser,
        password_hash: Option<Box<str>>,
        role: Role,
    ) -> Result<User, AccountError> {
        let now = self.clock.now();
        let mut user = User {
            id: self.ids.next(now),
            first_name: admitted.first_name,
            middle_name: admitted.middle_name,
            last_name: admitted.last_name,
            email: admitted.email,
            password_hash,
            role,
            disabled_at: None,
            allowance: Allowance::default(),
            created_at: now,
            updated_at: now,
        };
        for _ in 0..TRIES_MAX {
            if self.accounts.add_user(&user).await? {
                return Ok(user);
            }
            if self.accounts.user_by_email(&user.email).await?.is_some() {
                return Err(AccountError::EmailTaken);
            }
            user.id = self.ids.next(now);
        }
        Err(exhausted("add a user"))
    }
}
