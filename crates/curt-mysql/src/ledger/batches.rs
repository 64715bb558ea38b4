//! Open batches, and the totals that move with them.

use curt_core::ports::LedgerCounts;
use mysql_async::prelude::Queryable;
use mysql_async::{Error, Transaction};

/// An open batch as it is stored.
pub(super) struct Stored {
    pub(super) id: u64,
    pub(super) size: u64,
}

pub(super) async fn find(
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<Option<Stored>, Error> {
    let sql = "SELECT id, size FROM key_batches WHERE name = ?";
    let row: Option<(u64, u64)> = transaction.exec_first(sql, (name,)).await?;
    Ok(row.map(|(id, size)| Stored { id, size }))
}

pub(super) async fn find_locked(
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<Option<Stored>, Error> {
    let sql = "SELECT id, size FROM key_batches WHERE name = ? FOR UPDATE";
    let row: Option<(u64, u64)> = transaction.exec_first(sql, (name,)).await?;
    Ok(row.map(|(id, size)| Stored { id, size }))
}

/// Refused as a duplicate when another taker of the same name was faster.
pub(super) async fn open(
    transaction: &mut Transaction<'_>,
    name: &str,
    taken_at: i64,
    size: u64,
) -> Result<u64, Error> {
    let sql = "INSERT INTO key_batches (name, taken_at, size) VALUES (?, ?, ?)";
    transaction.exec_drop(sql, (name, taken_at, size)).await?;
    Ok(transaction.last_insert_id().unwrap_or_default())
}

pub(super) async fn forget(transaction: &mut Transaction<'_>, id: u64) -> Result<(), Error> {
    let sql = "DELETE FROM key_batches WHERE id = ?";
    transaction.exec_drop(sql, (id,)).await
}

/// Name, instant and id of the oldest.
pub(super) async fn oldest(
    transaction: &mut Transaction<'_>,
    before: i64,
    limit: u64,
) -> Result<Vec<(String, i64, u64)>, Error> {
    let sql = "SELECT name, taken_at, id FROM key_batches WHERE taken_at <= ? ORDER BY taken_at, id LIMIT ?";
    transaction.exec(sql, (before, limit)).await
}

/// By how much the totals of a session change.
#[derive(Default)]
pub(super) struct Change {
    pub(super) minted: i64,
    pub(super) free: i64,
    pub(super) open: i64,
    pub(super) recycled: i64,
}

pub(super) async fn count(transaction: &mut Transaction<'_>, change: Change) -> Result<(), Error> {
    let sql = "UPDATE key_counts SET minted = minted + ?, free = free + ?, opened = opened + ?, \
               recycled = recycled + ? WHERE slot = CONNECTION_ID() % 16";
    let Change {
        minted,
        free,
        open,
        recycled,
    } = change;
    transaction
        .exec_drop(sql, (minted, free, open, recycled))
        .await
}

pub(super) async fn totals(transaction: &mut Transaction<'_>) -> Result<LedgerCounts, Error> {
    let sql = "SELECT CAST(SUM(minted) AS SIGNED), CAST(SUM(free) AS SIGNED), CAST(SUM(opened) AS SIGNED), \
               CAST(SUM(recycled) AS SIGNED) FROM key_counts";
    let row: Option<(i64, i64, i64, i64)> = transaction.query_first(sql).await?;
    let (minted, free, open, recycled) = row.unwrap_or_default();
    let total = |sum: i64| u64::try_from(sum).unwrap_or(0);
    Ok(LedgerCounts {
        minted: total(minted),
        free: total(free),
        open: total(open),
        recycled: total(recycled),
    })
}
