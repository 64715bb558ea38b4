//! One file per command.

mod accounts;
pub(crate) mod api_key;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod check;
mod client;
pub(crate) mod completions;
pub(crate) mod copy;
pub(crate) mod events;
pub(crate) mod keys;
pub(crate) mod link;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod plan;
pub(crate) mod serve;
pub(crate) mod shards;
pub(crate) mod spool;
pub(crate) mod stats;
mod terminal;
mod time;
pub(crate) mod user;

use std::future::Future;

use anyhow::Context as _;

/// Runs a command's asynchronous part on a runtime of its own.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the runtime")?
        .block_on(work)
}
