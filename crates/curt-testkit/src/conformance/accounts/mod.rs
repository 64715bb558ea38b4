//! Clauses of [`Accounts`], a file for each part of the port.

mod users;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::Accounts;

use super::Suite;
use crate::sample::user;

type Port = Arc<dyn Accounts>;

pub async fn suite(make: impl AsyncFn() -> Port) {
    let mut suite = Suite::of("Accounts");
    users::clauses(&mut suite, &make).await;
    suite.finish();
}

/// `open` opens the store in the given folder; what an earlier one wrote there must be found again.
pub async fn suite_durable(folder: &Path, open: impl AsyncFn(&Path) -> Port) {
    let mut suite = Suite::of("Accounts, reopened");
    suite
        .clause(
            "users::survive_reopening",
            users::survive_reopening(&folder.join("users"), &open),
        )
        .await;
    suite.finish();
}

/// Two people to work with: 1 is ann@example.com, 2 is bob@example.com.
async fn with_users(accounts: &Port) -> Result<()> {
    for (id, email) in [(1, "ann@example.com"), (2, "bob@example.com")] {
        ensure!(accounts.add_user(&user(id, email)).await?, "user {email}");
    }
    Ok(())
}

fn winners(outcomes: &[bool]) -> usize {
    outcomes.iter().filter(|won| **won).count()
}
