use std::fmt;
use std::time::Duration;

use curt_core::limits::{API_KEYS_PER_USER_MAX, NAME_BYTES_MAX};
use curt_core::names::audit;
use curt_core::ports::{ApiKey, NewApiKey};
use curt_core::{Allowance, ApiKeyNumber, OwnerId, Role, Scope, Scopes, UnixMillis, User};

use super::ApiKeys;
use crate::admit::{self, FieldError, Mistakes};
use crate::audit::Origin;
use crate::error::{AccountError, TRIES_MAX, exhausted};
use crate::token::{self, Token};

/// What a new key is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    pub user: OwnerId,
    /// What the key is for.
    pub name: String,
    pub scopes: Scopes,
    pub allowance: Allowance,
    pub expires_at: Option<UnixMillis>,
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
            .field("user", &self.key.user)
            .field("name", &self.key.name)
            .finish_non_exhaustive()
    }
}

impl ApiKeys {
    /// Makes a key. `at_most` is what its maker may do: a key can never do more, and only whoever has
    /// [`Scope::Admin`] may give it an allowance of its own, which may be wider than the configuration's.
    pub async fn issue(
        &self,
        new: NewKey,
        at_most: Scopes,
        origin: Origin,
    ) -> Result<IssuedKey, AccountError> {
        let user = self.accounts.user(new.user).await?;
        let user = user.ok_or(AccountError::NotFound)?;
        let now = self.clock.now();
        let name = admit(&new, &user, at_most, now)?;
        let held = self.accounts.api_keys(Some(user.id)).await?;
        let in_force = held.iter().filter(|key| key.is_in_force(now));
        if in_force.count() >= API_KEYS_PER_USER_MAX {
            return Err(AccountError::TooMany);
        }
        for _ in 0..TRIES_MAX {
            let token = token::API_KEY.generate();
            let key = NewApiKey {
                prefix: token.id().into(),
                secret_hash: token.secret_hash(),
                user: user.id,
                name: name.clone(),
                scopes: new.scopes,
                allowance: new.allowance,
                created_at: now,
                expires_at: new.expires_at,
            };
            if let Some(number) = self.accounts.add_api_key(&key).await? {
                self.audit
                    .record(origin, audit::API_KEY_ADDED, &key.prefix)
                    .await;
                return Ok(issued(&token, &key, number));
            }
            if self.has_key_named(user.id, &name, now).await? {
                return Err(AccountError::KeyNameTaken);
            }
        }
        Err(exhausted("add an api key"))
    }

    /// Replaces a key by a new one of the same name, scopes, allowance and length of life. The old one goes on for
    /// `overlap`, so that its users can be changed over one by one. `whose` limits the call to that user's keys.
    pub async fn rotate(
        &self,
        prefix: &str,
        whose: Option<OwnerId>,
        overlap: Duration,
        origin: Origin,
    ) -> Result<IssuedKey, AccountError> {
        for _ in 0..TRIES_MAX {
            let old = self.get(prefix, whose).await?;
            let now = self.clock.now();
            if old.revoked_at.is_some() || !old.is_in_force(now) {
                return Err(AccountError::NotFound);
            }
            let token = token::API_KEY.generate();
            let successor = successor(&old, &token, now);
            let retired = retired_name(&old);
            let ends_at = now.plus(overlap);
            let rotated = self
                .accounts
                .rotate_api_key(prefix, &retired, ends_at, &successor)
                .await?;
            self.credentials.forget_all();
            if let Some(number) = rotated {
                self.audit
                    .record(origin, audit::API_KEY_ROTATED, prefix)
                    .await;
                return Ok(issued(&token, &successor, number));
            }
        }
        Err(exhausted("rotate an api key"))
    }

