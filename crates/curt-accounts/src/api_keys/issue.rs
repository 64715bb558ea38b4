use std::fmt;
use std::time::Duration;

use curt_core::limits::{API_KEYS_PER_USER_MAX, NAME_BYTES_MAX};
use curt_core::names::audit;
use curt_core::ports::{ApiKey, KeysToRevoke, NewApiKey};
use curt_core::{
    Allowance, ApiKeyNumber, Field, FieldError, FieldErrors, OwnerId, Role, Scope, Scopes,
    UnixMillis, User,
};

use super::{ApiKeys, KeyIssuer, issuer};
use crate::admit;
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
    /// Makes a key. It may never do more than `issuer`, and if that is an API key, it ends with it at the latest, counts
    /// into its limits, and is revoked with it. Only whoever has [`Scope::Admin`] may give it an allowance of its own,
    /// which may be wider than the configuration's.
    pub async fn issue(
        &self,
        new: NewKey,
        issuer: impl Into<KeyIssuer>,
        origin: Origin,
    ) -> Result<IssuedKey, AccountError> {
        let issuer = issuer.into();
        let user = self.accounts.user(new.user).await?;
        let user = user.ok_or(AccountError::NotFound)?;
        let now = self.clock.now();
        let parent = self.parent(&issuer, now).await?;
        let admitted = admit(&new, &user, &issuer, parent.as_ref(), now)?;
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
                name: admitted.name.clone(),
                scopes: new.scopes,
                allowance: admitted.allowance,
                created_at: now,
                expires_at: admitted.expires_at,
                parent: issuer.prefix.clone(),
                bucket: issuer::quota_bucket(user.id, new.allowance, &issuer, parent.as_ref()),
            };
            if let Some(number) = self.accounts.add_api_key(&key).await? {
                self.audit
                    .record(origin, audit::API_KEY_ADDED, &key.prefix)
                    .await;
                return Ok(issued_key(&token, &key, number));
            }
            if self.has_key_named(user.id, &admitted.name, now).await? {
                return Err(AccountError::KeyNameTaken);
            }
            self.parent(&issuer, self.clock.now()).await?;
        }
        Err(exhausted("add an api key"))
    }

    /// Replaces a key by a new one of the same name, scopes, allowance and buckets. The old one goes on for `overlap`,
    /// so that its users can be changed over one by one. An API key's replacement ends when the old one would have, and
    /// with the API key that asked at the latest; anybody else's has the old one's length of life again. `whose` limits
    /// the call to that user's keys.
    pub async fn rotate(
        &self,
        prefix: &str,
        whose: Option<OwnerId>,
        overlap: Duration,
        issuer: impl Into<KeyIssuer>,
        origin: Origin,
    ) -> Result<IssuedKey, AccountError> {
        let issuer = issuer.into();
        for _ in 0..TRIES_MAX {
            let old = self.get(prefix, whose).await?;
            let now = self.clock.now();
            if old.revoked_at.is_some() || !old.is_in_force(now) {
                return Err(AccountError::NotFound);
            }
            let asker = self.parent(&issuer, now).await?;
            if !issuer::may_replace(&issuer, asker.as_ref(), &old) {
                return Err(AccountError::NotItsKey);
            }
            let expires_at = match &asker {
                Some(asker) => [old.expires_at, asker.ends_at()]
                    .into_iter()
                    .flatten()
                    .min(),
                None => self.extend_expiry(&old, now).await?,
            };
            let token = token::API_KEY.generate();
            let successor = NewApiKey {
                parent: issuer.prefix.clone().or_else(|| old.parent.clone()),
                expires_at,
                ..successor(&old, &token, now)
            };
            let retired = retired_name(&old);
            let ends_at = now.plus(overlap);
            let rotated = self
                .accounts
                .rotate_api_key(prefix, &retired, ends_at, &successor)
                .await?;
            self.credentials.invalidate_all();
            if let Some(number) = rotated {
                self.audit
                    .record(origin, audit::API_KEY_ROTATED, prefix)
                    .await;
                return Ok(issued_key(&token, &successor, number));
            }
        }
        Err(exhausted("rotate an api key"))
    }

    /// The end of a life as long as the key's that begins now, but not after the end of the key that made it.
    async fn extend_expiry(
        &self,
        old: &ApiKey,
        now: UnixMillis,
    ) -> Result<Option<UnixMillis>, AccountError> {
        let life = old.expires_at.map(|at| at.since(old.created_at));
        let end = life.map(|life| now.plus(life).min(UnixMillis::MAX));
        let Some(parent) = old.parent.as_deref() else {
            return Ok(end);
        };
        let parent = self.accounts.api_key(parent).await?;
        let parent_end = parent.and_then(|parent| parent.expires_at);
        Ok([end, parent_end].into_iter().flatten().min())
    }

    /// Ends a key and all that it made, and what those made. On this instance at once, on the others within
    /// [`CREDENTIAL_TTL`](crate::CREDENTIAL_TTL). A key that has ended before ends what it made. `whose` limits the call to
    /// that user's keys; what they made ends whoever has it. An API key that would end itself by ending the one that
    /// made it is refused: its holder would be cut off without having asked for it.
    pub async fn revoke(
        &self,
        prefix: &str,
        whose: Option<OwnerId>,
        issuer: impl Into<KeyIssuer>,
        origin: Origin,
    ) -> Result<(), AccountError> {
        self.get(prefix, whose).await?;
        if let Some(own) = issuer.into().prefix
            && self.descends(&own, prefix).await?
        {
            return Err(AccountError::EndsItself);
        }
        self.end(KeysToRevoke::Prefix(prefix), origin)
            .await?
            .then_some(())
            .ok_or(AccountError::NotFound)
    }

    /// Ends all keys of a user and what they made.
    pub async fn revoke_all(&self, user: OwnerId, origin: Origin) -> Result<(), AccountError> {
        self.end(KeysToRevoke::User(user), origin).await.map(drop)
    }

    /// Says whether any key ended.
    async fn end(&self, which: KeysToRevoke<'_>, origin: Origin) -> Result<bool, AccountError> {
        let now = self.clock.now();
        let ended = self.accounts.revoke_api_keys(which, now).await?;
        self.credentials.invalidate_all();
        for prefix in &ended {
            self.audit
                .record(origin, audit::API_KEY_REVOKED, prefix)
                .await;
        }
        Ok(!ended.is_empty())
    }

    /// Whether the first key was made by the second, or by one that was.
    async fn descends(&self, prefix: &str, from: &str) -> Result<bool, AccountError> {
        let mut next = self.accounts.api_key(prefix).await?;
        while let Some(parent) = next.and_then(|key| key.parent) {
            if &*parent == from {
                return Ok(true);
            }
            next = self.accounts.api_key(&parent).await?;
        }
        Ok(false)
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

/// What was asked for, as it is granted.
struct AdmittedKey {
    name: Box<str>,
    allowance: Allowance,
    expires_at: Option<UnixMillis>,
}

fn admit(
    new: &NewKey,
    user: &User,
    issuer: &KeyIssuer,
    parent: Option<&ApiKey>,
    now: UnixMillis,
) -> Result<AdmittedKey, AccountError> {
    let mut mistakes = FieldErrors::default();
    let name = mistakes.note(admit::required_name(Field::Name, &new.name));
    mistakes.note(scopes(new.scopes, user.role, issuer.scopes));
    let expires_at = mistakes.note(issuer::bounded_expiry(new.expires_at, parent, now));
    let allowance = mistakes.note(issuer::granted_allowance(new.allowance, issuer, parent));
    match (name, expires_at, allowance, mistakes.into_vec()) {
        (Some(name), Some(expires_at), Some(allowance), mistakes) if mistakes.is_empty() => {
            Ok(AdmittedKey {
                name,
                allowance,
                expires_at,
            })
        }
        (.., mistakes) => Err(AccountError::Invalid(mistakes)),
    }
}

fn scopes(wanted: Scopes, role: Role, at_most: Scopes) -> Result<(), FieldError> {
    let refused = |code, why| Err(FieldError::new(Field::Scopes, code, why));
    let may_grant =
        |scope: Scope| at_most.has(scope) && (scope != Scope::Admin || role == Role::Admin);
    if wanted.is_empty() {
        return refused("required", "A key needs at least one scope.");
    }
    if !wanted.iter().all(may_grant) {
        return refused(
            "not_allowed",
            "A key cannot do more than its maker and its user.",
        );
    }
    Ok(())
}

fn successor(old: &ApiKey, token: &Token, now: UnixMillis) -> NewApiKey {
    NewApiKey {
        prefix: token.id().into(),
        secret_hash: token.secret_hash(),
        user: old.user,
        name: old.name.clone(),
        scopes: old.scopes,
        allowance: old.allowance,
        created_at: now,
        expires_at: old.expires_at,
        parent: old.parent.clone(),
        bucket: Some(old.bucket),
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

fn issued_key(token: &Token, key: &NewApiKey, number: ApiKeyNumber) -> IssuedKey {
    IssuedKey {
        token: token.reveal().to_owned(),
        key: key.numbered(number),
    }
}
