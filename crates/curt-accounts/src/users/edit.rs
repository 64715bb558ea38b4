use curt_core::limits::PAGE_ACCOUNTS_MAX;
use curt_core::names::audit;
use curt_core::ports::{QuotaRule, UserRemoval};
use curt_core::{Field, FieldErrors, OwnerId, Role, UnixMillis, User};

use super::{UserOperations, UserRef, admit as admitted};
use crate::admit::{self, normalized_email};
use crate::audit::Origin;
use crate::error::AccountError;

/// A change of a user: `None` leaves a field as it is, `Some(None)` empties it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserEdit {
    pub first_name: Option<String>,
    pub middle_name: Option<Option<String>>,
    pub last_name: Option<String>,
    pub email: Option<String>,
    pub role: Option<Role>,
    pub creations: Option<Option<QuotaRule>>,
    pub redirections: Option<Option<QuotaRule>>,
}

impl UserOperations {
    /// Changes a user. `seen` refuses the edit as [`AccountError::Stale`] if somebody changed them since. A new role
    /// ends the user's sessions: nobody goes on with rights, or without, that they did not sign in with.
    pub async fn edit(
        &self,
        whom: UserRef<'_>,
        edit: &UserEdit,
        seen: Option<UnixMillis>,
        origin: Origin,
    ) -> Result<User, AccountError> {
        let id = self.get(whom).await?.id;
        let (before, after) = self
            .change(id, |user| {
                if seen.is_some_and(|seen| seen != user.updated_at) {
                    return Err(AccountError::Stale);
                }
                apply(edit, user)
            })
            .await?;
        self.audit
            .record(origin, audit::USER_CHANGED, &after.email)
            .await;
        if before.role != after.role {
            self.end_sessions(&after, origin).await?;
        }
        self.credentials.invalidate_all();
        Ok(after)
    }

    /// Whether that text would be a new email for the user.
    pub async fn changes_email(&self, user: OwnerId, text: &str) -> Result<bool, AccountError> {
        let user = self.get(UserRef::Id(user)).await?;
        Ok(*normalized_email(text) != *user.email)
    }

    /// Keeps somebody out: their sessions end, and their API keys count for nothing until they are enabled again.
    pub async fn disable(&self, whom: UserRef<'_>, origin: Origin) -> Result<User, AccountError> {
        let id = self.get(whom).await?.id;
        let now = self.clock.now();
        let (_, user) = self
            .change(id, |user| {
                user.disabled_at = user.disabled_at.or(Some(now));
                Ok(())
            })
            .await?;
        self.audit
            .record(origin, audit::USER_DISABLED, &user.email)
            .await;
        self.end_sessions(&user, origin).await?;
        Ok(user)
    }

    pub async fn enable(&self, whom: UserRef<'_>, origin: Origin) -> Result<User, AccountError> {
        let id = self.get(whom).await?.id;
        let (_, user) = self
            .change(id, |user| {
                user.disabled_at = None;
                Ok(())
            })
            .await?;
        self.credentials.invalidate_all();
        self.audit
            .record(origin, audit::USER_ENABLED, &user.email)
            .await;
        Ok(user)
    }
}

impl UserOperations {
    /// Refuses an administrator without whom there would be none.
    pub async fn refuse_last_admin(&self, user: &User) -> Result<(), AccountError> {
        if user.role != Role::Admin {
            return Ok(());
        }
        let is_other = |other: &User| {
            other.id != user.id && other.role == Role::Admin && other.disabled_at.is_none()
        };
        let mut after: Option<OwnerId> = None;
        loop {
            let page = self.accounts.users(after, PAGE_ACCOUNTS_MAX).await?;
            if page.iter().any(is_other) {
                return Ok(());
            }
            let last = page.last().ok_or(AccountError::LastAdmin)?;
            after = Some(last.id);
        }
    }

    /// Removes a user, with their sessions and permissions. What else is theirs the caller has dealt with before.
    pub async fn remove(&self, user: &User, origin: Origin) -> Result<(), AccountError> {
        let removal = self.accounts.remove_user(user.id).await?;
        self.credentials.invalidate_all();
        match removal {
            UserRemoval::Removed => {
                let done = self.audit.record(origin, audit::USER_REMOVED, &user.email);
                done.await;
                Ok(())
            }
            UserRemoval::LastAdmin => Err(AccountError::LastAdmin),
            UserRemoval::Absent => Err(AccountError::NotFound),
        }
    }
}

fn apply(edit: &UserEdit, user: &mut User) -> Result<(), AccountError> {
    let mut mistakes = FieldErrors::default();
    if let Some(text) = &edit.first_name
        && let Some(name) = mistakes.note(admit::required_name(Field::FirstName, text))
    {
        user.first_name = name;
    }
    if let Some(text) = &edit.middle_name
        && let Some(name) = mistakes.note(admitted::middle_name(text.as_deref()))
    {
        user.middle_name = name;
    }
    if let Some(text) = &edit.last_name
        && let Some(name) = mistakes.note(admit::name(Field::LastName, text))
    {
        user.last_name = name;
    }
    if let Some(text) = &edit.email
        && *normalized_email(text) != *user.email
        && let Some(email) = mistakes.note(admit::email(text))
    {
        user.email = email;
    }
    user.role = edit.role.unwrap_or(user.role);
    user.allowance.creations = edit.creations.unwrap_or(user.allowance.creations);
    user.allowance.redirections = edit.redirections.unwrap_or(user.allowance.redirections);
    match mistakes.into_vec() {
        mistakes if mistakes.is_empty() => Ok(()),
        mistakes => Err(AccountError::Invalid(mistakes)),
    }
}
