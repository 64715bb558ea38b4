//! Copies of shards that move: what [`LinkShards`](curt_core::ports::LinkShards) says about moves.
//!
//! Links have no column for their shard, so that an export reads all of them, in the order of their keys. Changes are
//! remembered by triggers that are made for the move.

mod export;
mod tracking;

pub(super) use export::{export, item_of, request_of};
pub(super) use tracking::{
    ChangedNames, changed_names, changes, forget_changes, stop_tracking, track,
};

use curt_core::ports::{LinkCounts, ShardItem};
use curt_core::{Epoch, LinkId, ShardId, ShardMap};
use rusqlite::{Connection, OptionalExtension};

use self::export::{former_ids, request_names, scan};
use super::{generations, idempotency, record, totals};
use crate::engine::writer::Work;

/// States of a shard, as they are stored.
const GONE: u8 = 0;
const COPYING: u8 = 1;
const OWN: u8 = 2;
const RETIRED: u8 = 3;
const DISCOUNTED: u8 = 4;

/// Fence and state of a shard that has moved, or is moving.
fn find(connection: &Connection, shard: ShardId) -> rusqlite::Result<Option<(u64, u8)>> {
    connection
        .prepare_cached("SELECT fence, state FROM shard_copies WHERE shard = ?1")?
        .query_row([shard.number()], |row| {
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
        })
        .optional()
}

fn put(connection: &Connection, shard: ShardId, fence: u64, state: u8) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO shard_copies (shard, fence, retired, state) VALUES (?1, ?2, 0, ?3) \
             ON CONFLICT (shard) DO UPDATE SET fence = excluded.fence, state = excluded.state",
        )?
        .execute((shard.number(), fence.cast_signed(), state))
        .map(drop)
}

/// Whether a map is too old to read this shard here.
pub(super) fn is_retired(
    connection: &Connection,
    map: &ShardMap,
    shard: ShardId,
) -> rusqlite::Result<bool> {
    // What was opened without a map is no node of many.
    if map.version() == 0 {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM shard_copies WHERE shard = ?1 AND retired > ?2)",
        )?
        .query_row((shard.number(), map.epoch(shard).0.cast_signed()), |row| {
            row.get(0)
        })
}

/// Whether a map is too old to read everything here.
pub(super) fn is_any_retired(connection: &Connection, map: &ShardMap) -> rusqlite::Result<bool> {
    if map.version() == 0 {
        return Ok(false);
    }
    let mut statement =
        connection.prepare_cached("SELECT shard FROM shard_copies WHERE retired > 0")?;
    let shards = statement.query_map((), |row| row.get::<_, u16>(0))?;
    for shard in shards {
        if let Some(shard) = ShardId::new(shard?)
            && is_retired(connection, map, shard)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `false`: refused.
pub(super) fn begin_import(
    work: &mut Work<'_>,
    shard: ShardId,
    fence: u64,
    epoch: Epoch,
) -> rusqlite::Result<bool> {
    let found = find(work.connection, shard)?;
    if found.is_some_and(|(known, state)| known > fence || state > COPYING) {
        return Ok(false);
    }
    put(work.connection, shard, fence, COPYING)?;
    work.seals.put(work.connection, shard, epoch)?;
    Ok(true)
}

/// `false`: refused.
pub(super) fn import(
    work: &mut Work<'_>,
    shard: ShardId,
    fence: u64,
    items: &[ShardItem],
) -> rusqlite::Result<bool> {
    let connection = work.connection;
    if find(connection, shard)? != Some((fence, COPYING)) {
        return Ok(false);
    }
    for item in items {
        match item {
            ShardItem::Link {
                id,
                stored,
                former_generation,
            } => {
                record::remove(connection, id)?;
                if let Some(stored) = stored {
                    record::import(connection, stored)?;
                }
                generations::set(connection, id, *former_generation)?;
            }
            ShardItem::Request { owner, key, record } => {
                idempotency::import(connection, *owner, key, record.as_deref())?;
            }
            ShardItem::Released { origin, count } => {
                connection
                    .prepare_cached(
                        "INSERT OR REPLACE INTO released_keys (shard, origin, count) VALUES (?1, ?2, ?3)",
                    )?
                    .execute((shard.number(), *origin as u8, count.cast_signed()))?;
            }
        }
    }
    Ok(true)
}

pub(super) fn adopt(
    work: &mut Work<'_>,
    shard: ShardId,
    fence: u64,
    counts: &LinkCounts,
) -> rusqlite::Result<bool> {
    lead(work, shard, fence, (COPYING, OWN), Some((counts, 1)))
}

pub(super) fn discount(
    work: &mut Work<'_>,
    shard: ShardId,
    fence: u64,
    counts: &LinkCounts,
) -> rusqlite::Result<bool> {
    lead(
        work,
        shard,
        fence,
        (RETIRED, DISCOUNTED),
        Some((counts, -1)),
    )
}

pub(super) fn retire(
    work: &mut Work<'_>,
    shard: ShardId,
    fence: u64,
    epoch: Epoch,
) -> rusqlite::Result<bool> {
    let state = find(work.connection, shard)?.map_or(OWN, |(_, state)| state);
    // Done, and further on by now.
    let is_past = matches!(state, GONE | DISCOUNTED);
    let way = match is_past {
        true => (state, state),
        false => (OWN, RETIRED),
    };
    let is_done = lead(work, shard, fence, way, None)?;
    if is_done {
        work.connection.execute(
            "UPDATE shard_copies SET retired = max(retired, ?2) WHERE shard = ?1",
            (shard.number(), epoch.0.cast_signed()),
        )?;
    }
    Ok(is_done)
}

/// Leads a shard from one state to the next and changes the totals, once. `false`: refused.
fn lead(
    work: &mut Work<'_>,
    shard: ShardId,
    fence: u64,
    (from, to): (u8, u8),
    counts: Option<(&LinkCounts, i64)>,
) -> rusqlite::Result<bool> {
    let (known, state) = find(work.connection, shard)?.unwrap_or((0, OWN));
    if known > fence || ![from, to].contains(&state) {
        return Ok(false);
    }
    put(work.connection, shard, fence, to)?;
    if let Some((counts, sign)) = counts
        && state != to
    {
        totals::add_counts(work.counters, counts, sign);
    }
    Ok(true)
}

/// `None`: refused.
pub(super) fn drop_copy(
    work: &mut Work<'_>,
    shard: ShardId,
    fence: u64,
    after: Option<&LinkId>,
) -> rusqlite::Result<Option<Option<LinkId>>> {
    let connection = work.connection;
    let found = find(connection, shard)?;
    let Some((_, state)) = found
        .filter(|(known, state)| *known <= fence && matches!(*state, GONE | COPYING | DISCOUNTED))
    else {
        return Ok(None);
    };
    let (ids, last) = scan(connection, shard, after)?;
    for id in &ids {
        record::remove(connection, id)?;
    }
    if last.is_some() {
        put(connection, shard, fence, state)?;
        return Ok(Some(last));
    }
    for id in former_ids(connection, shard)? {
        generations::set(connection, &id, None)?;
    }
    for (owner, key) in request_names(connection, shard)? {
        idempotency::import(connection, owner, &key, None)?;
    }
    connection.execute(
        "DELETE FROM released_keys WHERE shard = ?1",
        [shard.number()],
    )?;
    put(connection, shard, fence, GONE)?;
    Ok(Some(None))
}
