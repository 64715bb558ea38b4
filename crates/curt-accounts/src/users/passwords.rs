use curt_core::names::audit;
use curt_core::{OwnerId, User};

use super::{UserOperations, UserRef};
use crate::admit;
use crate::audit::Origin;
use crate::error::AccountError;

impl UserOperations {
    /// Changes a password for somebody who knows the old one. All their sessions end but `keep`.
    pub async fn change_password(
        &self,
        user: OwnerId,
        old: &str,
        new: &str,
        keep: Option<&str>,
        origin: Origin,
    ) -> Result<(), AccountError> {
        let user = self.check_password(user, old, origin).await?;
        self.write_password(&user, new, keep, origin).await
    }

    /// Checks the password of somebody who is about to change what they sign in with.
    pub async fn check_password(
        &self,
        user: OwnerId,
        password: &str,
        origin: Origin,
    ) -> Result<User, AccountError> {
        let user = self.get(UserRef::Id(user)).await?;
        let is_true = self
            .passwords
            .verify(origin.into(), password, user.password_hash.as_deref())
            .await?;
        if is_true && user.disabled_at.is_none() {
            return Ok(user);
        }
        self.audit
            .record(origin, audit::SIGN_IN_FAILED, &user.email)
            .await;
        Err(AccountError::WrongCredentials)
    }

    /// Gives somebody a new password. All their sessions end.
    pub async fn set_password(
        &self,
        whom: UserRef<'_>,
        new: &str,
        origin: Origin,
    ) -> Result<User, AccountError> {
        let user = self.get(whom).await?;
        self.write_password(&user, new, None, origin).await?;
        Ok(user)
    }

    async fn write_password(
        &self,
        user: &User,
        new: &str,
        keep: Option<&str>,
        origin: Origin,
    ) -> Result<(), AccountError> {
        admit::password(new, &user.email)
            .map_err(|mistake| AccountError::Invalid(vec![mistake]))?;
        self.replace_hash(user, new, origin).await?;
        self.accounts.end_sessions(user.id, keep).await?;
        self.credentials.invalidate_all();
        self.audit
            .record(origin, audit::PASSWORD_CHANGED, &user.email)
            .await;
        Ok(())
    }

    /// Stores a new hash, unless the password was changed since `seen` was read.
    pub(super) async fn replace_hash(
        &self,
        seen: &User,
        password: &str,
        origin: Origin,
    ) -> Result<User, AccountError> {
        let hash = self.passwords.hash(origin.into(), password).await?;
        let (_, changed) = self
            .change(seen.id, |user| {
                if user.password_hash != seen.password_hash {
                    return Err(AccountError::Stale);
                }
                user.password_hash = Some(hash.clone());
                Ok(())
            })
            .await?;
        Ok(changed)
    }
}
