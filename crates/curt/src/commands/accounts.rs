//! What the commands around accounts share.

use std::time::Duration;

use curt_accounts::{AccountError, AccountServices, UserRef};
use curt_core::limits::PAGE_ACCOUNTS_MAX;
use curt_core::ports::QuotaRule;
use curt_core::{PortResult, Role, Scope, UnixMillis, User};

use super::block_on;
use crate::cli::ConfigArgs;
use crate::config::{Config, units};
use crate::exit_code::{CommandError, ExitReason};
use crate::wiring::{self, Beside};

/// Runs a command over the accounts of the configured store, beside a server or without one.
pub(super) fn run(
    config: &ConfigArgs,
    act: impl AsyncFnOnce(&AccountServices, &Config) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let config = Config::load(config)?;
    block_on(async {
        let beside = Beside::open(&config)?;
        let done = act(&beside.accounts, &config).await;
        beside.close().await;
        done
    })
}

/// The user with that email, or an error that says where to look.
pub(super) async fn find_user(accounts: &AccountServices, email: &str) -> anyhow::Result<User> {
    match accounts.users.get(UserRef::Email(email)).await {
        Err(AccountError::NotFound) => {
            let message = format!("there is no user {email:?} (curt user list shows them)");
            Err(CommandError::new(ExitReason::NotFound, message).into())
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
pub(super) struct AllowedRate(pub(super) Option<QuotaRule>);

pub(super) fn parse_allowed_rate(text: &str) -> Result<AllowedRate, String> {
    match text {
        "none" => Ok(AllowedRate(None)),
        rate => units::rate(rate).map(|rule| AllowedRate(Some(rule))),
    }
}

pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    units::duration(text)
}

pub(super) fn parse_role(text: &str) -> Result<Role, String> {
    Role::from_name(text).ok_or_else(|| "use admin or member".to_owned())
}

pub(super) fn parse_scope(text: &str) -> Result<Scope, String> {
    Scope::from_name(text).ok_or_else(|| "use read, create, manage or admin".to_owned())
}

/// As [`parse_allowed_rate`] reads it.
pub(super) fn format_rule(rule: Option<QuotaRule>) -> Option<String> {
    rule.map(|rule| format!("{}/{}", rule.amount, units::shown(rule.period)))
}

pub(super) fn format_time_or_dash(time: Option<UnixMillis>) -> String {
    time.map_or_else(|| "-".to_owned(), wiring::rfc3339)
}
