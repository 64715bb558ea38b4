//! One folder per engine, one file per port that it serves.
//!
//! Adapters are naive on purpose: they keep a port's promises and know no policy. Retries, deadlines and metrics are
//! wrappers of the same trait, and errors say what happened as a [`PortError`](curt_core::PortError).

#![forbid(unsafe_code)]

mod engine_address;
pub mod files;
#[cfg(feature = "hdfs")]
pub mod hdfs;
mod key_layout;
mod masking;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "sqlite")]
pub mod open;
#[cfg(feature = "postgres")]
pub mod postgres;
mod postgres_settings;
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
