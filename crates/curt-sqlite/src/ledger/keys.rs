//! Single keys in the tables `keys` and `keys_used`.

use curt_core::{Key, placement};
use rusqlite::Connection;

use super::signed;
use crate::decode;
use curt_core::ports::LedgerForm;

/// A key with its place in the order in which keys are taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlottedKey {
    slot: u32,
    pub(super) key: Key,
}

/// The keys in the order of their rows: neighbours share pages.
pub(super) fn in_slot_order(keys: &[Key]) -> Vec<SlottedKey> {
    let mut slotted: Vec<_> = keys
        .iter()
        .map(|key| SlottedKey {
            slot: slot(key),
            key: key.clone(),
        })
        .collect();
    slotted.sort_unstable();
    slotted.dedup();
    slotted
}

/// Ledger shards are chosen by the low bits of the same hash, so this takes the high ones.
fn slot(key: &Key) -> u32 {
    u32::try_from(placement::hash(key.as_bytes()) >> 32).unwrap_or(u32::MAX)
}

/// Whether no owner with a higher fencing token has been here. Remembers this one.
pub(super) fn advance_fencing_token(
    connection: &Connection,
    fencing_token: u64,
) -> rusqlite::Result<bool> {
    let passed = connection
        .prepare_cached(
            "INSERT INTO counters (name, value) VALUES ('keys.fencing_token', ?1) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value <= excluded.value",
        )?
        .execute([fencing_token.cast_signed()])?;
    Ok(passed > 0)
}

/// Adds keys as unused that are neither unused nor used. Returns how many.
pub(super) fn add(
    connection: &Connection,
    form: LedgerForm,
    keys: &[SlottedKey],
) -> rusqlite::Result<i64> {
    // Whatever form the ledger has now, it may have had the other ones before.
    let (any_used, is_used) = match form {
        LedgerForm::Delete | LedgerForm::Status | LedgerForm::Cursor => (
            "SELECT EXISTS (SELECT 1 FROM keys WHERE status = 1)",
            "SELECT EXISTS (SELECT 1 FROM keys WHERE status = 1 AND slot = ?1 AND key = ?2)",
        ),
        LedgerForm::UsedTable => (
            "SELECT EXISTS (SELECT 1 FROM keys_used)",
            "SELECT EXISTS (SELECT 1 FROM keys_used WHERE slot = ?1 AND key = ?2)",
        ),
    };
    let any_used: bool = connection
        .prepare_cached(any_used)?
        .query_row((), |row| row.get(0))?;
    // Not one statement with the insert: one that reads the table it writes to builds a temporary table for each key,
    // which took longer than the insert itself.
    let mut is_used = connection.prepare_cached(is_used)?;
    let mut add = connection.prepare_cached(
        "INSERT INTO keys (status, slot, key) VALUES (0, ?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    let mut added = 0;
    for SlottedKey { slot, key } in keys {
        let row = (slot, key.as_str());
        if !any_used || !is_used.query_row(row, |found| found.get(0))? {
            added += add.execute(row)?;
        }
    }
    Ok(signed(added))
}

/// Takes the next `limit` unused keys, and never more (K-3). From now on they are in their batch alone.
pub(super) fn take(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<Key>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let next: Vec<SlottedKey> = connection
        .prepare_cached("SELECT slot, key FROM keys WHERE status = 0 ORDER BY slot, key LIMIT ?1")?
        .query_map([limit], |row| {
            Ok(SlottedKey {
                slot: row.get(0)?,
                key: decode::key(row, 1)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    if let Some(SlottedKey { slot, key }) = next.last() {
        // The first ones in this order, so everything up to the last of them.
        connection
            .prepare_cached("DELETE FROM keys WHERE status = 0 AND (slot, key) <= (?1, ?2)")?
            .execute((slot, key.as_str()))?;
    }
    Ok(next.into_iter().map(|slotted| slotted.key).collect())
}

/// Does with keys of a closed batch what the form does with used keys.
pub(super) fn set_used(
    connection: &Connection,
    form: LedgerForm,
    keys: &[SlottedKey],
) -> rusqlite::Result<()> {
    let mut keep = connection.prepare_cached(match form {
        LedgerForm::Delete | LedgerForm::Cursor => return Ok(()),
        LedgerForm::Status => {
            "INSERT INTO keys (status, slot, key) VALUES (1, ?1, ?2) ON CONFLICT DO NOTHING"
        }
        LedgerForm::UsedTable => {
            "INSERT INTO keys_used (slot, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING"
        }
    })?;
    for SlottedKey { slot, key } in keys {
        keep.execute((slot, key.as_str()))?;
    }
    Ok(())
}

/// Makes keys unused that are not. Returns how many.
pub(super) fn free(connection: &Connection, keys: &[SlottedKey]) -> rusqlite::Result<i64> {
    let mut free = connection.prepare_cached(
        "INSERT INTO keys (status, slot, key) VALUES (0, ?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    let mut freed = 0;
    for SlottedKey { slot, key } in keys {
        freed += free.execute((slot, key.as_str()))?;
    }
    Ok(signed(freed))
}

/// Forgets that keys were used, in whichever form.
pub(super) fn forget_used(connection: &Connection, keys: &[SlottedKey]) -> rusqlite::Result<()> {
    for forget in [
        "DELETE FROM keys WHERE status = 1 AND slot = ?1 AND key = ?2",
        "DELETE FROM keys_used WHERE slot = ?1 AND key = ?2",
    ] {
        let mut forget = connection.prepare_cached(forget)?;
        for SlottedKey { slot, key } in keys {
            forget.execute((slot, key.as_str()))?;
        }
    }
    Ok(())
}
