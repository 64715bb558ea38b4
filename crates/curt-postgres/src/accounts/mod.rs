//! `Accounts` in PostgreSQL, a file for each part of the port.

mod api_keys;
mod audit;
mod copies;
mod invites;
mod limit;
mod permissions;
mod sessions;
mod users;

use std::sync::Arc;

use super::engine::Engine;
use super::schema::{ACCOUNTS, Tables};

pub(super) struct PostgresAccounts {
    tables: Tables,
}

impl PostgresAccounts {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            tables: Tables::new(engine, &ACCOUNTS),
        }
    }
}
