//! PostgreSQL behind seven ports: links, invalidations of cached links, the shard map, accounts, clicks, minted keys and
//! cursors.
//!
//! # Connections
//! Several hosts may be named; the one that takes writes is used, and looked for again after a failure, so that a
//! promoted standby is found. While there is none, or it does not answer, look-ups go on at a standby. Nothing is
//! connected at start. Tables are brought up to date before their first use.
//!
//! Look-ups, writes that requests wait for, and everything else have pools of their own, each with a deadline over whole
//! calls (`engine/`): a commit that waits for a standby keeps other commits waiting, and no look-up.
//!
//! # Transactions
//! A call is one statement, or several that are sent together with their BEGIN and COMMIT: one round trip, and no lock
//! is held while the network carries an answer. If the connection breaks in between, nobody knows whether it committed:
//! such a failure has the kind `Timeout`, and callers repeat the call under the same name.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod accounts;
mod address;
mod array_text;
mod by_index;
mod clicks;
mod cursor;
mod decode;
mod engine;
mod failure;
mod invalidations;
mod ledger;
mod links;
mod schema;
mod settings;
mod shard_maps;
mod tls;

use std::sync::Arc;

use curt_adapter_kit::{AccountTransfer, ClickTransfer, TableClicks};
use curt_core::ports::{
    AccountItem, Accounts, ClickDatabase, ClickItem, Cursor, Invalidations, KeyLedger, LedgerForm,
    LinkDatabase, LinkShards, LinkTransfer, SeededDatabase, ShardMaps, StreamId, Transfer,
};
use curt_core::{PortResult, ShardMap};

use address::Address;
use engine::Engine;

pub use curt_adapter_kit::Migration;
pub use engine::HostReads;
pub use schema::{
    ACCOUNTS, CLICKS, CURSORS, DISTRIBUTED_LINKS, KEYS, LINKS, MigrationSet, SHARD_MAP,
};
pub use settings::{PostgresSettings, ReadFrom, ReplicaChoice};

/// A PostgreSQL at an address.
#[derive(Clone, Debug)]
pub struct Postgres {
    engine: Arc<Engine>,
}

impl Postgres {
    /// Reads the address and connects to nothing yet.
    pub fn open(address: &str, settings: &PostgresSettings) -> PortResult<Self> {
        let engine = Engine::new(Address::parse(address)?, settings)?;
        Ok(Self { engine })
    }

    /// Brings the tables of a set up to date and says what that took. Many processes may do so at once.
    pub async fn migrate(&self, set: &'static MigrationSet) -> PortResult<&'static [Migration]> {
        schema::migrate(&self.engine, set).await
    }

    /// What [`migrate`](Self::migrate) would do.
    pub async fn pending(&self, set: &'static MigrationSet) -> PortResult<&'static [Migration]> {
        schema::pending(&self.engine, set).await
    }

    /// How often which host was read from for links, where replicas are read.
    #[must_use]
    pub fn host_reads(&self) -> Vec<HostReads> {
        self.engine.reads()
    }

    #[must_use]
    pub fn ledger(&self, form: LedgerForm) -> Arc<dyn KeyLedger> {
        Arc::new(ledger::PostgresLedger::new(
            self.engine.in_background(),
            form,
        ))
    }

    #[must_use]
    pub fn links(&self) -> Arc<dyn SeededDatabase> {
        Arc::new(links::PostgresLinks::new(Arc::clone(&self.engine)))
    }

    /// Whether the engine spreads tables over its own servers, as the address says. It serves
    /// [`distributed_links`](Self::distributed_links) and [`cursor`](Self::cursor) then, and nothing else.
    #[must_use]
    pub fn is_distributed(&self) -> bool {
        self.engine.address().is_distributed
    }

    /// Links in tables that the engine spreads over its own servers.
    #[must_use]
    pub fn distributed_links(&self) -> Arc<dyn LinkDatabase> {
        Arc::new(links::DistributedLinks::new(Arc::clone(&self.engine)))
    }

    /// The same links as one node of many.
    #[must_use]
    pub fn shards(&self) -> Arc<dyn LinkShards> {
        Arc::new(links::PostgresLinks::new(Arc::clone(&self.engine)))
    }

    /// All of them, to be copied to another database or from one; as one node of many, by its map.
    #[must_use]
    pub fn link_transfer(&self, map: Arc<ShardMap>) -> Arc<dyn LinkTransfer> {
        let links = links::PostgresLinks::new(Arc::clone(&self.engine));
        Arc::new(links.with_map(map))
    }

    /// The map that says which node has which of them.
    #[must_use]
    pub fn shard_maps(&self) -> Arc<dyn ShardMaps> {
        Arc::new(shard_maps::PostgresShardMaps::new(Arc::clone(&self.engine)))
    }

    /// The channel that tells which links have changed. Each subscriber has a connection of its own.
    #[must_use]
    pub fn invalidations(&self) -> Arc<dyn Invalidations> {
        let engine = Arc::clone(&self.engine);
        Arc::new(invalidations::PostgresInvalidations::new(engine))
    }

    #[must_use]
    pub fn accounts(&self) -> Arc<dyn Accounts> {
        Arc::new(accounts::PostgresAccounts::new(Arc::clone(&self.engine)))
    }

    /// All that is kept of them, to be copied to another database or from one.
    #[must_use]
    pub fn account_transfer(&self) -> Arc<dyn Transfer<AccountItem>> {
        let accounts = accounts::PostgresAccounts::new(Arc::clone(&self.engine));
        Arc::new(AccountTransfer::new(failure::BACKEND, Arc::new(accounts)))
    }

    #[must_use]
    pub fn clicks(&self) -> Arc<dyn ClickDatabase> {
        let tables = clicks::PostgresClicks::new(self.engine.in_background());
        Arc::new(TableClicks::new(tables))
    }

    /// All that is kept of them, to be copied to another database or from one; `copy` tells copies of different
    /// sources apart.
    #[must_use]
    pub fn click_transfer(&self, copy: StreamId) -> Arc<dyn Transfer<ClickItem>> {
        let clicks = clicks::PostgresClicks::new(self.engine.in_background());
        Arc::new(ClickTransfer::new(Arc::new(clicks), copy))
    }

    #[must_use]
    pub fn cursor(&self) -> Arc<dyn Cursor> {
        Arc::new(cursor::PostgresCursor::new(self.engine.in_background()))
    }
}
