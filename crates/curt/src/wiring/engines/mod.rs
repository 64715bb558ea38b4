//! From an address to a port. With [`table`](super::table) the one place that knows which engines were compiled in;
//! SQLite always is, because it is what a process without any other engine runs on.
//!
//! An engine is opened once and shared by the ports that name it. Those that are reached over a network connect with
//! their first call: a process starts, and lives on what it holds, while they are away.

mod host_reads;
mod ports;
mod streams;
mod transfers;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "objects")]
use curt_core::ports::KeyFile;
use curt_core::ports::{Cursor, Heartbeats, Leases, LinkPorts};
use curt_core::{Clock, ErrorKind, PortError, PortResult};

#[cfg(feature = "cassandra")]
use curt_cassandra::Cassandra;
#[cfg(feature = "dynamodb")]
use curt_dynamodb::DynamoDb;
#[cfg(feature = "kafka")]
use curt_kafka::Kafka;
#[cfg(feature = "memcached")]
use curt_memcached::Memcached;
#[cfg(feature = "mysql")]
use curt_mysql::Mysql;
#[cfg(feature = "objects")]
use curt_objects::{DiskKeyFile, HdfsKeyFile, S3KeyFile};
#[cfg(feature = "postgres")]
use curt_postgres::{MigrationSet, Postgres};
#[cfg(feature = "redis")]
use curt_redis::Redis;
use curt_shards::ShardRouter;
use curt_sqlite::{Access, Sqlite, SqliteSettings};
#[cfg(feature = "zookeeper")]
use curt_zookeeper::ZooKeeper;

use super::address::EngineAddress;
use super::table::{EngineKind, Part};
use super::tuning::EngineTuning;

pub(crate) use streams::{StreamEnd, StreamTail};

const OP: &str = "open a store";

/// How engines are used.
#[derive(Clone)]
pub(crate) struct EngineSettings {
    pub(crate) tuning: EngineTuning,
    pub(crate) access: Access,
    /// How this process describes itself as the holder of a lease.
    pub(crate) holder: Box<str>,
    /// How long a lease should outlive its holder at most.
    pub(crate) lease_ttl: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    /// Where this process is.
    pub(crate) region: Option<Box<str>>,
}

/// The ports of a links database.
#[derive(Clone)]
pub(crate) struct LinksDatabase {
    pub(crate) links: LinkPorts,
    pub(crate) cursor: Arc<dyn Cursor>,
    /// Where links are spread over several nodes.
    pub(crate) router: Option<Arc<ShardRouter>>,
}

/// Who works on what, and who is there.
#[derive(Clone)]
pub(crate) struct Coordination {
    pub(crate) leases: Arc<dyn Leases>,
    pub(crate) heartbeats: Arc<dyn Heartbeats>,
}

/// The engines of one process.
pub(crate) struct Engines {
    settings: EngineSettings,
    opened: Vec<(EngineAddress, Opened)>,
    #[cfg(feature = "postgres")]
    tables: Vec<(EngineAddress, &'static MigrationSet)>,
}

#[derive(Clone)]
enum Opened {
    Memory,
    Sqlite(Arc<Sqlite>),
    #[cfg(feature = "postgres")]
    Postgres(Postgres),
    #[cfg(feature = "mysql")]
    Mysql(Mysql),
    #[cfg(feature = "cassandra")]
    Cassandra(Cassandra),
    #[cfg(feature = "dynamodb")]
    DynamoDb(DynamoDb),
    #[cfg(feature = "redis")]
    Redis(Arc<Redis>),
    #[cfg(feature = "memcached")]
    Memcached(Arc<Memcached>),
    #[cfg(feature = "zookeeper")]
    ZooKeeper(Arc<ZooKeeper>),
    #[cfg(feature = "kafka")]
    Kafka(Arc<Kafka>),
    #[cfg(feature = "objects")]
    Files(Arc<dyn KeyFile>),
}

impl Opened {
    /// Asks the engine for a sign of life.
    async fn ping(&self) -> PortResult<()> {
        match self {
            Opened::Memory | Opened::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => database.pending(&curt_postgres::KEYS).await.map(drop),
            #[cfg(feature = "mysql")]
            Opened::Mysql(database) => database.pending().await.map(drop),
            #[cfg(feature = "cassandra")]
            Opened::Cassandra(cluster) => cluster.pending().await.map(drop),
            #[cfg(feature = "dynamodb")]
            Opened::DynamoDb(tables) => tables.pending().await.map(drop),
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => redis.ping().await,
            #[cfg(feature = "memcached")]
            Opened::Memcached(memcached) => memcached.ping().await,
            #[cfg(feature = "zookeeper")]
            Opened::ZooKeeper(zookeeper) => zookeeper.ping().await,
            #[cfg(feature = "kafka")]
            Opened::Kafka(kafka) => kafka.ping().await,
            #[cfg(feature = "objects")]
            Opened::Files(files) => files.names().await.map(drop),
        }
    }
}

impl Engines {
    #[must_use]
    pub(crate) fn new(settings: EngineSettings) -> Self {
        Self {
            settings,
            opened: Vec::new(),
            #[cfg(feature = "postgres")]
            tables: Vec::new(),
        }
    }

