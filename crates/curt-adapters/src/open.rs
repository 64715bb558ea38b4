//! From an address to a port. Beside `lib.rs` the one place that knows which engines were compiled in; SQLite always is,
//! because it is what a process without any other engine runs on.
//!
//! An engine is opened once and shared by the ports that name it. Those that are reached over a network connect with
//! their first call: a process starts, and lives on what it holds, while they are away.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{
    Accounts, ClickStore, Cursor, KeyFile, KeyLedger, KeyPool, LinkStore, Locks, Roster,
};
use curt_core::{Clock, ErrorKind, PortError, PortResult};

use crate::bare::BareKeys;
use crate::engine_address::{EngineAddress, EngineKind};
use crate::files::DiskKeyFile;
use crate::memory::{
    MemoryAccounts, MemoryClickStore, MemoryCursor, MemoryKeyFile, MemoryKeyLedger, MemoryKeyPool,
    MemoryLinkStore, MemoryLocks, MemoryRoster,
};

#[cfg(feature = "hdfs")]
use crate::hdfs::{HdfsKeyFile, HdfsSettings};
#[cfg(feature = "mysql")]
use crate::mysql::{self, Mysql, MysqlSettings};
#[cfg(feature = "postgres")]
use crate::postgres::{self, Postgres, PostgresSettings};
#[cfg(feature = "redis")]
use crate::redis::{Redis, RedisSettings};
#[cfg(feature = "s3")]
use crate::s3::{S3KeyFile, S3Settings};
use crate::sqlite::{self, Sqlite, SqliteSettings};
#[cfg(feature = "zookeeper")]
use crate::zookeeper::{ZooKeeper, ZooKeeperSettings};

/// What becomes of a key that was taken from a ledger. Not every engine has every form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeysForm {
    #[default]
    Delete,
    Status,
    UsedTable,
    /// Stays, and a cursor moves past it.
    Cursor,
}

/// How engines are used.
#[derive(Clone)]
pub struct EngineSettings {
    pub sqlite: SqliteSettings,
    /// How this process describes itself as the holder of a lock.
    pub holder: Box<str>,
    /// How long a lock should outlive its holder at most.
    pub lock_ttl: Duration,
    pub clock: Arc<dyn Clock>,
}

/// The ports of a links database.
#[derive(Clone)]
pub struct LinksDatabase {
    pub links: Arc<dyn LinkStore>,
    pub accounts: Arc<dyn Accounts>,
    pub clicks: Arc<dyn ClickStore>,
    pub cursor: Arc<dyn Cursor>,
}

/// Who works on what, and who is there.
#[derive(Clone)]
pub struct Coordination {
    pub locks: Arc<dyn Locks>,
    pub roster: Arc<dyn Roster>,
}

/// A database and what of its tables was, or would be, brought up to date.
#[derive(Clone, Debug)]
pub struct Migrated {
    pub address: EngineAddress,
    /// Number and name of each step.
    pub steps: Vec<(u32, &'static str)>,
}

/// The engines of one process.
pub struct Engines {
    settings: EngineSettings,
    opened: Vec<(EngineAddress, Opened)>,
    #[cfg(feature = "postgres")]
    tables: Vec<(EngineAddress, &'static postgres::MigrationSet)>,
}

#[derive(Clone)]
enum Opened {
    Sqlite(Arc<Sqlite>),
    #[cfg(feature = "postgres")]
    Postgres(Postgres),
    #[cfg(feature = "mysql")]
    Mysql(Mysql),
    #[cfg(feature = "redis")]
    Redis(Arc<Redis>),
    #[cfg(feature = "zookeeper")]
    ZooKeeper(Arc<ZooKeeper>),
    Files(Arc<dyn KeyFile>),
}

impl Engines {
    #[must_use]
    pub fn new(settings: EngineSettings) -> Self {
        Self {
            settings,
            opened: Vec::new(),
            #[cfg(feature = "postgres")]
            tables: Vec::new(),
        }
    }

    fn engine(&mut self, address: &EngineAddress) -> PortResult<Opened> {
        let known = self.opened.iter().find(|(known, _)| known == address);
        if let Some((_, opened)) = known {
            return Ok(opened.clone());
        }
        let opened = self.open(address)?;
        self.opened.push((address.clone(), opened.clone()));
        Ok(opened)
    }

