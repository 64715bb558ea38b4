//! What a new installation shows: one API key, and the way to the first account.

use std::time::Duration;

use curt_accounts::{AccountError, AccountServices, NewKey, Origin};
use curt_core::names::event;
use curt_core::{Allowance, Scopes};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::backoff::Backoff;
use crate::supervisor::Supervisor;

const FIRST_NAME: &str = "first";
/// Between two tries while the links database is away.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Shows what a new installation needs: at once where the links database answers, and as soon as it does otherwise.
pub(crate) async fn show(
    supervisor: &Supervisor,
    accounts: &AccountServices,
    base: &str,
) -> Result<(), AccountError> {
    match try_show(accounts, base).await {
        Err(AccountError::Store(failure)) if failure.is_transient() => {
            let (accounts, base) = (accounts.clone(), base.to_owned());
            supervisor.start("first-start", |stop| async move {
                show_later(&accounts, &base, &stop).await;
            });
            Ok(())
        }
        shown => shown,
    }
}

async fn try_show(accounts: &AccountServices, base: &str) -> Result<(), AccountError> {
    show_key_once(accounts).await?;
    show_setup(accounts, base).await
}

async fn show_later(accounts: &AccountServices, base: &str, stop: &CancellationToken) {
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(backoff.next_pause()) => {}
        }
        match try_show(accounts, base).await {
            Ok(()) => return,
            // The limits' task says what is awaited.
            Err(AccountError::Store(failure)) if failure.is_transient() => {}
            Err(failure) => {
                warn!(event = event::TASK_FAILED, %failure, task = "first-start", "first API key not made");
                return;
            }
        }
    }
}

/// Makes one key if there is none at all, for the operator's account, and shows it once, on standard output. It has no
/// end, so that nothing that was set up with it stops one day without a word; the text says how to replace it. Of
/// several servers that start at once on an empty database, one makes the key: the store's own condition on its name
/// decides, and the others go on.
async fn show_key_once(accounts: &AccountServices) -> Result<(), AccountError> {
    if !accounts.api_keys.list(None).await?.is_empty() {
        return Ok(());
    }
    let operator = accounts.users.ensure_operator().await?;
    let key = NewKey {
        user: operator.id,
        name: FIRST_NAME.to_owned(),
        scopes: Scopes::ALL,
        allowance: Allowance::default(),
        expires_at: None,
    };
    let issued = match accounts
        .api_keys
        .issue(key, Scopes::ALL, Origin::OPERATOR)
        .await
    {
        Err(AccountError::KeyNameTaken) => {
            println!("Another server made the first API key, and shows it.");
            return Ok(());
        }
        issued => issued?,
    };
    println!(
        "\nYour API key, for programs and the command line, shown only this once:\n\n    {}\n\n\
         It may do everything and does not end. If it is lost, \"curt api-key add NAME\" makes another. Where this output\n\
         is kept, such as in the journal, so is the key: \"curt api-key rotate {} --overlap 0s\" replaces it.",
        issued.token, issued.key.prefix
    );
    Ok(())
}

/// Shows where the first account is made, at every start until somebody can sign in. The link is good on every server.
async fn show_setup(accounts: &AccountServices, base: &str) -> Result<(), AccountError> {
    if let Some(token) = accounts.users.setup_token().await? {
        println!(
            "\nThe first account, to sign in with a browser, is made at\n\n    {base}/setup?token={token}\n"
        );
    }
    Ok(())
}
