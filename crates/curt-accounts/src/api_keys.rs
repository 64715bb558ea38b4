use std::fmt;
use std::sync::Arc;

use curt_core::names::event;
use curt_core::ports::{Accounts, ApiKey, Owner};
use curt_core::{Clock, ErrorKind, OwnerId, PortError, PortResult, UnixMillis};
use rand::RngExt;
use subtle::ConstantTimeEq;

use crate::names::{self, NameError};
use crate::token::{self, Token};
use crate::verdicts::{self, Verdict, Verdicts};

/// Random prefixes and owner ids tried before giving up; a second try is already a rarity.
const TRIES_MAX: usize = 8;

/// Whom a request acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub owner: OwnerId,
    /// The public part of the key that was shown.
    pub prefix: Box<str>,
    /// The name of that key.
    pub name: Box<str>,
}

/// A new key. The only moment at which the token is known.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedKey {
    pub token: String,
    pub key: ApiKey,
}

impl fmt::Debug for IssuedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedKey")
            .field("prefix", &self.key.prefix)
            .field("owner", &self.key.owner)
            .field("name", &self.key.name)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("the owner's name is not usable: {0}")]
    OwnerName(NameError),
    #[error("the key's name is not usable: {0}")]
    KeyName(NameError),
    #[error("this owner already has a key of that name: revoke it or choose another name")]
    KeyNameTaken,
    #[error("the expiry must be in the future")]
    ExpiryPast,
    #[error("there is no such key, or it is revoked already")]
    NotFound,
    #[error(transparent)]
    Store(#[from] PortError),
}

pub struct ApiKeys {
    accounts: Arc<dyn Accounts>,
    clock: Arc<dyn Clock>,
    verdicts: Verdicts,
}

impl ApiKeys {
    pub fn new(accounts: Arc<dyn Accounts>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            accounts,
            clock,
            verdicts: Verdicts::new(),
        })
    }

    /// Whom the token stands for. Unknown, wrong, revoked and expired tokens are all `None`, in about the same time.
    /// Answers from memory for up to [`VERDICT_TTL`](crate::VERDICT_TTL); a failing store is an error, never `None`.
    pub async fn authenticate(&self, token: &str) -> PortResult<Option<Principal>> {
        let Some((prefix, secret)) = token::split(token) else {
            return Ok(None);
        };
        let now = self.clock.now();
        let token_hash = verdicts::hash(token);
        if let Some(verdict) = self.verdicts.get(&token_hash, now) {
            return Ok(verdict.principal_at(now));
        }
        let stored = self.accounts.api_key(prefix).await?;
        let verdict = Verdict {
            expires_at: stored.as_ref().and_then(|key| key.expires_at),
            principal: recognise(stored, &token::secret_hash(secret)),
            decided_at: now,
        };
        self.verdicts.put(token_hash, verdict.clone());
        Ok(verdict.principal_at(now))
    }

    /// Makes a key for the owner of that name, and the owner too if there is none yet.
    pub async fn issue(
        &self,
        owner_name: &str,
        key_name: &str,
        expires_at: Option<UnixMillis>,
    ) -> Result<IssuedKey, AccountError> {
        let owner_name = names::check(owner_name).map_err(AccountError::OwnerName)?;
        let key_name = names::check(key_name).map_err(AccountError::KeyName)?;
        let now = self.clock.now();
        if expires_at.is_some_and(|at| at <= now || at > UnixMillis::MAX) {
            return Err(AccountError::ExpiryPast);
        }
        let owner = self.owner(owner_name, now).await?;
        for _ in 0..TRIES_MAX {
            let token = Token::generate();
            let key = ApiKey {
                prefix: token.prefix().into(),
                secret_hash: token.secret_hash(),
                owner: owner.id,
                name: key_name.into(),
                created_at: now,
                expires_at,
                revoked_at: None,
            };
            if self.accounts.add_api_key(&key).await? {
                tracing::info!(
                    event = event::API_KEY_ADDED,
                    prefix = &*key.prefix,
                    owner = %key.owner,
                    "api key added"
                );
                return Ok(IssuedKey {
                    token: token.reveal().to_owned(),
                    key,
                });
            }
            let held = self.accounts.api_keys(Some(owner.id)).await?;
            if held
                .iter()
                .any(|key| *key.name == *key_name && key.revoked_at.is_none())
            {
                return Err(AccountError::KeyNameTaken);
            }
        }
        Err(exhausted("add an api key").into())
    }

    /// Ends a key. On this instance at once, on the others within [`VERDICT_TTL`](crate::VERDICT_TTL).
    pub async fn revoke(&self, prefix: &str) -> Result<(), AccountError> {
        let revoked = self
            .accounts
            .revoke_api_key(prefix, self.clock.now())
            .await?;
        self.verdicts.forget_all();
        if !revoked {
            return Err(AccountError::NotFound);
        }
        tracing::info!(event = event::API_KEY_REVOKED, prefix, "api key revoked");
        Ok(())
    }

    /// Every key with its owner, oldest first, revoked ones included.
    pub async fn list(&self) -> PortResult<Vec<(Owner, ApiKey)>> {
        let owners = self.accounts.owners().await?;
        let keys = self.accounts.api_keys(None).await?;
        let owner_of = |key: &ApiKey| owners.iter().find(|owner| owner.id == key.owner).cloned();
        Ok(keys
            .into_iter()
            .filter_map(|key| Some((owner_of(&key)?, key)))
            .collect())
    }

    async fn owner(&self, name: &str, now: UnixMillis) -> PortResult<Owner> {
        for _ in 0..TRIES_MAX {
            if let Some(owner) = self.accounts.owner_by_name(name).await? {
                return Ok(owner);
            }
            let owner = Owner {
                id: random_owner_id(),
                name: name.into(),
                created_at: now,
            };
            if self.accounts.add_owner(&owner).await? {
                return Ok(owner);
            }
        }
        Err(exhausted("add an owner"))
    }
}

/// The comparison runs for an unknown prefix too, against a hash that nothing has, so that the time of the answer does
/// not tell an unknown prefix from a wrong secret.
fn recognise(stored: Option<ApiKey>, shown_hash: &[u8; 32]) -> Option<Principal> {
    let expected = stored.as_ref().map_or(&[0; 32], |key| &key.secret_hash);
    let matches = bool::from(expected.ct_eq(shown_hash));
    let key = stored.filter(|key| matches && key.revoked_at.is_none())?;
    Some(Principal {
        owner: key.owner,
        prefix: key.prefix,
        name: key.name,
    })
}

/// Never [`OwnerId::ANONYMOUS`], and within the signed 64 bits that every engine can hold.
fn random_owner_id() -> OwnerId {
    OwnerId(rand::rng().random_range(1..=i64::MAX.unsigned_abs()))
}

fn exhausted(op: &'static str) -> PortError {
    PortError::new(
        ErrorKind::Bug,
        "accounts",
        op,
        format!(
            "{TRIES_MAX} random names in a row were taken: the store or the random source is broken"
        ),
    )
}
