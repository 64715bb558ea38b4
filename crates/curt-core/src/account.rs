//! People, what stands for them, and what each of these may do.

use std::collections::HashSet;
use std::fmt;

use crate::clock::UnixMillis;
use crate::owner::OwnerId;
use crate::ports::QuotaRule;

/// Somebody who can own links. Their id is a snowflake, and is the [`OwnerId`] of their links.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct User {
    pub id: OwnerId,
    pub first_name: Box<str>,
    pub middle_name: Option<Box<str>>,
    pub last_name: Box<str>,
    /// In lower case; no two users have the same.
    pub email: Box<str>,
    /// In the PHC string form. `None`: nobody can sign in yet.
    pub password_hash: Option<Box<str>>,
    pub role: Role,
    /// From then on neither the user nor their API keys are let in.
    pub disabled_at: Option<UnixMillis>,
    /// What all API keys of the user together may do.
    pub allowance: Allowance,
    pub created_at: UnixMillis,
    /// Moves with every change; an update names the one that it saw.
    pub updated_at: UnixMillis,
}

/// Without the password's hash, which has no business in a log.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("id", &self.id)
            .field("email", &self.email)
            .field("role", &self.role)
            .field("can_sign_in", &self.password_hash.is_some())
            .field("disabled_at", &self.disabled_at)
            .field("updated_at", &self.updated_at)
            .finish_non_exhaustive()
    }
}

/// The stored number of each role is part of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    #[default]
    Member = 0,
    /// May also see and change what belongs to others.
    Admin = 1,
}

impl Role {
    pub const ALL: [Self; 2] = [Self::Member, Self::Admin];

    #[must_use]
    pub fn from_stored(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|role| *role as u8 == number)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// One thing that an API key may be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Scope {
    /// See links and accounts.
    Read = 1,
    /// Make links.
    Create = 2,
    /// Change and delete links, and who may follow them.
    Manage = 4,
    /// What administrators do; counts only while the key's user is one.
    Admin = 8,
}

impl Scope {
    pub const ALL: [Self; 4] = [Self::Read, Self::Create, Self::Manage, Self::Admin];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Create => "create",
            Self::Manage => "manage",
            Self::Admin => "admin",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A set of scopes, stored as the sum of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self(15);

    #[must_use]
    pub const fn with(self, scope: Scope) -> Self {
        Self(self.0 | scope as u8)
    }

    #[must_use]
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & scope as u8 != 0
    }

    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }

    #[must_use]
    pub const fn stored(self) -> u8 {
        self.0
    }

    #[must_use]
    pub const fn from_stored(number: u8) -> Option<Self> {
        if number <= Self::ALL.0 {
            Some(Self(number))
        } else {
            None
        }
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::NONE, Self::with)
    }
}

/// How much somebody may do per period. `None`: as much as the configuration allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Allowance {
    /// Links made.
    pub creations: Option<QuotaRule>,
    /// Clicks of the links made.
    pub redirections: Option<QuotaRule>,
}

/// The number that a store gives to an API key when it is added. Links remember by it which key made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKeyNumber(pub u32);

/// Accounts with a limit on the clicks of their links, or without any link that is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitedAccounts {
    pub users: HashSet<OwnerId>,
    pub keys: HashSet<ApiKeyNumber>,
    /// There is a limit for every user.
    pub every_user: bool,
    /// There is a limit for every API key.
    pub every_key: bool,
    /// Users whose links are gone while they are disabled.
    pub gone_users: HashSet<OwnerId>,
}

impl LimitedAccounts {
    /// Returns whether clicks on a link count against a limit of its owner or of the API key that made it.
    #[must_use]
    pub fn limits(&self, owner: OwnerId, made_with: Option<ApiKeyNumber>) -> bool {
        let has_owner = owner != OwnerId::ANONYMOUS;
        let by_user = self.users.contains(&owner) || self.every_user && has_owner;
        let by_key = |key| self.every_key || self.keys.contains(&key);
        by_user || made_with.is_some_and(by_key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_a_set_that_can_be_stored() {
        let some: Scopes = [Scope::Read, Scope::Manage, Scope::Read]
            .into_iter()
            .collect();
        assert!(some.has(Scope::Read) && some.has(Scope::Manage));
        assert!(!some.has(Scope::Create) && !some.has(Scope::Admin));
        assert_eq!(
            some.iter().collect::<Vec<_>>(),
            [Scope::Read, Scope::Manage]
        );
        assert_eq!(Scopes::from_stored(some.stored()), Some(some));
        assert_eq!(Scopes::from_stored(16), None);
        assert_eq!(Scope::ALL.into_iter().collect::<Scopes>(), Scopes::ALL);
        assert!(Scopes::NONE.is_empty());
    }

    #[test]
    fn names_and_stored_numbers_lead_back() {
        for scope in Scope::ALL {
            assert_eq!(Scope::from_name(scope.name()), Some(scope));
        }
        for role in Role::ALL {
            assert_eq!(Role::from_name(role.name()), Some(role));
            assert_eq!(Role::from_stored(role as u8), Some(role));
        }
        assert_eq!(Role::from_stored(2), None);
    }
}
