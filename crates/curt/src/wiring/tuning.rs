//! How engines are used: their own sections of the configuration. Sections of engines that are not in this build are read,
//! so that one file suits every build, and not looked at, but for the one that the default build is without.

use std::num::NonZeroUsize;
use std::time::Duration;

#[cfg(feature = "cassandra")]
use curt_cassandra::{CassandraSettings, ReplicaConsistency, Replication, SerialScope};
#[cfg(feature = "dynamodb")]
use curt_dynamodb::DynamoDbSettings;
#[cfg(feature = "kafka")]
use curt_kafka::KafkaSettings;
#[cfg(feature = "memcached")]
use curt_memcached::MemcachedSettings;
#[cfg(feature = "mysql")]
use curt_mysql::MysqlSettings;
#[cfg(feature = "objects")]
use curt_objects::{HdfsSettings, S3Settings};
#[cfg(feature = "postgres")]
use curt_postgres::{PostgresSettings, ReadFrom, ReplicaChoice};
#[cfg(feature = "redis")]
use curt_redis::RedisSettings;
use curt_sqlite::{SqliteSettings, Synchronous};
#[cfg(feature = "zookeeper")]
use curt_zookeeper::ZooKeeperSettings;

use crate::config::ConfigError;
use crate::config::check::{at, fits, positive, within};
use crate::config::raw::{self, Raw};
use crate::config::units;

/// The settings of every engine in this build.
#[derive(Clone, Debug)]
pub(crate) struct EngineTuning {
    pub(crate) sqlite: SqliteSettings,
    #[cfg(feature = "postgres")]
    pub(crate) postgres: PostgresSettings,
    /// Connections of each kind for the clicks database.
    #[cfg(feature = "postgres")]
    pub(crate) click_connections: NonZeroUsize,
    #[cfg(feature = "mysql")]
    pub(crate) mysql: MysqlSettings,
    #[cfg(feature = "cassandra")]
    pub(crate) cassandra: CassandraSettings,
    #[cfg(feature = "dynamodb")]
    pub(crate) dynamodb: DynamoDbSettings,
    #[cfg(feature = "redis")]
    pub(crate) redis: RedisSettings,
    #[cfg(feature = "memcached")]
    pub(crate) memcached: MemcachedSettings,
    #[cfg(feature = "zookeeper")]
    pub(crate) zookeeper: ZooKeeperSettings,
    #[cfg(feature = "kafka")]
    pub(crate) kafka: KafkaSettings,
    #[cfg(feature = "objects")]
    pub(crate) hdfs: HdfsSettings,
    #[cfg(feature = "objects")]
    pub(crate) s3: S3Settings,
}

impl EngineTuning {
    pub(crate) fn resolve(raw: &Raw) -> Result<Self, ConfigError> {
        dynamodb_numbers(&raw.dynamodb)?;
        Ok(Self {
            sqlite: sqlite(&raw.sqlite)?,
            #[cfg(feature = "postgres")]
            postgres: postgres(&raw.postgres, &raw.region)?,
            #[cfg(feature = "postgres")]
            click_connections: connections(
                "postgres.click_connections",
                raw.postgres.click_connections,
            )?,
            #[cfg(feature = "mysql")]
            mysql: MysqlSettings {
                connections: connections("mysql.connections", raw.mysql.connections)?,
                connect_timeout: positive("mysql.connect_timeout", &raw.mysql.connect_timeout)?,
                call_timeout: positive("mysql.call_timeout", &raw.mysql.call_timeout)?,
            },
            #[cfg(feature = "cassandra")]
            cassandra: cassandra(&raw.cassandra)?,
            #[cfg(feature = "dynamodb")]
            dynamodb: dynamodb(&raw.dynamodb)?,
            #[cfg(feature = "redis")]
            redis: RedisSettings {
                connect_timeout: positive("redis.connect_timeout", &raw.redis.connect_timeout)?,
                command_timeout: positive("redis.command_timeout", &raw.redis.command_timeout)?,
            },
            #[cfg(feature = "memcached")]
            memcached: MemcachedSettings {
                connect_timeout: positive(
                    "memcached.connect_timeout",
                    &raw.memcached.connect_timeout,
                )?,
                answer_timeout: positive(
                    "memcached.answer_timeout",
                    &raw.memcached.answer_timeout,
                )?,
            },
            #[cfg(feature = "zookeeper")]
            zookeeper: ZooKeeperSettings {
                session_timeout: positive(
                    "zookeeper.session_timeout",
                    &raw.zookeeper.session_timeout,
                )?,
                operation_timeout: positive(
                    "zookeeper.operation_timeout",
                    &raw.zookeeper.operation_timeout,
                )?,
            },
            #[cfg(feature = "kafka")]
            kafka: kafka(&raw.kafka)?,
            #[cfg(feature = "objects")]
            hdfs: HdfsSettings {
                answer_timeout: positive("hdfs.answer_timeout", &raw.hdfs.answer_timeout)?,
                transfer_timeout: positive("hdfs.transfer_timeout", &raw.hdfs.transfer_timeout)?,
            },
            #[cfg(feature = "objects")]
            s3: S3Settings {
                connect_timeout: positive("s3.connect_timeout", &raw.s3.connect_timeout)?,
                request_timeout: positive("s3.request_timeout", &raw.s3.request_timeout)?,
            },
        })
    }
}

