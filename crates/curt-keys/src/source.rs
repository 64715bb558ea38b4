use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::{Key, LinkId, OwnerId, PortResult, Target};
use tokio_util::sync::CancellationToken;

use crate::error::KeySupplyError;
use crate::key_counts::KeyCounts;
use crate::pace::NextPass;
use crate::settings::BufferSettings;
use crate::status::KeyStatus;

/// What a key is wanted for.
#[derive(Clone, Copy, Debug)]
pub struct KeyRequest<'a> {
    pub target: &'a Target,
    pub owner: OwnerId,
    /// How many keys have been tried for this link before.
    pub attempt: u32,
}

/// A key to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppliedKey {
    pub key: Key,
    pub origin: KeyOrigin,
}

/// Where keys come from: one implementation per strategy. A source either is drawn from ahead of time, into the buffer
/// of the supply, or makes a key per request, or leaves keys to the link store.
#[async_trait]
pub trait KeySource: Send + Sync {
    /// What links record about keys of this source.
    fn origin(&self) -> KeyOrigin;

    /// The buffer that is to be filled by [`draw`](Self::draw). `None`: keys come from [`make`](Self::make).
    fn buffer(&self) -> Option<BufferSettings> {
        None
    }

    /// Draws up to `room` keys for the buffer, which no other draw gets. Empty: there are none now.
    async fn draw(&self, _room: usize) -> PortResult<Vec<Key>> {
        Ok(Vec::new())
    }

    /// Makes a key for one request. `None`: a random key is the better guess.
    fn make(&self, _hint: &KeyRequest<'_>) -> Option<SuppliedKey> {
        None
    }

    /// Takes back a key that [`make`](Self::make) gave and no link got.
    fn put_back(&self, _unused: SuppliedKey) {}

    /// Takes keys back that [`draw`](Self::draw) gave and that other processes have more use for. Returns those that it did
    /// not take.
    async fn take_back(&self, unused: Vec<Key>) -> Vec<Key> {
        unused
    }

    /// Whether links get their keys from [`SeededLinks::claim`](curt_core::ports::SeededLinks::claim); a key is asked for
    /// only when its rows have run out.
    fn claims_rows(&self) -> bool {
        false
    }

    /// K-2, with `buffered` keys in the buffer of this process.
    async fn count_keys(&self, _buffered: u64) -> PortResult<KeyCounts> {
        Ok(KeyCounts::default())
    }

    /// Every shard and every instance, for a source that is shared by processes. Its counts are made from it.
    async fn status(&self) -> Option<KeyStatus> {
        None
    }

    /// Takes keys of purged links back as free. Returns how many went back at once.
    async fn recycle(&self, _ids: &[LinkId]) -> PortResult<u64> {
        Ok(0)
    }

    /// Gives back what this process holds. A source that can take keys back calls `drain`, which empties the buffer;
    /// any other leaves them to creates that still come.
    async fn close(&self, _drain: &(dyn Fn() -> Vec<Key> + Sync)) -> PortResult<()> {
        Ok(())
    }
}

/// Hears how many keys there are by now.
pub(crate) type ReportProgress<'a> = dyn Fn(u64) + Sync + 'a;

/// The background work behind a source: the roles keygen and keysync.
#[async_trait]
pub(crate) trait KeyProducer: Send + Sync {
    /// Makes keys ahead of time: one pass of keygen.
    async fn generate(&self, stop: &CancellationToken) -> NextPass;

    /// Frees the leases of keygen, when it has ended.
    async fn release_leases(&self);

    /// Moves keys on and recovers those of dead processes: one pass of keysync. `handed_out` is how many keys have left
    /// the buffer of this process.
    async fn sync(&self, _handed_out: u64, _stop: &CancellationToken) -> NextPass {
        NextPass::AtTick
    }

    /// Writes key files until `wanted` keys wait in them, where there are such files. Returns how many do.
    async fn fill_key_files(
        &self,
        _wanted: u64,
        _stop: &CancellationToken,
        _progress: &ReportProgress<'_>,
    ) -> Option<Result<u64, KeySupplyError>> {
        None
    }

    /// Keys that this process holds between a ledger and a pool.
    fn keys_in_transit(&self) -> u64 {
        0
    }
}
