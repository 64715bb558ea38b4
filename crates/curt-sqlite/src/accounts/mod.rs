//! `Accounts` in the data file, a file for each part of the port.

mod api_keys;
mod audit;
mod copies;
mod invites;
mod limit;
mod permissions;
mod sessions;
mod users;

use std::sync::Arc;

use super::Sqlite;

pub(super) struct SqliteAccounts {
    db: Arc<Sqlite>,
}

impl SqliteAccounts {
    pub(super) fn new(db: Arc<Sqlite>) -> Self {
        Self { db }
    }
}

/// How many rows a page may have, as the engine counts them.
fn rows_max(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