fn connections(key: &str, count: u64) -> Result<NonZeroUsize, ConfigError> {
    let count = within(key, count, 1, 1_000)?;
    Ok(NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN))
}

#[cfg(feature = "dynamodb")]
fn dynamodb(raw: &raw::DynamoDb) -> Result<DynamoDbSettings, ConfigError> {
    let numbers = dynamodb_numbers(raw)?;
    Ok(DynamoDbSettings {
        connections: numbers.connections,
        connect_timeout: numbers.connect_timeout,
        call_timeout: numbers.call_timeout,
        background_timeout: numbers.background_timeout,
        totals_interval: numbers.totals_interval,
    })
}

/// The section `[dynamodb]`, which every build looks at, because the default one is without that engine.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "dynamodb"),
    expect(dead_code, reason = "for an engine that is not in this build")
)]
struct DynamoDbNumbers {
    connections: NonZeroUsize,
    connect_timeout: Duration,
    call_timeout: Duration,
    background_timeout: Duration,
    totals_interval: Duration,
}

fn dynamodb_numbers(raw: &raw::DynamoDb) -> Result<DynamoDbNumbers, ConfigError> {
    let interval = units::duration(&raw.totals_interval);
    Ok(DynamoDbNumbers {
        connections: connections("dynamodb.connections", raw.connections)?,
        connect_timeout: positive("dynamodb.connect_timeout", &raw.connect_timeout)?,
        call_timeout: positive("dynamodb.call_timeout", &raw.call_timeout)?,
        background_timeout: positive("dynamodb.background_timeout", &raw.background_timeout)?,
        totals_interval: at("dynamodb.totals_interval", interval)?,
    })
}

#[cfg(feature = "cassandra")]
fn cassandra(raw: &raw::Cassandra) -> Result<CassandraSettings, ConfigError> {
    let consistency = match raw.consistency.as_str() {
        "local_quorum" => Ok(ReplicaConsistency::LocalQuorum),
        "quorum" => Ok(ReplicaConsistency::Quorum),
        "all" => Ok(ReplicaConsistency::All),
        other => Err(format!("{other:?}: use local_quorum, quorum or all")),
    };
    let serial = match raw.serial_consistency.as_str() {
        "serial" => Ok(SerialScope::All),
        "local_serial" => Ok(SerialScope::Local),
        other => Err(format!("{other:?}: use serial or local_serial")),
    };
    let interval = units::duration(&raw.totals_interval);
    Ok(CassandraSettings {
        consistency: at("cassandra.consistency", consistency)?,
        serial: at("cassandra.serial_consistency", serial)?,
        connections: connections("cassandra.connections", raw.connections)?,
        connect_timeout: positive("cassandra.connect_timeout", &raw.connect_timeout)?,
        call_timeout: positive("cassandra.call_timeout", &raw.call_timeout)?,
        background_timeout: positive("cassandra.background_timeout", &raw.background_timeout)?,
        totals_interval: at("cassandra.totals_interval", interval)?,
        replication: at(
            "cassandra.replication",
            Replication::parse(&raw.replication),
        )?,
    })
}

