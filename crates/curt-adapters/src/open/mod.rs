//! From an address to a port. Beside `lib.rs` the one place that knows which engines were compiled in; SQLite always is,
//! because it is what a process without any other engine runs on.
//!
//! An engine is opened once and shared by the ports that name it. Those that are reached over a network connect with
//! their first call: a process starts, and lives on what it holds, while they are away.

mod form;
mod ports;
mod upkeep;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{Accounts, Cursor, KeyFile, LinkStore, Locks, Roster};
use curt_core::{Clock, ErrorKind, PortError, PortResult};

use crate::engine_address::{EngineAddress, EngineKind};
use crate::files::DiskKeyFile;
use crate::postgres_settings::PostgresSettings;

#[cfg(feature = "hdfs")]
use crate::hdfs::{HdfsKeyFile, HdfsSettings};
#[cfg(feature = "mysql")]
use crate::mysql::{Mysql, MysqlSettings};
#[cfg(feature = "postgres")]
use crate::postgres::{self, Postgres};
#[cfg(feature = "redis")]
use crate::redis::{Redis, RedisSettings};
#[cfg(feature = "s3")]
use crate::s3::{S3KeyFile, S3Settings};
use crate::sqlite::{Sqlite, SqliteSettings};
#[cfg(feature = "zookeeper")]
use crate::zookeeper::{ZooKeeper, ZooKeeperSettings};

pub use form::KeysForm;
pub use upkeep::Migrated;

/// How engines are used.
#[derive(Clone)]
pub struct EngineSettings {
    pub sqlite: SqliteSettings,
    pub postgres: PostgresSettings,
    /// The links database and the clicks database, where both are files: clicks that an earlier version kept in the
    /// first are moved to the second.
    pub clicks_move: Option<(EngineAddress, PathBuf)>,
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
    pub cursor: Arc<dyn Cursor>,
}

/// Who works on what, and who is there.
#[derive(Clone)]
pub struct Coordination {
    pub locks: Arc<dyn Locks>,
    pub roster: Arc<dyn Roster>,
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
    Memory,
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
        // No engine to be shared: every port has its own.
        if address.kind() == EngineKind::Memory {
            return Ok(Opened::Memory);
        }
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
                let moves = self.settings.clicks_move.as_ref();
                let moves = moves.filter(|(links, _)| links == address);
                let settings = SqliteSettings {
                    clicks_file: moves.map(|(_, clicks)| clicks.clone()),
                    ..self.settings.sqlite.clone()
                };
                Opened::Sqlite(Sqlite::open(address.path(), settings)?)
            }
            #[cfg(feature = "postgres")]
            EngineKind::Postgres => Opened::Postgres(Postgres::open(
                address.secret_text(),
                &self.settings.postgres,
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
            not_here => return Err(not_built(not_here)),
        })
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
