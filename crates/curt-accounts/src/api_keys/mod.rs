//! API keys: authenticated on every request, issued and revoked by users.

mod issue;
mod issuer;
mod used;

use std::sync::Arc;

use curt_core::ports::{Accounts, ApiKey};
use curt_core::{Clock, OwnerId, PortResult, UnixMillis, User};

pub use self::issue::{IssuedKey, NewKey};
pub use self::issuer::KeyIssuer;
use self::used::LastUsed;
use crate::audit::Audit;
use crate::credentials::{self, Authentication, CredentialCache};
use crate::principal::{Credential, Principal};
use crate::token;

pub struct ApiKeys {
    accounts: Arc<dyn Accounts>,
    clock: Arc<dyn Clock>,
    audit: Arc<Audit>,
    credentials: Arc<CredentialCache>,
    used: LastUsed,
}

impl ApiKeys {
    pub(crate) fn new(
        accounts: Arc<dyn Accounts>,
        clock: Arc<dyn Clock>,
        audit: Arc<Audit>,
        credentials: Arc<CredentialCache>,
    ) -> Arc<Self> {
        Arc::new(Self {
            accounts,
            clock,
            audit,
            credentials,
            used: LastUsed::default(),
        })
    }

    /// Whom the token stands for. Unknown, wrong, revoked and expired tokens, and those of disabled users, are all
    /// `None`, [in the same time](crate::ConstantTime). Answers from memory for up to
    /// [`CREDENTIAL_TTL`](crate::CREDENTIAL_TTL); a failing store is an error, never `None`.
    pub async fn authenticate(&self, token: &str) -> PortResult<Option<Principal>> {
        let now = self.clock.now();
        let look = |prefix, secret| self.look_up_api_key(prefix, secret, now);
        credentials::authenticate_token(&self.credentials, token::API_KEY, token, now, look).await
    }

    async fn look_up_api_key(
        &self,
        prefix: &str,
        secret: &str,
        now: UnixMillis,
    ) -> PortResult<Authentication> {
        let stored = self.accounts.api_key(prefix).await?;
        // Nobody is looked up for an unknown key, so that it costs about what a wrong one costs.
        let user = stored.as_ref().map_or(OwnerId::ANONYMOUS, |key| key.user);
        let user = self.accounts.user(user).await?;
        let verdict = check_api_key(stored, user, &token::hash(secret), now);
        if verdict.principal.is_some() {
            self.used.note(prefix, now);
        }
        Ok(verdict)
    }

    /// The keys of one user or of all, oldest first, ended ones included.
    pub async fn list(&self, user: Option<OwnerId>) -> PortResult<Vec<ApiKey>> {
        self.accounts.api_keys(user).await
    }

    /// Writes down when keys were last used. To be called about once a minute, and at the end.
    pub async fn flush_used(&self) -> PortResult<()> {
        let used = self.used.take();
        if used.is_empty() {
            return Ok(());
        }
        let written = self.accounts.touch_api_keys(&used).await;
        if written.is_err() {
            self.used.put_back(used);
        }
        written
    }
}

fn check_api_key(
    stored: Option<ApiKey>,
    user: Option<User>,
    shown: &[u8; 32],
    now: UnixMillis,
) -> Authentication {
    let matches = token::matches(stored.as_ref().map(|key| &key.secret_hash), shown);
    let (Some(key), Some(user)) = (stored, user) else {
        return Authentication::REFUSED;
    };
    if !matches || !key.is_in_force(now) || user.disabled_at.is_some() {
        return Authentication::REFUSED;
    }
    let ends_at = key.ends_at();
    let via = Credential::ApiKey {
        number: key.number,
        bucket: key.bucket,
        prefix: key.prefix,
        name: key.name,
        allowance: key.allowance,
    };
    Authentication {
        principal: Some(Principal::new(&user, key.scopes, via)),
        ends_at,
    }
}
