//! What a new installation shows: one API key, and the way to the first account.

use curt_accounts::{AccountServices, NewKey, Origin};
use curt_core::{Allowance, Scopes};

const FIRST_NAME: &str = "first";

/// Makes one key if there is none at all, for the operator's account, and shows it once, on standard output. It has no
/// end, so that nothing that was set up with it stops one day without a word; the text says how to replace it.
pub(crate) async fn show_key_once(accounts: &AccountServices) -> anyhow::Result<()> {
    if !accounts.api_keys.list(None).await?.is_empty() {
        return Ok(());
    }
    let operator = accounts.people.ensure_operator().await?;
    let key = NewKey {
        user: operator.id,
        name: FIRST_NAME.to_owned(),
        scopes: Scopes::ALL,
        allowance: Allowance::default(),
        expires_at: None,
    };
    let issued = accounts
        .api_keys
        .issue(key, Scopes::ALL, Origin::OPERATOR)
        .await?;
    println!(
        "Your API key, shown only this once:\n\n    {}\n\n\
         It may do everything and does not end. Where this output is kept, such as in the journal, so is the key: \
         \"curt key rotate {} --overlap 0s\" replaces it.\n",
        issued.token, issued.key.prefix
    );
    Ok(())
}

/// Shows where the first account is made, at every start until somebody can sign in. The link is good on every server.
pub(crate) async fn show_setup(accounts: &AccountServices, base: &str) -> anyhow::Result<()> {
    if let Some(token) = accounts.people.setup_token().await? {
        println!("Make the first account: {base}/setup?token={token}");
    }
    Ok(())
}
