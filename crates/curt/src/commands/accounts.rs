//! What the commands around accounts share.

use std::time::Duration;

use curt_accounts::{AccountError, AccountServices, UserRef};
use curt_core::limits::PAGE_ACCOUNTS_MAX;
use curt_core::ports::QuotaRule;
use curt_core::{PortResult, Role, Scope, UnixMillis, User};

use super::block_on;
use crate::cli::ConfigArgs;
use crate::config::{Config, units};
use crate::wiring::{self, Beside};

/// Runs a command over the accounts of the configured store, beside a server or without one.
pub(super) fn run(
    config: &ConfigArgs,
    act: impl AsyncFnOnce(&AccountServices) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let config = Config::load(config)?;
    block_on(async {
        let beside = Beside::open(&config)?;
        let done = act(&beside.accounts).await;
        beside.close().await;
        done
    })
}

/// The user with that email, or an error that says where to look.
pub(super) async fn user(accounts: &AccountServices, email: &str) -> anyhow::Result<User> {
    match accounts.users.get(UserRef::Email(email)).await {
        Err(AccountError::NotFound) => {
            anyhow::bail!("there is no user {email:?} (curt user list shows them)")
        }
        found => Ok(found?),
    }
}

pub(super) async fn all_users(accounts: &AccountServices) -> PortResult<Vec<User>> {
    let mut users: Vec<User> = Vec::new();
    loop {
        let after = users.last().map(|user| user.id);
        let page = accounts.users.list(after, PAGE_ACCOUNTS_MAX).await?;
        if page.is_empty() {
            return Ok(users);
        }
        users.extend(page);
    }
}

/// A rate, or that there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed(pub(super) Option<QuotaRule>);

pub(super) fn allowed(text: &str) -> Result<Allowed, String> {
    match text {
        "none" => Ok(Allowed(None)),
        rate => units::rate(rate).map(|rule| Allowed(Some(rule))),
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    units::duration(text)
}

pub(super) fn role(text: &str) -> Result<Role, String> {
    Role::from_name(text).ok_or_else(|| "use admin or member".to_owned())
}

pub(super) fn scope(text: &str) -> Result<Scope, String> {
    Scope::from_name(text).ok_or_else(|| "use read, create, manage or admin".to_owned())
}

/// As [`allowed`] reads it.
pub(super) fn shown_rule(rule: Option<QuotaRule>) -> Option<String> {
    rule.map(|rule| format!("{}/{}", rule.amount, units::shown(rule.period)))
}

pub(super) fn time_or_dash(time: Option<UnixMillis>) -> String {
    time.map_or_else(|| "-".to_owned(), wiring::rfc3339)
}
