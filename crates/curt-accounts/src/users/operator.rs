use curt_core::limits::PAGE_ACCOUNTS_MAX;
use curt_core::{OwnerId, PortResult, Role, User};

use super::UserOperations;
use super::admit::AdmittedUser;
use crate::error::AccountError;

/// The account that keys belong to before anybody has one of their own. Nobody can sign in to it; the setup gives it
/// to the first administrator, links and keys included.
pub const OPERATOR_EMAIL: &str = "operator@localhost";

impl UserOperations {
    /// The operator's account: the one of that email, or else the oldest administrator. `None`: there is none yet.
    pub async fn operator(&self) -> PortResult<Option<User>> {
        let named = self.accounts.user_by_email(OPERATOR_EMAIL).await?;
        if let Some(user) = named.filter(is_active_admin) {
            return Ok(Some(user));
        }
        let mut after: Option<OwnerId> = None;
        loop {
            let page = self.accounts.users(after, PAGE_ACCOUNTS_MAX).await?;
            let Some(last) = page.last() else {
                return Ok(None);
            };
            after = Some(last.id);
            if let Some(user) = page.into_iter().find(is_active_admin) {
                return Ok(Some(user));
            }
        }
    }

    /// The operator's account, made if there is no administrator.
    pub async fn ensure_operator(&self) -> Result<User, AccountError> {
        if let Some(user) = self.operator().await? {
            return Ok(user);
        }
        let operator = AdmittedUser {
            first_name: "Operator".into(),
            middle_name: None,
            last_name: "".into(),
            email: OPERATOR_EMAIL.into(),
        };
        match self.insert(operator, None, Role::Admin).await {
            // Somebody else made it in between.
            Err(AccountError::EmailTaken) => self.operator().await?.ok_or(AccountError::EmailTaken),
            made => made,
        }
    }
}

fn is_active_admin(user: &User) -> bool {
    user.role == Role::Admin && user.disabled_at.is_none()
}
