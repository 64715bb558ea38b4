//! Users: sign-up, sign-in, sessions, edits.

mod admit;
mod browsers;
mod edit;
mod invite;
mod operator;
mod passwords;
mod sessions;
mod setup;
mod sign_in;
mod sign_up;

use std::sync::Arc;
use std::time::Duration;

use curt_core::limits::PAGE_ACCOUNTS_MAX;
use curt_core::ports::{Accounts, UserChange};
use curt_core::{Clock, OwnerId, PortResult, User};

pub use self::admit::NewUser;
pub use self::edit::UserEdit;
pub use self::invite::{InviteRef, IssuedInvite};
pub use self::operator::OPERATOR_EMAIL;
pub use self::sign_in::{SignIn, SignedIn};
use crate::admit::{ascii_normalized_email, normalized_email};
use crate::audit::Audit;
use crate::credentials::CredentialCache;
use crate::error::{AccountError, TRIES_MAX, exhausted};
use crate::ids::UserIds;
use crate::passwords::Passwords;
use crate::settings::{AccountSettings, DisabledLinks};

/// A user by id or email.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserRef<'a> {
    Id(OwnerId),
    /// In any case.
    Email(&'a str),
}

pub struct UserOperations {
    settings: AccountSettings,
    accounts: Arc<dyn Accounts>,
    clock: Arc<dyn Clock>,
    audit: Arc<Audit>,
    passwords: Arc<Passwords>,
    credentials: Arc<CredentialCache>,
    ids: UserIds,
}

impl UserOperations {
    pub(crate) fn new(
        settings: AccountSettings,
        accounts: Arc<dyn Accounts>,
        clock: Arc<dyn Clock>,
        audit: Arc<Audit>,
        passwords: Arc<Passwords>,
        credentials: Arc<CredentialCache>,
    ) -> Arc<Self> {
        Arc::new(Self {
            settings,
            accounts,
            clock,
            audit,
            passwords,
            credentials,
            ids: UserIds::new(),
        })
    }

    #[must_use]
    pub fn settings(&self) -> &AccountSettings {
        &self.settings
    }

    /// Absent: [`AccountError::NotFound`].
    pub async fn get(&self, whom: UserRef<'_>) -> Result<User, AccountError> {
        find(&*self.accounts, whom)
            .await?
            .ok_or(AccountError::NotFound)
    }

    /// Up to `limit` users with an id above `after`, oldest first.
    pub async fn list(&self, after: Option<OwnerId>, limit: usize) -> PortResult<Vec<User>> {
        // One beyond a page, which tells whether there is a next.
        let limit = limit.min(PAGE_ACCOUNTS_MAX + 1);
        self.accounts.users(after, limit).await
    }

    /// The users whose links are gone because they are disabled, if the settings say so.
    pub async fn users_with_links_gone(&self) -> PortResult<Vec<OwnerId>> {
        match self.settings.disabled_links {
            DisabledLinks::Serve => Ok(Vec::new()),
            DisabledLinks::Gone => self.accounts.disabled_users().await,
        }
    }

    /// Changes a user as they are now, again if somebody else was faster. Returns the user before and after.
    async fn change(
        &self,
        id: OwnerId,
        edit: impl Fn(&mut User) -> Result<(), AccountError>,
    ) -> Result<(User, User), AccountError> {
        for _ in 0..TRIES_MAX {
            let before = self.get(UserRef::Id(id)).await?;
            let mut after = before.clone();
            edit(&mut after)?;
            // Later than before even when the clock is not.
            let next = before.updated_at.plus(Duration::from_millis(1));
            after.updated_at = self.clock.now().max(next);
            match self.accounts.update_user(&after, before.updated_at).await? {
                UserChange::Changed => return Ok((before, after)),
                UserChange::Stale => {}
                UserChange::EmailTaken => return Err(AccountError::EmailTaken),
                UserChange::Absent => return Err(AccountError::NotFound),
            }
        }
        Err(exhausted("change a user"))
    }
}

pub(crate) async fn find(accounts: &dyn Accounts, whom: UserRef<'_>) -> PortResult<Option<User>> {
    match whom {
        UserRef::Id(id) => accounts.user(id).await,
        UserRef::Email(email) => {
            // Accounts that are older than the rule keep the form that they were made with.
            let before = ascii_normalized_email(email);
            let found = accounts.user_by_email(&before).await?;
            let folded = normalized_email(email);
            if found.is_some() || folded == before {
                return Ok(found);
            }
            accounts.user_by_email(&folded).await
        }
    }
}
