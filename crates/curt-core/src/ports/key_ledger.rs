use async_trait::async_trait;

use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::key::Key;

/// What becomes of keys that were taken from a ledger. Not every engine has every form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LedgerForm {
    /// Their rows are deleted: the smallest ledger.
    #[default]
    Delete,
    /// Their rows are marked as used: the ledger never mints those keys again.
    Status,
    /// Their rows move to a table of used keys: as `Status`, and the unused keys stay together.
    UsedTable,
    /// Their rows stay and a cursor moves past them: never minted again, and no dead rows, whatever the load.
    Cursor,
}

/// The durable inventory of minted keys: one shard of the keys database.
///
/// A key is *free* until a batch takes it. A batch is *open* from `take` until `close`; a process that dies leaves its
/// batches open, and whoever finds them gives the unused keys back. Whether taken keys are deleted, marked or moved to
/// a table of their own is the adapter's form; the promises are the same.
#[async_trait]
pub trait KeyLedger: Send + Sync {
    /// Adds keys as free. Keys that the ledger knows, in whatever state its form remembers, are skipped. Returns how
    /// many were new. Called twice: the second adds nothing that is still known.
    async fn insert(&self, keys: &[Key]) -> PortResult<u64>;

    /// Like `insert`, by the holder of this shard's lease. Refused, as `None`, once an owner with a higher fencing
    /// token has inserted: the caller has lost its lease without noticing and must stop. A wrapper need not pass
    /// fencing tokens on, since two owners at once are a waste and never a wrong.
    async fn insert_fenced(&self, _fencing_token: u64, keys: &[Key]) -> PortResult<Option<u64>> {
        self.insert(keys).await.map(Some)
    }

    /// Takes up to `limit` free keys under the name `batch`, and never more (K-3). No other call gets the same keys.
    /// Called again with the same name while the batch is open: the same keys again, whatever `limit` says.
    async fn take(&self, batch: &BatchId, limit: usize, now: UnixMillis) -> PortResult<Vec<Key>>;

    /// Forgets open batches, all in one step: their keys are used, or are somebody else's to hand out. Absent: no
    /// change.
    async fn close(&self, batches: &[BatchId]) -> PortResult<()>;

    /// Closes the batch and makes those of its keys that are listed in `unused` free again, in one step. Keys that
    /// are not the batch's are ignored. Absent: no change. Returns how many went back.
    async fn give_back(&self, batch: &BatchId, unused: &[Key]) -> PortResult<u64>;

    /// Batches taken at or before `before` and still open, with their keys, oldest first, at most `limit`.
    async fn open_batches(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<OpenBatch>>;

    /// Puts keys that once were taken back as free: recycling after quarantine. Keys that are free or in an open batch
    /// are skipped. The others do not count as minted again. Returns how many went back.
    async fn recycle(&self, keys: &[Key]) -> PortResult<u64>;

    /// Totals for K-2, kept up to date by every write.
    async fn counts(&self) -> PortResult<LedgerCounts>;

    /// Returns what slows the engine down, in its own terms. Nothing to tell: no finding.
    async fn health(&self) -> PortResult<Vec<Finding>> {
        Ok(Vec::new())
    }
}

/// Something about an engine that an operator should look at when there is much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is counted, as a plural: "dead rows".
    pub name: &'static str,
    pub count: u64,
    /// What to do about too many.
    pub advice: &'static str,
}

/// A name for a batch that no two takers share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub Box<str>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenBatch {
    pub id: BatchId,
    pub taken_at: UnixMillis,
    pub keys: Vec<Key>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerCounts {
    /// Keys ever added by `insert`.
    pub minted: u64,
    /// Keys that `take` would find now.
    pub free: u64,
    /// Keys in open batches.
    pub open: u64,
    /// Keys put back by `recycle`, over all time.
    pub recycled: u64,
}
