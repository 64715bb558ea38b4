//! Every port in this process's memory: the reference that the other engines are compared with, and what tests run on.
//!
//! Nothing here survives a restart. Each adapter is one `std` mutex around ordered maps, held for the length of one
//! call and never over an `await`, so that every method is one atomic step.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod accounts;
mod click_counters;
mod click_store;
mod click_stream;
mod cursor;
mod heartbeats;
mod invalidations;
mod key_file;
mod key_ledger;
mod key_pool;
mod leases;
mod link_cache;
mod link_store;
mod quotas;
mod shard_maps;

pub use accounts::MemoryAccounts;
pub use click_counters::MemoryClickCounters;
pub use click_store::MemoryClickStore;
pub use click_stream::{MemoryClickStream, MemoryDeadLetters};
pub use cursor::MemoryCursor;
pub use heartbeats::MemoryHeartbeats;
pub use invalidations::MemoryInvalidations;
pub use key_file::MemoryKeyFile;
pub use key_ledger::MemoryKeyLedger;
pub use key_pool::MemoryKeyPool;
pub use leases::MemoryLeases;
pub use link_cache::MemoryLinkCache;
pub use link_store::MemoryLinkStore;
pub use quotas::MemoryQuotas;
pub use shard_maps::MemoryShardMaps;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The adapter's name in errors.
const BACKEND: &str = "memory";

/// A panic while the lock was held can only have come from a failed allocation; the maps are whole either way.
fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
