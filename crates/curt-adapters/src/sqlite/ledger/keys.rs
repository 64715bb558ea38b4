//! Single keys in the tables `keys` and `keys_used`.

use curt_core::{Key, place};
use rusqlite::Connection;

use super::{LedgerForm, signed};
use crate::sqlite::decode;

/// A key with its place in the order in which keys are taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlottedKey {
    slot: u32,
    key: Key,
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
    u32::try_from(place::hash(key.as_bytes()) >> 32).unwrap_or(u32::MAX)
}

/// Whether no owner with a higher fence has been here. Remembers this one.
pub(super) fn pass_fence(connection: &Connection, fence: u64) -> rusqlite::Result<bool> {
    let passed = connection
        .prepare_cached(
            "INSERT INTO counters (name, value) VALUES ('keys.fence', ?1) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value <= excluded.value",
        )?
        .execute([fence.cast_signed()])?;
    Ok(passed > 0)
}

/// Adds a key as unused unless it is known. Returns how many rows that made.
pub(super) fn add(
    connection: &Connection,
    form: LedgerForm,
    SlottedKey { slot, key }: &SlottedKey,
) -> rusqlite::Result<i64> {
    let sql = match form {
        LedgerForm::Delete | LedgerForm::Status => {
            "INSERT INTO keys (slot, key, status) VALUES (?1, ?2, 0) ON CONFLICT DO NOTHING"
        }
        LedgerForm::UsedTable => {
            "INSERT INTO keys (slot, key, status) SELECT ?1, ?2, 0 \
             WHERE NOT EXISTS (SELECT 1 FROM keys_used WHERE slot = ?1 AND key = ?2) ON CONFLICT DO NOTHING"
        }
    };
    let added = connection
        .prepare_cached(sql)?
        .execute((slot, key.as_str()))?;
    Ok(signed(added))
}

/// Takes the next `limit` unused keys, and never more (K-3).
pub(super) fn take(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<Key>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let next: Vec<SlottedKey> = connection
        .prepare_cached(
            "SELECT slot, key FROM keys INDEXED BY keys_unused WHERE status = 0 ORDER BY slot, key LIMIT ?1",
        )?
        .query_map([limit], |row| {
            Ok(SlottedKey {
                slot: row.get(0)?,
                key: decode::key(row, 1)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut mark =
        connection.prepare_cached("UPDATE keys SET status = 2 WHERE slot = ?1 AND key = ?2")?;
    for SlottedKey { slot, key } in &next {
        mark.execute((slot, key.as_str()))?;
    }
    Ok(next.into_iter().map(|slotted| slotted.key).collect())
}

/// Does with a key of a closed batch what the form does with used keys.
pub(super) fn set_used(
    connection: &Connection,
    form: LedgerForm,
    SlottedKey { slot, key }: &SlottedKey,
) -> rusqlite::Result<()> {
    let leave = match form {
        LedgerForm::Delete | LedgerForm::UsedTable => {
            "DELETE FROM keys WHERE slot = ?1 AND key = ?2"
        }
        LedgerForm::Status => "UPDATE keys SET status = 1 WHERE slot = ?1 AND key = ?2",
    };
    connection
        .prepare_cached(leave)?
        .execute((slot, key.as_str()))?;
    if form == LedgerForm::UsedTable {
        connection
            .prepare_cached(
                "INSERT INTO keys_used (slot, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            )?
            .execute((slot, key.as_str()))?;
    }
    Ok(())
}

/// Makes a key of a closed batch unused again.
pub(super) fn give_back(
    connection: &Connection,
    SlottedKey { slot, key }: &SlottedKey,
) -> rusqlite::Result<i64> {
    let freed = connection
        .prepare_cached("UPDATE keys SET status = 0 WHERE slot = ?1 AND key = ?2 AND status = 2")?
        .execute((slot, key.as_str()))?;
    Ok(signed(freed))
}

/// Makes a used key unused again, whether or not its row is still there. Keys that are unused or open stay as they are.
pub(super) fn recycle(
    connection: &Connection,
    SlottedKey { slot, key }: &SlottedKey,
) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("DELETE FROM keys_used WHERE slot = ?1 AND key = ?2")?
        .execute((slot, key.as_str()))?;
    let freed = connection
        .prepare_cached(
            "INSERT INTO keys (slot, key, status) VALUES (?1, ?2, 0) \
             ON CONFLICT DO UPDATE SET status = 0 WHERE status = 1",
        )?
        .execute((slot, key.as_str()))?;
    Ok(signed(freed))
}