    fn open(&self, address: &EngineAddress) -> PortResult<Opened> {
        Ok(match address.kind() {
            EngineKind::Sqlite => {
                let settings = self.settings.sqlite.clone();
                Opened::Sqlite(Sqlite::open(address.path(), settings)?)
            }
            #[cfg(feature = "postgres")]
            EngineKind::Postgres => Opened::Postgres(Postgres::open(
                address.secret_text(),
                &PostgresSettings::default(),
            )?),
            #[cfg(feature = "mysql")]
            EngineKind::Mysql => Opened::Mysql(Mysql::open(
                address.secret_text(),
                &MysqlSettings::default(),
            )?),
            #[cfg(feature = "redis")]
            EngineKind::Redis => Opened::Redis(Redis::open(
                address.secret_text(),
                RedisSettings::default(),
            )?),
            #[cfg(feature = "zookeeper")]
            EngineKind::ZooKeeper => {
                let mut settings = ZooKeeperSettings::default();
                settings.session_timeout = settings.session_timeout.min(self.settings.lock_ttl);
                Opened::ZooKeeper(ZooKeeper::open(address.secret_text(), settings)?)
            }
            #[cfg(feature = "hdfs")]
            EngineKind::Hdfs => {
                let files = HdfsKeyFile::open(address.secret_text(), HdfsSettings::default())?;
                Opened::Files(Arc::new(files))
            }
            #[cfg(feature = "s3")]
            EngineKind::S3 => Opened::Files(Arc::new(S3KeyFile::open(
                address.secret_text(),
                S3Settings::default(),
            )?)),
            EngineKind::Files => Opened::Files(Arc::new(DiskKeyFile::open(address.path())?)),
            // Memory is no engine to be shared, and is never asked for here.
            not_here => return Err(not_built(not_here)),
        })
    }