    /// Ends a key. On this instance at once, on the others within [`VERDICT_TTL`](crate::VERDICT_TTL). `whose` limits
    /// the call to that user's keys.
    pub async fn revoke(
        &self,
        prefix: &str,
        whose: Option<OwnerId>,
        origin: Origin,
    ) -> Result<(), AccountError> {
        self.get(prefix, whose).await?;
        let now = self.clock.now();
        let revoked = self.accounts.revoke_api_key(prefix, now).await?;
        self.credentials.forget_all();
        if !revoked {
            return Err(AccountError::NotFound);
        }
        self.audit
            .record(origin, audit::API_KEY_REVOKED, prefix)
            .await;
        Ok(())
    }

    /// A key, ended or not. `whose` limits the call to that user's keys.
    pub async fn get(&self, prefix: &str, whose: Option<OwnerId>) -> Result<ApiKey, AccountError> {
        let key = self.accounts.api_key(prefix).await?;
        key.filter(|key| whose.is_none_or(|user| key.user == user))
            .ok_or(AccountError::NotFound)
    }

    async fn has_key_named(
        &self,
        user: OwnerId,
        name: &str,
        now: UnixMillis,
    ) -> Result<bool, AccountError> {
        let held = self.accounts.api_keys(Some(user)).await?;
        Ok(held
            .iter()
            .any(|key| &*key.name == name && key.is_in_force(now)))
    }
}

fn admit(
    new: &NewKey,
    user: &User,
    at_most: Scopes,
    now: UnixMillis,
) -> Result<Box<str>, AccountError> {
    let mut mistakes = Mistakes::default();
    let name = mistakes.note(admit::required_name("name", &new.name));
    mistakes.note(scopes(new.scopes, user.role, at_most));
    mistakes.note(expiry(new.expires_at, now));
    if new.allowance != Allowance::default() && !at_most.has(Scope::Admin) {
        let why = "only an administrator may set what a key is allowed";
        mistakes.note::<()>(Err(FieldError::new("allowance", "not_allowed", why)));
    }
    match (name, mistakes.into_vec()) {
        (Some(name), mistakes) if mistakes.is_empty() => Ok(name),
        (_, mistakes) => Err(AccountError::Invalid(mistakes)),
    }
}

fn scopes(wanted: Scopes, role: Role, at_most: Scopes) -> Result<(), FieldError> {
    let refused = |code, why| Err(FieldError::new("scopes", code, why));
    let may_grant =
        |scope: Scope| at_most.has(scope) && (scope != Scope::Admin || role == Role::Admin);
    if wanted.is_empty() {
        return refused("required", "a key needs at least one scope");
    }
    if !wanted.iter().all(may_grant) {
        return refused(
            "not_allowed",
            "a key cannot do more than its maker and its user",
        );
    }
    Ok(())
}

fn expiry(at: Option<UnixMillis>, now: UnixMillis) -> Result<(), FieldError> {
    if at.is_some_and(|at| at <= now || at > UnixMillis::MAX) {
        let why = "the expiry must be in the future";
        return Err(FieldError::new("expires_at", "not_in_future", why));
    }
    Ok(())
}

fn successor(old: &ApiKey, token: &Token, now: UnixMillis) -> NewApiKey {
    let life = old.expires_at.map(|at| at.since(old.created_at));
    NewApiKey {
        prefix: token.id().into(),
        secret_hash: token.secret_hash(),
        user: old.user,
        name: old.name.clone(),
        scopes: old.scopes,
        allowance: old.allowance,
        created_at: now,
        expires_at: life.map(|life| now.plus(life).min(UnixMillis::MAX)),
    }
}

/// Unlike the name of any other key, because it holds the prefix.
fn retired_name(old: &ApiKey) -> String {
    let mark = format!(" (retired {})", old.prefix);
    let kept = old
        .name
        .floor_char_boundary(NAME_BYTES_MAX.saturating_sub(mark.len()));
    format!("{}{mark}", &old.name[..kept])
}

fn issued(token: &Token, key: &NewApiKey, number: ApiKeyNumber) -> IssuedKey {
    IssuedKey {
        token: token.reveal().to_owned(),
        key: key.numbered(number),
    }
}
