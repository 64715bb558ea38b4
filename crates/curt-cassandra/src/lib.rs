//! Cassandra, or ScyllaDB, behind the ports of links, accounts, clicks and cursors.
//!
//! # Addresses
//! `cassandra://user:password@h1,h2:9043/keyspace?namespace=blue&datacenter=eu1`. The port is 9042 where none is named;
//! other nodes are found through those that are named, and are reached on the same port as the first that answers.
//! Several installations may share a keyspace, each in a namespace of its own. Nodes of the data centre are asked first.
//! Keyspace and tables are made with the first call, or by `curt migrate`. Connections are not encrypted: a password goes to
//! other machines only with `&sslmode=disable`.
//!
//! # Consistency
//! What must not happen twice is a lightweight transaction: `IF NOT EXISTS` for a key, a condition on the revision for
//! every change. All writes of such a partition are: mixed with others, neither would be ordered. Reads and commits meet
//! in at least one replica (`cassandra.consistency`), so that what was acknowledged is seen.
//!
//! # Failures
//! A transaction without an answer may have been applied, or may be applied later. Each leaves a random mark in its row:
//! it is read again as it was decided, and tried again under the same mark as long as nobody can tell. What is still
//! unknown at the deadline has the kind `Timeout`.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod accounts;
mod address;
mod clicks;
mod connect;
mod cursor;
mod engine;
mod failure;
mod links;
mod notes;
mod ordered;
mod scan;
mod schema;
mod settings;
mod statement;

use std::fmt;
use std::sync::Arc;

use curt_adapter_kit::wide_column::accounts::WideAccounts;
use curt_adapter_kit::wide_column::clicks::WideClicks;
use curt_adapter_kit::wide_column::links::WideLinks;
use curt_adapter_kit::{AccountTransfer, ClickTransfer, TableClicks};
use curt_core::PortResult;
use curt_core::ports::{
    AccountItem, Accounts, ClickDatabase, ClickItem, Cursor, LinkDatabase, LinkTransfer, MapNotes,
    StreamId, Transfer,
};

use address::Route;
use engine::Engine;
use ordered::CassandraLists;

pub use curt_adapter_kit::Migration;
pub use settings::{CassandraSettings, ReplicaConsistency, Replication, SerialScope};

/// A keyspace of a cluster.
#[derive(Clone)]
pub struct Cassandra {
    engine: Arc<Engine>,
    namespace: Arc<str>,
}

impl Cassandra {
    /// Reads the address and connects to nothing yet.
    pub fn open(address: &str, settings: &CassandraSettings) -> PortResult<Self> {
        let route = Route::parse(address)?;
        let namespace = Arc::from(&*route.namespace);
        let engine = Engine::new(route, settings);
        Ok(Self { engine, namespace })
    }

    /// The same connections, for what lies in another namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            engine: Arc::clone(&self.engine),
            namespace: namespace.into(),
        }
    }

    /// Makes the keyspace and its tables, or brings them up to date, and says what that took. Returns when all nodes that
    /// can be reached know of it.
    pub async fn migrate(&self) -> PortResult<&'static [Migration]> {
        let (route, settings) = (&self.engine.route, &self.engine.settings);
        let session = connect::open_session(route, settings).await?;
        schema::migrate(&session, route, settings).await
    }

    /// What [`migrate`](Self::migrate) would do.
    pub async fn pending(&self) -> PortResult<&'static [Migration]> {
        schema::pending(&self.engine.route, &self.engine.settings).await
    }

    #[must_use]
    pub fn links(&self) -> Arc<dyn LinkDatabase> {
        Arc::new(self.wide_links())
    }

    /// All of them, to be copied to another database or from one.
    #[must_use]
    pub fn link_transfer(&self) -> Arc<dyn LinkTransfer> {
        Arc::new(self.wide_links())
    }

    fn wide_links(&self) -> WideLinks {
        let (engine, namespace) = (Arc::clone(&self.engine), Arc::clone(&self.namespace));
        let rows = Arc::new(links::CassandraLinks::new(engine, namespace));
        WideLinks::new(
            Arc::clone(&rows) as _,
            rows,
            CassandraLists::rows(&self.engine, &self.namespace),
            self.engine.deadlines.clone(),
            self.engine.settings.totals_interval,
        )
    }

    /// Where a copy notes how far it has come.
    #[must_use]
    pub fn notes(&self) -> Arc<dyn MapNotes> {
        let (engine, namespace) = (Arc::clone(&self.engine), Arc::clone(&self.namespace));
        Arc::new(notes::CassandraNotes::new(engine, namespace))
    }

    #[must_use]
    pub fn accounts(&self) -> Arc<dyn Accounts> {
        Arc::new(self.wide_accounts())
    }

    /// All that is kept of them, to be copied to another database or from one.
    #[must_use]
    pub fn account_transfer(&self) -> Arc<dyn Transfer<AccountItem>> {
        let accounts = Arc::new(self.wide_accounts());
        Arc::new(AccountTransfer::new(failure::BACKEND, accounts))
    }

    fn wide_accounts(&self) -> WideAccounts {
        let (engine, namespace) = (Arc::clone(&self.engine), Arc::clone(&self.namespace));
        let rows = accounts::CassandraAccounts::new(engine, namespace);
        let lists = CassandraLists::rows(&self.engine, &self.namespace);
        let deadlines = self.engine.deadlines.clone();
        WideAccounts::new(Arc::new(rows), lists, deadlines)
    }

    #[must_use]
    pub fn clicks(&self) -> Arc<dyn ClickDatabase> {
        Arc::new(TableClicks::new(self.wide_clicks()))
    }

    /// All that is kept of them, to be copied to another database or from one; `copy` tells copies of different
    /// sources apart.
    #[must_use]
    pub fn click_transfer(&self, copy: StreamId) -> Arc<dyn Transfer<ClickItem>> {
        Arc::new(ClickTransfer::new(Arc::new(self.wide_clicks()), copy))
    }

    fn wide_clicks(&self) -> WideClicks {
        let (engine, namespace) = (Arc::clone(&self.engine), Arc::clone(&self.namespace));
        let rows = clicks::CassandraClicks::new(engine, namespace);
        let lists = CassandraLists::rows(&self.engine, &self.namespace);
        let deadlines = self.engine.deadlines.clone();
        WideClicks::new(Arc::new(rows), lists, deadlines)
    }

    #[must_use]
    pub fn cursor(&self) -> Arc<dyn Cursor> {
        let (engine, namespace) = (Arc::clone(&self.engine), Arc::clone(&self.namespace));
        Arc::new(cursor::CassandraCursor::new(engine, namespace))
    }
}

impl fmt::Debug for Cassandra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cassandra")
            .field("engine", &self.engine)
            .field("namespace", &self.namespace)
            .finish()
    }
}
