//! The seven ways to come by a key, each assembled from the stages of the line.
//!
//! | strategy | ring filled from | made ahead by keygen | moved by keysync |
//! |---|---|---|---|
//! | `pool`, `status` | the fullest pool shard | random keys into the ledgers | ledgers to pools |
//! | `file` | claimed blocks of key files | key files | – |
//! | `snowflake`, `sequence` | ids under a durable reservation | – | – |
//! | `claim` | no ring: the link store claims a row | free rows | – |
//! | `hash` | no ring: computed from the request | – | – |

mod claim;
mod file;
mod hash;
mod ids;
mod ledger;

pub(crate) use hash::HashKeys;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::{LinkId, PortResult};
use tokio_util::sync::CancellationToken;

use crate::account::KeyAccounts;
use crate::buffer::Buffer;
use crate::error::KeyError;
use crate::metrics::KeyMetrics;
use crate::mint::Progress;
use crate::pace::{NextPass, Nudges};
use crate::presence::Presence;
use crate::settings::{KeySettings, Strategy};
use crate::status::KeyStatus;
use crate::supply::{KeyPorts, SuppliedKey};

/// Where a create finds its key.
pub(crate) enum Taking {
    Ring {
        buffer: Arc<Buffer>,
        origin: KeyOrigin,
    },
    /// The link store has it; a key is asked for only when its rows have run out.
    Rows,
    Hash(HashKeys),
    Random,
    Scripted(Mutex<VecDeque<SuppliedKey>>),
}

/// What happens behind the ring.
#[async_trait]
pub(crate) trait Line: Send + Sync {
    /// One pass of keygen.
    async fn generate(&self, _stop: &CancellationToken) -> NextPass {
        NextPass::AtTick
    }

    /// Writes key files until `wanted` keys wait in them, where there are such files. Returns how many do.
    async fn stock(
        &self,
        _wanted: u64,
        _stop: &CancellationToken,
        _progress: &Progress<'_>,
    ) -> Option<Result<u64, KeyError>> {
        None
    }

    /// Keygen has ended: frees its locks.
    async fn generating_ended(&self) {}

    /// One pass of keysync.
    async fn move_on(&self, _stop: &CancellationToken) -> NextPass {
        NextPass::AtTick
    }

    async fn accounts(&self) -> PortResult<KeyAccounts>;

    /// The line shard by shard, where it has shards.
    async fn status(&self) -> Option<KeyStatus> {
        None
    }

    /// Keys in this process's hands between two stages.
    fn moving(&self) -> u64 {
        0
    }

    async fn recycle(&self, _ids: &[LinkId]) -> PortResult<u64> {
        Ok(0)
    }

    /// Gives back what this process holds, after the buffer was closed.
    async fn close(&self) -> PortResult<()> {
        Ok(())
    }
}

/// A line with nothing behind it.
pub(crate) struct NoLine;

#[async_trait]
impl Line for NoLine {
    async fn accounts(&self) -> PortResult<KeyAccounts> {
        Ok(KeyAccounts::default())
    }
}

pub(crate) type Opened = (Taking, Box<dyn Line>);

pub(crate) fn open(
    settings: &KeySettings,
    ports: KeyPorts,
    metrics: &KeyMetrics,
    nudges: &Arc<Nudges>,
    presence: &Presence,
) -> Result<Opened, KeyError> {
    match settings.strategy {
        Strategy::Pool | Strategy::Status => {
            ledger::open(settings, ports, metrics, nudges, presence)
        }
        Strategy::File => file::open(settings, ports, metrics, nudges),
        Strategy::Claim => claim::open(settings, ports, metrics),
        Strategy::Snowflake => Ok(ids::open_snowflake(settings, ports)),
        Strategy::Sequence => Ok(ids::open_sequence(settings, ports)),
        Strategy::Hash => Ok(hash::open(settings, ports)),
    }
}
