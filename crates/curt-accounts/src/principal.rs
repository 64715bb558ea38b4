use curt_core::{Allowance, ApiKeyNumber, OwnerId, Role, Scope, Scopes, User};

/// Whom a request acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub user: OwnerId,
    pub role: Role,
    /// What may be done now: [`Scope::Admin`] only while the user is an administrator.
    pub scopes: Scopes,
    pub via: Credential,
    /// The user's own.
    pub allowance: Allowance,
}

/// What was shown for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    ApiKey {
        number: ApiKeyNumber,
        /// The public part of the key.
        prefix: Box<str>,
        name: Box<str>,
        /// The key's own.
        allowance: Allowance,
        /// The key whose buckets count what it does: itself, or the one that made it.
        bucket: ApiKeyNumber,
    },
    Session {
        id: Box<str>,
    },
}

impl Principal {
    pub(crate) fn new(user: &User, granted: Scopes, via: Credential) -> Self {
        let counts = |scope: &Scope| *scope != Scope::Admin || user.role == Role::Admin;
        Self {
            user: user.id,
            role: user.role,
            scopes: granted.iter().filter(counts).collect(),
            via,
            allowance: user.allowance,
        }
    }

    #[must_use]
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.has(scope)
    }

    /// The API key that a new link remembers: the one whose limit on clicks holds for it.
    #[must_use]
    pub fn made_with(&self) -> Option<ApiKeyNumber> {
        match &self.via {
            Credential::ApiKey { bucket, .. } => Some(*bucket),
            Credential::Session { .. } => None,
        }
    }

    /// The prefix of the API key that was shown, if it was one.
    #[must_use]
    pub fn api_key(&self) -> Option<&str> {
        match &self.via {
            Credential::ApiKey { prefix, .. } => Some(prefix),
            Credential::Session { .. } => None,
        }
    }

    /// The session that a password change leaves alone.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        match &self.via {
            Credential::ApiKey { .. } => None,
            Credential::Session { id } => Some(id),
        }
    }
}
