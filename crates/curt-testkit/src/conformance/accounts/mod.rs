//! Clauses of [`Accounts`], a file for each part of the port.

mod api_key_families;
mod api_keys;
mod audit;
mod invites;
mod permissions;
mod sessions;
mod users;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::Accounts;

use super::Suite;
use crate::sample::user;

type Port = Arc<dyn Accounts>;

/// A hash with zeros, bytes that are no text, and no two alike.
const MIXED_HASH: [u8; 32] = {
    let mut hash = [0; 32];
    let mut place = 0;
    while place < hash.len() {
        hash[place] = (place * 8) as u8;
        place += 1;
    }
    hash
};

pub async fn suite(make: impl AsyncFn() -> Port) {
    let mut suite = Suite::of("Accounts");
    users::clauses(&mut suite, &make).await;
    api_keys::clauses(&mut suite, &make).await;
    api_key_families::clauses(&mut suite, &make).await;
    sessions::clauses(&mut suite, &make).await;
    invites::clauses(&mut suite, &make).await;
    permissions::clauses(&mut suite, &make).await;
    audit::clauses(&mut suite, &make).await;
    suite.finish();
}

/// Runs the clause of each part in a folder of its own.
macro_rules! reopen {
    ($suite:expr, $folder:expr, $open:expr, $($part:ident),+) => {
        $( $suite.clause(
            concat!(stringify!($part), "_survive_reopening"),
            $part::survive_reopening(&$folder.join(stringify!($part)), &$open),
        ).await; )+
    };
}

/// `open` opens the store in the given folder; what an earlier one wrote there must be found again.
pub async fn suite_durable(folder: &Path, open: impl AsyncFn(&Path) -> Port) {
    let mut suite = Suite::of("Accounts, reopened");
    reopen!(
        suite,
        folder,
        open,
        users,
        api_keys,
        sessions,
        invites,
        permissions,
        audit
    );
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