    pub fn links(&mut self, address: &EngineAddress) -> PortResult<LinksDatabase> {
        if address.kind() == EngineKind::Memory {
            return Ok(LinksDatabase {
                links: Arc::new(MemoryLinkStore::new()),
                accounts: Arc::new(MemoryAccounts::new()),
                clicks: Arc::new(MemoryClickStore::new()),
                cursor: Arc::new(MemoryCursor::new()),
            });
        }
        match self.engine(address)? {
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
        if address.kind() == EngineKind::Memory {
            return Ok(Arc::new(MemoryKeyLedger::new()));
        }
        match self.engine(address)? {
            Opened::Sqlite(database) => Ok(database.ledger(match form {
                KeysForm::Delete => sqlite::LedgerForm::Delete,
                KeysForm::Status => sqlite::LedgerForm::Status,
                KeysForm::UsedTable => sqlite::LedgerForm::UsedTable,
                KeysForm::Cursor => return Err(no_cursor_form("SQLite")),
            })),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => {
                self.tables.push((address.clone(), &postgres::KEYS));
                Ok(database.ledger(match form {
                    KeysForm::Delete => postgres::LedgerForm::Delete,
                    KeysForm::Status => postgres::LedgerForm::Status,
                    KeysForm::UsedTable => postgres::LedgerForm::UsedTable,
                    KeysForm::Cursor => postgres::LedgerForm::Ranges,
                }))
            }
            #[cfg(feature = "mysql")]
            Opened::Mysql(database) => Ok(database.ledger(match form {
                KeysForm::Delete => mysql::LedgerForm::Delete,
                KeysForm::Status => mysql::LedgerForm::Status,
                KeysForm::UsedTable => mysql::LedgerForm::UsedTable,
                KeysForm::Cursor => return Err(no_cursor_form("MySQL")),
            })),
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
        if address.kind() == EngineKind::Memory {
            return Ok(Arc::new(MemoryKeyPool::new(cap)));
        }
        match self.engine(address)? {
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
        if address.kind() == EngineKind::Memory {
            return Ok(None);
        }
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
        if address.kind() == EngineKind::Memory {
            return Ok(None);
        }
        match self.engine(address)? {
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(Some(redis.bare_keys(shard))),
            _ => Ok(None),
        }
    }

    pub fn coordination(&mut self, address: &EngineAddress) -> PortResult<Coordination> {
        let holder = self.settings.holder.clone();
        if address.kind() == EngineKind::Memory {
            let clock = || Arc::clone(&self.settings.clock);
            return Ok(Coordination {
                locks: Arc::new(MemoryLocks::new(clock()).for_holder(&holder)),
                roster: Arc::new(MemoryRoster::new(clock())),
            });
        }
        match self.engine(address)? {
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(Coordination {
                locks: redis.locks(&holder),
                roster: redis.roster(),
            }),
            #[cfg(feature = "zookeeper")]
            Opened::ZooKeeper(zookeeper) => Ok(Coordination {
                locks: zookeeper.locks(&holder),
                roster: zookeeper.roster(),
            }),
            _ => Err(does_not_serve(address)),
        }
    }

    pub fn cursor(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn Cursor>> {
        if address.kind() == EngineKind::Memory {
            return Ok(Arc::new(MemoryCursor::new()));
        }
        match self.engine(address)? {
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
        if address.kind() == EngineKind::Memory {
            return Ok(Arc::new(MemoryKeyFile::new()));
        }
        match self.engine(address)? {
            Opened::Files(files) => Ok(files),
            _ => Err(does_not_serve(address)),
        }
    }

    /// Asks every engine that was opened for a sign of life.
    pub async fn reach(&self) -> Vec<(EngineAddress, PortResult<()>)> {
        let mut reached = Vec::with_capacity(self.opened.len());
        for (address, opened) in &self.opened {
            let answer = match opened {
                Opened::Sqlite(_) => Ok(()),
                #[cfg(feature = "postgres")]
                Opened::Postgres(database) => database.pending(&postgres::KEYS).await.map(drop),
                #[cfg(feature = "mysql")]
                Opened::Mysql(database) => database.pending().await.map(drop),
                #[cfg(feature = "redis")]
                Opened::Redis(redis) => redis.ping().await,
                #[cfg(feature = "zookeeper")]
                Opened::ZooKeeper(zookeeper) => zookeeper.ping().await,
                Opened::Files(files) => files.names().await.map(drop),
            };
            reached.push((address.clone(), answer));
        }
        reached
    }

    /// Brings the tables of the opened databases up to date, or only says what that would take. SQLite has done so
    /// when it was opened.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "mysql")),
        expect(unused, reason = "there is nothing to migrate")
    )]
    pub async fn migrate(&self, dry_run: bool) -> PortResult<Vec<Migrated>> {
        let mut migrated = Vec::new();
        #[cfg(feature = "postgres")]
        for (address, set) in &self.tables {
            let Some((_, Opened::Postgres(database))) =
                self.opened.iter().find(|(opened, _)| opened == address)
            else {
                continue;
            };
            let steps = match dry_run {
                true => database.pending(set).await?,
                false => database.migrate(set).await?,
            };
            let steps = steps.iter().map(|step| (step.number, step.name)).collect();
            migrated.push(Migrated {
                address: address.clone(),
                steps,
            });
        }
        #[cfg(feature = "mysql")]
        for (address, opened) in &self.opened {
            let Opened::Mysql(database) = opened else {
                continue;
            };
            let steps = match dry_run {
                true => database.pending().await?,
                false => database.migrate().await?,
            };
            let steps = steps.iter().map(|step| (step.number, step.name)).collect();
            migrated.push(Migrated {
                address: address.clone(),
                steps,
            });
        }
        Ok(migrated)
    }

    /// Waits for what is being written and closes the files.
    pub async fn close(&self) {
        for (_, opened) in &self.opened {
            if let Opened::Sqlite(database) = opened {
                database.close().await;
            }
        }
    }
}

fn invalid(detail: String) -> PortError {
    PortError::new(ErrorKind::Invalid, "curt", "open a store", detail)
}

fn not_built(kind: EngineKind) -> PortError {
    let feature = kind.feature().unwrap_or_default();
    invalid(format!(
        "this build has no {kind:?}: build it with the cargo feature {feature:?}"
    ))
}

fn does_not_serve(address: &EngineAddress) -> PortError {
    invalid(format!("{address} does not serve this"))
}

fn no_cursor_form(engine: &str) -> PortError {
    invalid(format!(
        "{engine} has no form \"cursor\": use delete, status or used-table"
    ))
}
