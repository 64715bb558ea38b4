//! PostgreSQL: one server, or a primary with a standby that follows it asynchronously.

mod pair;
mod programs;
mod server;

pub use pair::Pair;
pub use server::{Database, SYNCED, Server};

use std::sync::Arc;

use anyhow::Result;

use super::shared::Shared;

/// The server that all tests of this process share, each in a [`Database`] of its own.
pub fn shared() -> Result<Arc<Server>> {
    static SHARED: Shared<Server> = Shared::new();
    SHARED.get(Server::start)
}