#[cfg(feature = "kafka")]
fn kafka(raw: &raw::Kafka) -> Result<KafkaSettings, ConfigError> {
    let partitions = within("kafka.partitions", raw.partitions, 1, 10_000)?;
    let replicas = within("kafka.replicas", raw.replicas, 0, 100)?;
    Ok(KafkaSettings {
        delivery_timeout: positive("kafka.delivery_timeout", &raw.delivery_timeout)?,
        session_timeout: positive("kafka.session_timeout", &raw.session_timeout)?,
        partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
        replicas: u32::try_from(replicas)
            .ok()
            .filter(|replicas| *replicas > 0),
        ..KafkaSettings::default()
    })
}

#[cfg(feature = "postgres")]
fn postgres(raw: &raw::Postgres, region: &str) -> Result<PostgresSettings, ConfigError> {
    let read_from = match raw.read_from.as_str() {
        "auto" => Ok(ReadFrom::Auto),
        "leader" => Ok(ReadFrom::Leader),
        "replica" => Ok(ReadFrom::Replica),
        other => Err(format!("{other:?}: use auto, leader or replica")),
    };
    let replica_choice = match raw.replica_choice.as_str() {
        "latency" => Ok(ReplicaChoice::Latency),
        "round_robin" => Ok(ReplicaChoice::RoundRobin),
        other => Err(format!("{other:?}: use latency or round_robin")),
    };
    let standby_after = units::duration_or_never(&raw.standby_after);
    Ok(PostgresSettings {
        lookup_connections: connections("postgres.lookup_connections", raw.lookup_connections)?,
        write_connections: connections("postgres.write_connections", raw.write_connections)?,
        background_connections: connections(
            "postgres.background_connections",
            raw.background_connections,
        )?,
        lookup_timeout: positive("postgres.lookup_timeout", &raw.lookup_timeout)?,
        write_timeout: positive("postgres.write_timeout", &raw.write_timeout)?,
        background_timeout: positive("postgres.background_timeout", &raw.background_timeout)?,
        flush_timeout: positive("postgres.flush_timeout", &raw.flush_timeout)?,
        connect_timeout: positive("postgres.connect_timeout", &raw.connect_timeout)?,
        standby_after: at("postgres.standby_after", standby_after)?,
        read_from: at("postgres.read_from", read_from)?,
        replica_choice: at("postgres.replica_choice", replica_choice)?,
        replica_lag_max: positive("postgres.replica_lag_max", &raw.replica_lag_max)?,
        totals_interval: at(
            "postgres.totals_interval",
            units::duration(&raw.totals_interval),
        )?,
        region: (!region.is_empty()).then(|| region.into()),
    })
}

fn sqlite(raw: &raw::Sqlite) -> Result<SqliteSettings, ConfigError> {
    let bytes = |key, text: &str| at(key, units::size(text).and_then(fits));
    let readers = within("sqlite.readers", raw.readers, 1, 64)?;
    Ok(SqliteSettings {
        synchronous: match raw.synchronous.as_str() {
            "full" => Synchronous::Full,
            "normal" => Synchronous::Normal,
            other => {
                return at(
                    "sqlite.synchronous",
                    Err(format!("{other:?}: use full or normal")),
                );
            }
        },
        readers: NonZeroUsize::new(readers).unwrap_or(NonZeroUsize::MIN),
        writer_cache_bytes: bytes("sqlite.writer_cache", &raw.writer_cache)?,
        reader_cache_bytes: bytes("sqlite.reader_cache", &raw.reader_cache)?,
        mmap_bytes: bytes("sqlite.mmap", &raw.mmap)?,
        checkpoint_bytes: at("sqlite.checkpoint", units::size(&raw.checkpoint))?,
        wal_bytes_max: at("sqlite.wal_max", units::size(&raw.wal_max))?,
        checkpoint_idle: positive("sqlite.checkpoint_idle", &raw.checkpoint_idle)?,
        busy_timeout: at("sqlite.busy_timeout", units::duration(&raw.busy_timeout))?,
        ..SqliteSettings::default()
    })
}
