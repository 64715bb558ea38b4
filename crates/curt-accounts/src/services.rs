use std::sync::Arc;

use curt_core::ports::{Accounts, Quotas};
use curt_core::{Clock, LimitedAccounts, OwnerId, PortResult};

use crate::api_keys::ApiKeys;
use crate::audit::{Audit, Origin};
use crate::credentials::CredentialCache;
use crate::error::AccountError;
use crate::limits::{LimitSettings, Limits};
use crate::passwords::{HashPriority, PasswordCostError, Passwords};
use crate::permissions::Permissions;
use crate::settings::AccountSettings;
use crate::users::UserOperations;

/// Everything of this crate over one store. What is changed through one of them, the others know at once.
#[derive(Clone)]
pub struct AccountServices {
    pub api_keys: Arc<ApiKeys>,
    pub users: Arc<UserOperations>,
    pub permissions: Arc<Permissions>,
    pub limits: Arc<Limits>,
    pub audit: Arc<Audit>,
    /// Of links; users' passwords are [`UserOperations`]'s.
    pub link_passwords: Arc<Passwords>,
}

impl AccountServices {
    /// What whoever sets a new password may ask for beside it.
    pub async fn revoke_keys_if(
        &self,
        asked: bool,
        user: OwnerId,
        origin: Origin,
    ) -> Result<(), AccountError> {
        if asked {
            self.api_keys.revoke_all(user, origin).await?;
        }
        Ok(())
    }

    /// Reads whose clicks are counted, and whose links are gone with them.
    pub async fn read_limited(&self) -> PortResult<LimitedAccounts> {
        let rules = self.limits.refresh_redirections().await?;
        let gone = self.users.users_with_links_gone().await?;
        Ok(LimitedAccounts {
            users: rules.users.keys().copied().collect(),
            keys: rules.keys.keys().copied().collect(),
            every_user: rules.other_users.is_some(),
            every_key: rules.other_keys.is_some(),
            gone_users: gone.into_iter().collect(),
        })
    }

    pub fn new(
        settings: AccountSettings,
        limits: LimitSettings,
        accounts: Arc<dyn Accounts>,
        quotas: Arc<dyn Quotas>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, PasswordCostError> {
        let audit = Audit::new(accounts.clone(), clock.clone());
        let passwords = Passwords::new(settings.passwords, HashPriority::Normal)?;
        // Who unlocks or makes links with passwords must not slow down redirects and sign-ins.
        let link_passwords = Passwords::new(settings.passwords.of_links(), HashPriority::Low)?;
        let credentials = Arc::new(CredentialCache::new());
        Ok(Self {
            api_keys: ApiKeys::new(
                accounts.clone(),
                clock.clone(),
                audit.clone(),
                credentials.clone(),
            ),
            users: UserOperations::new(
                settings,
                accounts.clone(),
                clock.clone(),
                audit.clone(),
                passwords,
                credentials,
            ),
            permissions: Permissions::new(accounts.clone(), clock.clone(), audit.clone()),
            limits: Limits::new(limits, quotas, accounts, clock),
            audit,
            link_passwords,
        })
    }
}
