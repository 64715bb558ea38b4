use std::sync::Arc;

use curt_core::ports::{Accounts, Quotas};
use curt_core::{Clock, OwnerId};

use crate::api_keys::ApiKeys;
use crate::audit::{Audit, Origin};
use crate::credentials::Credentials;
use crate::error::AccountError;
use crate::limits::{LimitSettings, Limits};
use crate::passwords::{HashPriority, PasswordCostError, Passwords};
use crate::people::People;
use crate::permissions::Permissions;
use crate::settings::AccountSettings;

/// Everything of this crate over one store. What is changed through one of them, the others know at once.
#[derive(Clone)]
pub struct AccountServices {
    pub api_keys: Arc<ApiKeys>,
    pub people: Arc<People>,
    pub permissions: Arc<Permissions>,
    pub limits: Arc<Limits>,
    pub audit: Arc<Audit>,
    /// Of links; users' passwords are [`People`]'s.
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
        let credentials = Arc::new(Credentials::new());
        Ok(Self {
            api_keys: ApiKeys::new(
                accounts.clone(),
                clock.clone(),
                audit.clone(),
                credentials.clone(),
            ),
            people: People::new(
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
