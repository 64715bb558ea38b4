//! Everything over one store in memory.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use curt_accounts::{
    AccountError, AccountServices, AccountSettings, IssuedKey, LimitSettings, NewKey, NewUser,
    Origin, PasswordSettings, SignIn, SignUp, SignedIn,
};
use curt_core::clock::ManualClock;
use curt_core::ports::AuditLog as _;
use curt_core::{Allowance, Role, Scopes, UnixMillis, User};
use curt_memory::MemoryQuotas;

use crate::probed::Probed;

pub(crate) const START: UnixMillis = UnixMillis(1_800_000_000_000);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);
pub(crate) const PASSWORD: &str = "correct horse battery";
/// As little work as Argon2 allows.
pub(crate) const CHEAP: PasswordSettings = PasswordSettings {
    memory_kib: 8,
    passes: 1,
    hashers: 2,
    link_hashers: 1,
};
pub(crate) const ORIGIN: Origin = Origin {
    actor: None,
    address: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))),
};

pub(crate) struct World {
    pub(crate) store: Arc<Probed>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) accounts: AccountServices,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(SignUp::Closed)
    }

    pub(crate) fn with(sign_up: SignUp) -> Self {
        let store = Arc::new(Probed::default());
        let clock = Arc::new(ManualClock::at(START));
        let accounts = services(sign_up, CHEAP, &store, &clock);
        Self {
            store,
            clock,
            accounts,
        }
    }

    /// Another instance over the same store, at that cost of passwords.
    pub(crate) fn elsewhere(&self, passwords: PasswordSettings) -> AccountServices {
        services(SignUp::Closed, passwords, &self.store, &self.clock)
    }

    pub(crate) async fn member(&self, email: &str) -> User {
        self.add(email, Role::Member).await
    }

    pub(crate) async fn admin(&self, email: &str) -> User {
        self.add(email, Role::Admin).await
    }

    async fn add(&self, email: &str, role: Role) -> User {
        let added = self.accounts.users.add(&person(email), role, ORIGIN).await;
        added.unwrap()
    }

    pub(crate) async fn key(&self, user: &User, name: &str) -> IssuedKey {
        let key = new_key(user, name);
        let at_most = key.scopes;
        let issued = self.accounts.api_keys.issue(key, at_most, ORIGIN).await;
        issued.unwrap()
    }

    pub(crate) async fn is_key(&self, token: &str) -> bool {
        let found = self.accounts.api_keys.authenticate(token).await.unwrap();
        found.is_some()
    }

    pub(crate) async fn sign_in(&self, email: &str) -> SignedIn {
        self.try_sign_in(email, PASSWORD).await.unwrap()
    }

    pub(crate) async fn try_sign_in(
        &self,
        email: &str,
        password: &str,
    ) -> Result<SignedIn, AccountError> {
        let shown = SignIn {
            email,
            password,
            agent: "tests",
            replaces: None,
        };
        self.accounts.users.sign_in(shown, ORIGIN).await
    }

    pub(crate) async fn is_session(&self, token: &str) -> bool {
        let users = &self.accounts.users;
        users.authenticate_session(token).await.unwrap().is_some()
    }

    /// Actions and subjects in the audit log, oldest first.
    pub(crate) async fn audited(&self) -> Vec<(String, String)> {
        let entries = self.store.inner.audit(None, 10_000).await.unwrap();
        entries
            .into_iter()
            .rev()
            .map(|(_, entry)| (entry.action.into(), entry.subject.into()))
            .collect()
    }
}

fn services(
    sign_up: SignUp,
    passwords: PasswordSettings,
    store: &Arc<Probed>,
    clock: &Arc<ManualClock>,
) -> AccountServices {
    let settings = AccountSettings {
        sign_up,
        passwords,
        ..AccountSettings::default()
    };
    let quotas = Arc::new(MemoryQuotas::new(clock.clone()));
    let limits = LimitSettings::NONE;
    AccountServices::new(settings, limits, store.clone(), quotas, clock.clone()).unwrap()
}

pub(crate) fn person(email: &str) -> NewUser {
    NewUser {
        first_name: "Ann".to_owned(),
        middle_name: None,
        last_name: "Other".to_owned(),
        email: email.to_owned(),
        password: PASSWORD.to_owned(),
    }
}

/// Everything that the user's role allows.
pub(crate) fn new_key(user: &User, name: &str) -> NewKey {
    let usual = [
        curt_core::Scope::Read,
        curt_core::Scope::Create,
        curt_core::Scope::Manage,
    ];
    NewKey {
        user: user.id,
        name: name.to_owned(),
        scopes: match user.role {
            Role::Admin => Scopes::ALL,
            Role::Member => usual.into_iter().collect(),
        },
        allowance: Allowance::default(),
        expires_at: None,
    }
}

/// The codes of the mistakes, by field.
pub(crate) fn mistakes<T>(done: Result<T, AccountError>) -> Vec<(&'static str, &'static str)> {
    match done {
        Err(AccountError::Invalid(mistakes)) => mistakes
            .iter()
            .map(|mistake| (mistake.field.name(), mistake.code))
            .collect(),
        Err(other) => panic!("{other}"),
        Ok(_) => Vec::new(),
    }
}
