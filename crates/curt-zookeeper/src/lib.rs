//! ZooKeeper behind four ports: leases and the heartbeats as ephemeral nodes, cursors and the shard map.
//!
//! # Addresses
//! `zookeeper://user:password@h1:2181,h2,h3/curt`. The port is 2181 where none is named. Everything lies below the path,
//! which is made when it is absent. With an account, nodes belong to it alone (scheme `digest`); without, to everybody.
//! A password with special characters is percent-encoded.
//!
//! | node | holds |
//! |---|---|
//! | `/curt/shard-locks/keys-db-0` | the lock of that name: its holder's token and description |
//! | `/curt/heartbeats/NAME` | what the process of that name says about itself |
//! | `/curt/shard-map` | the version of the shard map, and a line with node and epoch for each shard |
//! | `/curt/cursors/NAME` | the number of the cursor `NAME`, in digits |
//!
//! # Sessions
//! One session serves all calls. It lives through lost connections and elections; ZooKeeper ends it when it has not
//! heard from us for its timeout, and its leases with it. Then a new session is made in the background, and leases of
//! the old one are lost.
//!
//! Whoever is cut off learns of that only when it is back, or when it gives the session up by itself after 7/5 of the
//! timeout: until then there are two holders. Leases are for efficiency; what must not happen twice carries the
//! fencing token, which is the zxid of the node's creation.
//!
//! # Failures
//! Every call ends after a bounded time. A write without an answer is `Timeout`: it may have been carried out.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod address;
mod cursor;
mod failure;
mod heartbeats;
mod leases;
mod nodes;
mod shard_maps;

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{Cursor, Heartbeats, Leases, ShardMaps};
use curt_core::{ErrorKind, PortError, PortResult};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error};

use address::Route;
use curt_adapter_kit::reconnect::{Current, Reconnecting};

/// The adapter's name in errors.
const BACKEND: &str = "zookeeper";

/// How long to wait for ZooKeeper, and ZooKeeper for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZooKeeperSettings {
    /// How long ZooKeeper keeps the leases of a process that it does not hear from. The servers hold it between 2 and 20
    /// of their ticks.
    pub session_timeout: Duration,
    /// For a session and an answer.
    pub operation_timeout: Duration,
}

impl Default for ZooKeeperSettings {
    fn default() -> Self {
        Self {
            session_timeout: Duration::from_secs(10),
            operation_timeout: Duration::from_secs(5),
        }
    }
}

/// An ensemble of ZooKeeper servers.
pub struct ZooKeeper {
    root: String,
    acls: Acls<'static>,
    link: Reconnecting<Client>,
    settings: ZooKeeperSettings,
}

impl ZooKeeper {
    /// Reads the address. Connects with the first call, so that an ensemble that is away keeps nobody from starting.
    pub fn open(address: &str, settings: ZooKeeperSettings) -> PortResult<Arc<Self>> {
        let route = Arc::new(Route::parse(address)?);
        let root = route.root.clone();
        let acls = match route.account {
            None => Acls::anyone_all(),
            Some(_) => Acls::creator_all(),
        };
        let connect = move || connect(Arc::clone(&route), settings);
        Ok(Arc::new(Self {
            root,
            acls,
            link: Reconnecting::new(connect),
            settings,
        }))
    }

    /// The leases as seen by a holder who describes itself as `holder`.
    #[must_use]
    pub fn leases(self: &Arc<Self>, holder: &str) -> Arc<dyn Leases> {
        Arc::new(leases::ZooKeeperLeases::new(Arc::clone(self), holder))
    }

    #[must_use]
    pub fn cursor(self: &Arc<Self>) -> Arc<dyn Cursor> {
        Arc::new(cursor::ZooKeeperCursor::new(Arc::clone(self)))
    }

    /// The map that all processes below this path share.
    #[must_use]
    pub fn shard_maps(self: &Arc<Self>) -> Arc<dyn ShardMaps> {
        Arc::new(shard_maps::ZooKeeperShardMaps::new(Arc::clone(self)))
    }

    /// The processes that announce themselves here.
    #[must_use]
    pub fn heartbeats(self: &Arc<Self>) -> Arc<dyn Heartbeats> {
        Arc::new(heartbeats::ZooKeeperHeartbeats::new(Arc::clone(self)))
    }

    /// Whether a majority of the servers can be asked.
    pub async fn ping(&self) -> PortResult<()> {
        const OP: &str = "answer a ping";
        let session = self.session(OP).await?;
        self.in_time(OP, session.sync("/")).await
    }

    /// A session that is not known to be over.
    async fn session(&self, op: &'static str) -> PortResult<Client> {
        let living = async {
            loop {
                let current: Current<Client> = self.link.get(op).await?;
                if !current.connection.state().is_terminated() {
                    return Ok(current.connection);
                }
                self.link.lost(&current);
            }
        };
        let timeout = self.settings.operation_timeout;
        tokio::time::timeout(timeout, living)
            .await
            .unwrap_or_else(|_| {
                let detail = format!("no session within {timeout:?}");
                Err(PortError::new(ErrorKind::Unavailable, BACKEND, op, detail))
            })
    }

    async fn in_time<T>(
        &self,
        op: &'static str,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> PortResult<T> {
        match tokio::time::timeout(self.settings.operation_timeout, answer).await {
            Ok(answer) => answer.map_err(|error| failure::of_operation(op, error)),
            Err(_) => Err(failure::of_operation(op, Error::Timeout)),
        }
    }

    fn options(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(self.acls)
    }
}

impl std::fmt::Debug for ZooKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZooKeeper")
            .field("root", &self.root)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// One attempt to begin a session.
async fn connect(route: Arc<Route>, settings: ZooKeeperSettings) -> PortResult<Client> {
    let mut connector = Client::connector()
        .with_session_timeout(settings.session_timeout)
        .with_fail_eagerly();
    if let Some(account) = &route.account {
        connector = connector.with_auth("digest", account.as_bytes());
    }
    let session = connector.connect(&route.servers).await;
    session.map_err(failure::of_connecting)
}
