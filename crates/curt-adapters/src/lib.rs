//! One folder per engine, one file per port that it serves.
//!
//! Adapters are naive on purpose: they keep a port's promises and know no policy. Retries, deadlines and metrics are
//! wrappers of the same trait, and errors say what happened as a [`PortError`](curt_core::PortError).

#![forbid(unsafe_code)]

#[cfg(any(
    feature = "redis",
    feature = "zookeeper",
    feature = "hdfs",
    feature = "s3"
))]
mod address;
pub mod bare;
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    allow(dead_code, unused_imports)
)]
mod click_days;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod effect;
mod engine_address;
pub mod files;
#[cfg(feature = "hdfs")]
pub mod hdfs;
mod key_layout;
mod masking;
pub mod memory;
#[cfg(feature = "mysql")]
pub mod mysql;
mod off_runtime;
#[cfg(feature = "sqlite")]
pub mod open;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod page_cursor;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "redis"))]
mod plain_text;
#[cfg(feature = "postgres")]
pub mod postgres;
mod postgres_settings;
#[cfg(any(feature = "redis", feature = "zookeeper"))]
mod reconnect;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "s3")]
pub mod s3;
#[cfg(any(feature = "hdfs", feature = "s3"))]
mod sealed;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod wrap;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

pub use engine_address::{EngineAddress, EngineKind, Part};
pub use masking::masked;
pub use postgres_settings::PostgresSettings;
