//! Which engine serves which port.

use std::sync::Arc;

use curt_core::ports::{Cursor, KeyFile, KeyLedger, KeyPool};
use curt_core::{PortError, PortResult};

use super::{Coordination, Engines, KeysForm, LinksDatabase, Opened, invalid};
use crate::bare::BareKeys;
use crate::engine_address::EngineAddress;
use crate::memory::{
    MemoryAccounts, MemoryClickStore, MemoryCursor, MemoryKeyFile, MemoryKeyLedger, MemoryKeyPool,
    MemoryLinkStore, MemoryLocks, MemoryRoster,
};

#[cfg(feature = "postgres")]
use crate::postgres;

impl Engines {
    pub fn links(&mut self, address: &EngineAddress) -> PortResult<LinksDatabase> {
        match self.engine(address)? {
            Opened::Memory => Ok(LinksDatabase {
                links: Arc::new(MemoryLinkStore::new()),
                accounts: Arc::new(MemoryAccounts::new()),
                clicks: Arc::new(MemoryClickStore::new()),
                cursor: Arc::new(MemoryCursor::new()),
            }),
            Opened::Sqlite(database) => Ok(LinksDatabase {
                links: database.links(),
                accounts: database.accounts(),
                clicks: database.clicks(),
                cursor: database.cursor(),
            }),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => {
                let (links, accounts) = (&postgres::LINKS, &postgres::ACCOUNTS);
                for set in [links, accounts, &postgres::CLICKS, &postgres::CURSORS] {
                    self.tables.push((address.clone(), set));
                }
                Ok(LinksDatabase {
                    links: database.links(),
                    accounts: database.accounts(),
                    clicks: database.clicks(),
                    cursor: database.cursor(),
                })
            }
            _ => Err(does_not_serve(address)),
        }
    }

    /// One shard of the keys database.
    pub fn ledger(
        &mut self,
        address: &EngineAddress,
        form: KeysForm,
    ) -> PortResult<Arc<dyn KeyLedger>> {
        match self.engine(address)? {
            Opened::Memory => Ok(Arc::new(MemoryKeyLedger::new())),
            Opened::Sqlite(database) => Ok(database.ledger(form.in_sqlite()?)),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => {
                self.tables.push((address.clone(), &postgres::KEYS));
                Ok(database.ledger(form.in_postgres()))
            }
            #[cfg(feature = "mysql")]
            Opened::Mysql(database) => Ok(database.ledger(form.in_mysql()?)),
            _ => Err(does_not_serve(address)),
        }
    }

    /// The pool shard with this number, which holds at most `cap` keys.
    #[cfg_attr(
        not(feature = "redis"),
        expect(unused_variables, reason = "memory has no numbers")
    )]
    pub fn pool(
        &mut self,
        address: &EngineAddress,
        shard: usize,
        cap: usize,
    ) -> PortResult<Arc<dyn KeyPool>> {
        match self.engine(address)? {
            Opened::Memory => Ok(Arc::new(MemoryKeyPool::new(cap))),
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(redis.pool(shard, cap)),
            _ => Err(does_not_serve(address)),
        }
    }

    /// The yardstick of the engine that a keys database is at; `None` where there is none.
    pub async fn bare_ledger(
        &mut self,
        address: &EngineAddress,
    ) -> PortResult<Option<Arc<dyn BareKeys>>> {
        match self.engine(address)? {
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => database.bare_keys().await.map(Some),
            #[cfg(feature = "mysql")]
            Opened::Mysql(database) => database.bare_keys().await.map(Some),
            _ => Ok(None),
        }
    }

    /// The yardstick of the pool shard with this number, which is removed with it; `None` where there is none.
    #[cfg_attr(
        not(feature = "redis"),
        expect(unused_variables, reason = "memory has no numbers")
    )]
    pub fn bare_pool(
        &mut self,
        address: &EngineAddress,
        shard: usize,
    ) -> PortResult<Option<Arc<dyn BareKeys>>> {
        match self.engine(address)? {
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(Some(redis.bare_keys(shard))),
            _ => Ok(None),
        }
    }

    pub fn coordination(&mut self, address: &EngineAddress) -> PortResult<Coordination> {
        let opened = self.engine(address)?;
        let holder = &self.settings.holder;
        match opened {
            Opened::Memory => {
                let clock = || Arc::clone(&self.settings.clock);
                Ok(Coordination {
                    locks: Arc::new(MemoryLocks::new(clock()).for_holder(holder)),
                    roster: Arc::new(MemoryRoster::new(clock())),
                })
            }
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(Coordination {
                locks: redis.locks(holder),
                roster: redis.roster(),
            }),
            #[cfg(feature = "zookeeper")]
            Opened::ZooKeeper(zookeeper) => Ok(Coordination {
                locks: zookeeper.locks(holder),
                roster: zookeeper.roster(),
            }),
            _ => Err(does_not_serve(address)),
        }
    }

    pub fn cursor(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn Cursor>> {
        match self.engine(address)? {
            Opened::Memory => Ok(Arc::new(MemoryCursor::new())),
            Opened::Sqlite(database) => Ok(database.cursor()),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => {
                self.tables.push((address.clone(), &postgres::CURSORS));
                Ok(database.cursor())
            }
            #[cfg(feature = "zookeeper")]
            Opened::ZooKeeper(zookeeper) => Ok(zookeeper.cursor()),
            _ => Err(does_not_serve(address)),
        }
    }

    pub fn files(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn KeyFile>> {
        match self.engine(address)? {
            Opened::Memory => Ok(Arc::new(MemoryKeyFile::new())),
            Opened::Files(files) => Ok(files),
            _ => Err(does_not_serve(address)),
        }
    }
}

fn does_not_serve(address: &EngineAddress) -> PortError {
    invalid(format!("{address} does not serve this"))
}
