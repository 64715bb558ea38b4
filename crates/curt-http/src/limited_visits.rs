//! Where accounts and links meet: the resolver has to know whose visits are counted, and whose links are gone.

use curt_accounts::AccountServices;
use curt_core::PortResult;
use curt_links::{LimitedAccounts, Resolver};

/// Tells the resolver whose visits are counted, and whose links are gone with them. To be called before the first visit, so that a restart forgives
/// nobody, and after every change.
pub async fn limit_visits(accounts: &AccountServices, resolver: &Resolver) -> PortResult<()> {
    let rules = accounts.limits.refresh_redirections().await?;
    let gone = accounts.people.users_with_links_gone().await?;
    resolver.limit(LimitedAccounts {
        users: rules.users.keys().copied().collect(),
        keys: rules.keys.keys().copied().collect(),
        every_user: rules.other_users.is_some(),
        every_key: rules.other_keys.is_some(),
        gone_users: gone.into_iter().collect(),
    });
    Ok(())
}
