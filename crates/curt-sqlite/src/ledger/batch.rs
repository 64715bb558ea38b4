//! Open batches: what was taken and is not known to be used or handed on.

use std::borrow::Cow;
use std::collections::HashSet;

use curt_core::ports::{BatchId, OpenBatch};
use curt_core::{Key, UnixMillis, placement};
use rusqlite::{Connection, OptionalExtension};

use super::keys::SlottedKey;
use crate::decode;

pub(super) fn open(
    connection: &Connection,
    batch: &BatchId,
    now: UnixMillis,
    keys: &[Key],
) -> rusqlite::Result<()> {
    let lines: Vec<&str> = keys.iter().map(Key::as_str).collect();
    connection
        .prepare_cached("INSERT INTO key_batches (name, taken_at, keys) VALUES (?1, ?2, ?3)")?
        .execute((&*batch.0, now.0, lines.join("\n")))
        .map(drop)
}

pub(super) fn find(connection: &Connection, batch: &BatchId) -> rusqlite::Result<Option<Vec<Key>>> {
    connection
        .prepare_cached("SELECT keys FROM key_batches WHERE name = ?1")?
        .query_row([&*batch.0], |row| decode::keys(row, 0))
        .optional()
}

/// Forgets the batch and returns its keys.
pub(super) fn close(
    connection: &Connection,
    batch: &BatchId,
) -> rusqlite::Result<Option<Vec<Key>>> {
    connection
        .prepare_cached("DELETE FROM key_batches WHERE name = ?1 RETURNING keys")?
        .query_row([&*batch.0], |row| decode::keys(row, 0))
        .optional()
}

/// The keys without those that are in an open batch.
pub(super) fn without_open<'a>(
    connection: &Connection,
    keys: &'a [SlottedKey],
) -> rusqlite::Result<Cow<'a, [SlottedKey]>> {
    // There are many more open keys than asked ones, and hardly ever one that is both. Bytes, because looking for line
    // ends in a str takes longer than all else here.
    let asked: HashSet<&[u8]> = keys.iter().map(|slotted| slotted.key.as_bytes()).collect();
    let filter = KeyFilter::of(&asked);
    let mut open: HashSet<Vec<u8>> = HashSet::new();
    let mut statement = connection.prepare_cached("SELECT keys FROM key_batches")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let lines = row.get_ref(0)?.as_bytes()?.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| filter.may_hold(line) && asked.contains(line));
        open.extend(lines.map(<[u8]>::to_owned));
    }
    if open.is_empty() {
        return Ok(Cow::Borrowed(keys));
    }
    let is_known = |slotted: &&SlottedKey| open.contains(slotted.key.as_bytes());
    let others = keys.iter().filter(|slotted| !is_known(slotted));
    Ok(others.cloned().collect())
}

pub(super) fn open_before(
    connection: &Connection,
    before: UnixMillis,
    limit: usize,
) -> rusqlite::Result<Vec<OpenBatch>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "SELECT name, taken_at, keys FROM key_batches WHERE taken_at <= ?1 ORDER BY taken_at, seq LIMIT ?2",
        )?
        .query_map((before.0, limit), |row| {
            Ok(OpenBatch {
                id: BatchId(row.get(0)?),
                taken_at: UnixMillis(row.get(1)?),
                keys: decode::keys(row, 2)?,
            })
        })?
        .collect()
}

/// Tells quickly of nearly every key that it is none of a few thousand. Looking each up in a set took as long as minting.
struct KeyFilter(Vec<u64>);

impl KeyFilter {
    fn of(keys: &HashSet<&[u8]>) -> Self {
        let mut words = vec![0; (1 << 16) / 64];
        for key in keys {
            let bit = Self::bit(key);
            words[bit / 64] |= 1 << (bit % 64);
        }
        Self(words)
    }

    fn may_hold(&self, key: &[u8]) -> bool {
        let bit = Self::bit(key);
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// The upper bits of the hash that places keys.
    fn bit(key: &[u8]) -> usize {
        let [high, low, ..] = placement::hash(key).to_be_bytes();
        u16::from_be_bytes([high, low]).into()
    }
}
