//! The key ledger in the three forms of the documents.
//!
//! All forms keep unused keys in the table `keys` with status 0 and those of open batches with their batch, and they
//! share batches and totals, so that a deployment can change its form at any time. They differ in what becomes of a key
//! when its batch is closed: see [`LedgerForm`].
//!
//! The order of the documents, "select an unused key, then mark it", hands a key out twice when two do it at once. Here
//! both happen in one transaction that has the write lock from its start.

mod batch;
mod keys;

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{BatchId, KeyLedger, LedgerCounts, LedgerForm, OpenBatch};
use curt_core::{Key, PortResult, UnixMillis};

use self::keys::SlottedKey;
use super::Sqlite;
use super::engine::counters::{CounterName, Counters};
use super::engine::writer::Work;

const MINTED: CounterName = "keys.minted";
const FREE: CounterName = "keys.free";
const OPEN: CounterName = "keys.open";
const RECYCLED: CounterName = "keys.recycled";

pub(super) struct SqliteLedger {
    db: Arc<Sqlite>,
    form: LedgerForm,
}

impl SqliteLedger {
    pub(super) fn new(db: Arc<Sqlite>, form: LedgerForm) -> Self {
        Self { db, form }
    }

    /// Adds keys, unless an owner with a higher fencing token has been here.
    async fn add(&self, fencing_token: Option<u64>, keys: &[Key]) -> PortResult<Option<u64>> {
        let form = self.form;
        let keys = keys::in_slot_order(keys);
        self.db
            .writer
            .write("add minted keys", keys.len(), move |work| {
                if let Some(fencing_token) = fencing_token
                    && !keys::advance_fencing_token(work.connection, fencing_token)?
                {
                    return Ok(None);
                }
                let keys = batch::without_open(work.connection, &keys)?;
                let added = keys::add(work.connection, form, &keys)?;
                work.counters.add(MINTED, added);
                work.counters.add(FREE, added);
                Ok(Some(added.unsigned_abs()))
            })
            .await
    }
}

#[async_trait]
impl KeyLedger for SqliteLedger {
    async fn insert(&self, keys: &[Key]) -> PortResult<u64> {
        let added = self.add(None, keys).await?;
        Ok(added.unwrap_or_default())
    }

    async fn insert_fenced(&self, fencing_token: u64, keys: &[Key]) -> PortResult<Option<u64>> {
        self.add(Some(fencing_token), keys).await
    }

    async fn take(&self, batch: &BatchId, limit: usize, now: UnixMillis) -> PortResult<Vec<Key>> {
        let batch = batch.clone();
        self.db
            .writer
            .write("take keys", limit, move |work| {
                if let Some(keys) = batch::find(work.connection, &batch)? {
                    return Ok(keys);
                }
                let taken = keys::take(work.connection, limit)?;
                if !taken.is_empty() {
                    batch::open(work.connection, &batch, now, &taken)?;
                    work.counters.add(FREE, -signed(taken.len()));
                    work.counters.add(OPEN, signed(taken.len()));
                }
                Ok(taken)
            })
            .await
    }

    async fn close(&self, batches: &[BatchId]) -> PortResult<()> {
        let (form, batches) = (self.form, batches.to_vec());
        let size = batches.len().max(1);
        self.db
            .writer
            .write("close batches of keys", size, move |work| {
                batches
                    .iter()
                    .try_for_each(|batch| close(work, form, batch, &[]).map(drop))
            })
            .await
    }

    async fn give_back(&self, batch: &BatchId, unused: &[Key]) -> PortResult<u64> {
        let form = self.form;
        let batch = batch.clone();
        let unused = keys::in_slot_order(unused);
        self.db
            .writer
            .write("close a batch of keys", unused.len().max(1), move |work| {
                close(work, form, &batch, &unused)
            })
            .await
    }

    async fn open_batches(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<OpenBatch>> {
        self.db
            .readers
            .scan_in_background("list open batches of keys", move |connection| {
                batch::open_before(connection, before, limit)
            })
            .await
    }

    async fn recycle(&self, keys: &[Key]) -> PortResult<u64> {
        let keys = keys::in_slot_order(keys);
        self.db
            .writer
            .write("recycle keys", keys.len(), move |work| {
                let keys = batch::without_open(work.connection, &keys)?;
                keys::forget_used(work.connection, &keys)?;
                let freed = keys::free(work.connection, &keys)?;
                work.counters.add(FREE, freed);
                work.counters.add(RECYCLED, freed);
                Ok(freed.unsigned_abs())
            })
            .await
    }

    async fn counts(&self) -> PortResult<LedgerCounts> {
        self.db.readers.look_up("count keys", |connection| {
            let counters = Counters::read(connection)?;
            Ok(LedgerCounts {
                minted: counters.get(MINTED),
                free: counters.get(FREE),
                open: counters.get(OPEN),
                recycled: counters.get(RECYCLED),
            })
        })
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Closes the batch and frees those of its keys that are in `unused`, which is in the order of slots.
fn close(
    work: &mut Work<'_>,
    form: LedgerForm,
    batch: &BatchId,
    unused: &[SlottedKey],
) -> rusqlite::Result<u64> {
    let Some(keys) = batch::close(work.connection, batch)? else {
        return Ok(0);
    };
    work.counters.add(OPEN, -signed(keys.len()));
    if unused.is_empty() && matches!(form, LedgerForm::Delete | LedgerForm::Cursor) {
        return Ok(0);
    }
    let is_unused = |key: &SlottedKey| unused.binary_search(key).is_ok();
    let (unused, used): (Vec<_>, Vec<_>) =
        keys::in_slot_order(&keys).into_iter().partition(is_unused);
    keys::set_used(work.connection, form, &used)?;
    let freed = keys::free(work.connection, &unused)?;
    work.counters.add(FREE, freed);
    Ok(freed.unsigned_abs())
}