    /// Opens the engine, or finds it among the opened ones, for a part that the table says it serves.
    fn engine(&mut self, part: Part, address: &EngineAddress) -> PortResult<Opened> {
        require(part, address)?;
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
        #[cfg(any(
            feature = "cassandra",
            feature = "dynamodb",
            feature = "kafka",
            feature = "memcached",
            feature = "mysql",
            feature = "objects",
            feature = "postgres",
            feature = "redis",
            feature = "zookeeper"
        ))]
        let tuning = &self.settings.tuning;
        Ok(match address.kind() {
            EngineKind::Sqlite => {
                let settings = self.sqlite_settings();
                Opened::Sqlite(Sqlite::open(address.path(), settings)?)
            }
            #[cfg(feature = "postgres")]
            EngineKind::Postgres => {
                Opened::Postgres(Postgres::open(address.secret_text(), &tuning.postgres)?)
            }
            #[cfg(feature = "mysql")]
            EngineKind::Mysql => Opened::Mysql(Mysql::open(address.secret_text(), &tuning.mysql)?),
            #[cfg(feature = "cassandra")]
            EngineKind::Cassandra => {
                Opened::Cassandra(Cassandra::open(address.secret_text(), &tuning.cassandra)?)
            }
            #[cfg(feature = "dynamodb")]
            EngineKind::DynamoDb => {
                Opened::DynamoDb(DynamoDb::open(address.secret_text(), &tuning.dynamodb)?)
            }
            #[cfg(feature = "redis")]
            EngineKind::Redis => Opened::Redis(Redis::open(address.secret_text(), tuning.redis)?),
            #[cfg(feature = "memcached")]
            EngineKind::Memcached => {
                Opened::Memcached(Memcached::open(address.secret_text(), tuning.memcached)?)
            }
            #[cfg(feature = "zookeeper")]
            EngineKind::ZooKeeper => {
                let mut settings = tuning.zookeeper;
                settings.session_timeout = settings.session_timeout.min(self.settings.lease_ttl);
                Opened::ZooKeeper(ZooKeeper::open(address.secret_text(), settings)?)
            }
            #[cfg(feature = "kafka")]
            EngineKind::Kafka => Opened::Kafka(Kafka::open(address.secret_text(), tuning.kafka)?),
            #[cfg(feature = "objects")]
            EngineKind::Hdfs => {
                let files = HdfsKeyFile::open(address.secret_text(), tuning.hdfs)?;
                Opened::Files(Arc::new(files))
            }
            #[cfg(feature = "objects")]
            EngineKind::S3 => {
                let files = S3KeyFile::open(address.secret_text(), tuning.s3)?;
                Opened::Files(Arc::new(files))
            }
            #[cfg(feature = "objects")]
            EngineKind::Files => Opened::Files(Arc::new(DiskKeyFile::open(address.path())?)),
            _ => return Err(unserved(address)),
        })
    }

    fn sqlite_settings(&self) -> SqliteSettings {
        SqliteSettings {
            access: self.settings.access,
            ..self.settings.tuning.sqlite.clone()
        }
    }
}

/// Refuses an engine that cannot serve the part or is not in this build.
fn require(part: Part, address: &EngineAddress) -> PortResult<()> {
    let kind = address.kind();
    let fits = kind
        .require_serves(part)
        .and_then(|()| kind.require_built());
    let fits = fits.and_then(|()| match part {
        Part::Links | Part::Cursor => Ok(()),
        _ if address.spreads_by_itself() => Err(format!(
            "{address}: an address with sharding=engine serves links and cursors alone; name another database"
        )),
        _ => Ok(()),
    });
    fits.map_err(|detail| PortError::new(ErrorKind::Invalid, "curt", OP, detail))
}

/// What [`require`] lets through has an arm wherever it is opened; a test opens all of the table.
fn unserved(address: &EngineAddress) -> PortError {
    let detail = format!("the table of engines promises more of {address} than there is");
    PortError::new(ErrorKind::Bug, "curt", OP, detail)
}

#[cfg(test)]
mod tests;
