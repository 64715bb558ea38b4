//! Redis: one server, plain or with TLS and accounts; or a primary with replicas and Sentinels.

mod sentinels;
mod server;

pub use sentinels::{MASTER_NAME, Sentinels};
pub use server::Server;

use std::sync::Arc;

use anyhow::Result;

use super::Missing;
use super::shared::Shared;

const REDIS: Missing = Missing {
    engine: "Redis",
    install: "apt-get install redis-server redis-tools",
};

/// The server that all tests of this process share, each under a prefix of its own: see [`unique`](super::unique).
pub fn shared() -> Result<Arc<Server>> {
    static SHARED: Shared<Server> = Shared::new();
    SHARED.get(Server::start)
}

/// As [`shared`], over TLS and with an account.
pub fn shared_secured() -> Result<Arc<Server>> {
    static SHARED: Shared<Server> = Shared::new();
    SHARED.get(Server::start_secured)
}

/// As [`shared`], of a primary and a replica behind Sentinels.
pub fn shared_sentinels() -> Result<Arc<Sentinels>> {
    static SHARED: Shared<Sentinels> = Shared::new();
    SHARED.get(|| Sentinels::start(2))
}
