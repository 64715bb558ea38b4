//! One folder per engine, one file per port that it serves.
//!
//! Adapters are naive on purpose: they keep a port's promises and know no policy. Retries, deadlines and metrics are
//! wrappers of the same trait, and errors say what happened as a [`PortError`](curt_core::PortError).

#![forbid(unsafe_code)]

#[cfg(any(feature = "redis", feature = "zookeeper"))]
mod address;
pub mod files;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "redis", feature = "zookeeper"))]
mod reconnect;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod wrap;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;
