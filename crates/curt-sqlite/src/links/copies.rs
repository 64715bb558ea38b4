//! Copies of shards that move: what [`LinkShards`](curt_core::ports::LinkShards) says about moves.
//!
//! Links have no column for their shard, so that an export reads all of them, in the order of their keys. Changes are
//! remembered by triggers that are made for the move.

use std::collections::BTreeSet;

use curt_core::ports::{
    ChangedItems, IdempotentRequest, LinkCounts, RequestToken, ShardItem, ShardPart, StoredRow,
};
use curt_core::{DomainId, Epoch, Key, KeyOrigin, LinkId, OwnerId, ShardId, ShardMap};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension};

use super::{generations, idempotency, record, spend, totals};
use crate::decode;
use crate::engine::writer::Work;

/// Rows that one export, or one part of a removal, looks at.
const ROWS_SCANNED: u32 = 5_000;
/// Changes that are read at once.
const CHANGES_AT_ONCE: u32 = 1_000;

/// States of a shard, as they are stored.
const GONE: u8 = 0;
const COPYING: u8 = 1;
const OWN: u8 = 2;
const RETIRED: u8 = 3;
const DISCOUNTED: u8 = 4;

const TRACK: &str = "
    CREATE TRIGGER IF NOT EXISTS track_link_insert AFTER INSERT ON links
    BEGIN INSERT INTO shard_changes (holder, is_link, name) VALUES (NEW.domain, 1, NEW.key); END;
    CREATE TRIGGER IF NOT EXISTS track_link_update AFTER UPDATE ON links
    BEGIN INSERT INTO shard_changes (holder, is_link, name) VALUES (NEW.domain, 1, NEW.key); END;
    CREATE TRIGGER IF NOT EXISTS track_link_delete AFTER DELETE ON links
    BEGIN INSERT INTO shard_changes (holder, is_link, name) VALUES (OLD.domain, 1, OLD.key); END;
    CREATE TRIGGER IF NOT EXISTS track_spent_insert AFTER INSERT ON link_clicks
    BEGIN INSERT INTO shard_changes (holder, is_link, name) SELECT domain, 1, key FROM links WHERE id = NEW.link; END;
    CREATE TRIGGER IF NOT EXISTS track_spent_update AFTER UPDATE ON link_clicks
    BEGIN INSERT INTO shard_changes (holder, is_link, name) SELECT domain, 1, key FROM links WHERE id = NEW.link; END;
    CREATE TRIGGER IF NOT EXISTS track_former_insert AFTER INSERT ON key_generations
    BEGIN INSERT INTO shard_changes (holder, is_link, name) VALUES (NEW.domain, 1, NEW.key); END;
    CREATE TRIGGER IF NOT EXISTS track_request_insert AFTER INSERT ON idempotency
    BEGIN INSERT INTO shard_changes (holder, is_link, name) VALUES (NEW.owner, 0, NEW.key); END;
    CREATE TRIGGER IF NOT EXISTS track_request_update AFTER UPDATE ON idempotency
    BEGIN INSERT INTO shard_changes (holder, is_link, name) VALUES (NEW.owner, 0, NEW.key); END;
    CREATE TRIGGER IF NOT EXISTS track_request_delete AFTER DELETE ON idempotency
    BEGIN INSERT INTO shard_changes (holder, is_link, name) VALUES (OLD.owner, 0, OLD.key); END;
";
const STOP_TRACKING: &str = "
    DROP TRIGGER IF EXISTS track_link_insert;
    DROP TRIGGER IF EXISTS track_link_update;
    DROP TRIGGER IF EXISTS track_link_delete;
    DROP TRIGGER IF EXISTS track_spent_insert;
    DROP TRIGGER IF EXISTS track_spent_update;
    DROP TRIGGER IF EXISTS track_former_insert;
    DROP TRIGGER IF EXISTS track_request_insert;
    DROP TRIGGER IF EXISTS track_request_update;
    DROP TRIGGER IF EXISTS track_request_delete;
    DELETE FROM shard_changes;
";

/// A name under which a record of a request is kept.
type RequestName = (OwnerId, Box<str>);

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

/// `false`: a mover with a greater fence tracks the shard.
pub(super) fn track(work: &mut Work<'_>, shard: ShardId, fence: u64) -> rusqlite::Result<bool> {
    if tracking_fence(work.connection, shard)?.is_some_and(|known| known > fence) {
        return Ok(false);
    }
    work.connection.execute(
        "INSERT OR REPLACE INTO shard_tracking (shard, fence) VALUES (?1, ?2)",
        (shard.number(), fence.cast_signed()),
    )?;
    work.connection.execute_batch(TRACK)?;
    Ok(true)
}

pub(super) fn stop_tracking(
    work: &mut Work<'_>,
    shard: ShardId,
    fence: u64,
) -> rusqlite::Result<bool> {
    if tracking_fence(work.connection, shard)?.is_some_and(|known| known > fence) {
        return Ok(false);
    }
    let connection = work.connection;
    connection.execute(
        "DELETE FROM shard_tracking WHERE shard = ?1",
        [shard.number()],
    )?;
    let left: u32 =
        connection.query_row("SELECT count(*) FROM shard_tracking", (), |row| row.get(0))?;
    if left == 0 {
        connection.execute_batch(STOP_TRACKING)?;
    }
    Ok(true)
}

fn tracking_fence(connection: &Connection, shard: ShardId) -> rusqlite::Result<Option<u64>> {
    connection
        .query_row(
            "SELECT fence FROM shard_tracking WHERE shard = ?1",
            [shard.number()],
            |row| row.get::<_, i64>(0),
        )
        .optional()
        .map(|fence| fence.map(i64::cast_unsigned))
}

pub(super) fn export(
    connection: &Connection,
    shard: ShardId,
    after: Option<&LinkId>,
) -> rusqlite::Result<ShardPart> {
    let (ids, last) = scan(connection, shard, after)?;
    let mut part = ShardPart {
        items: Vec::with_capacity(ids.len()),
        next: last.map(|id| id.to_string().into()),
        scanned: ROWS_SCANNED.into(),
    };
    for id in ids {
        part.items.push(item_of(connection, id)?);
    }
    if part.next.is_none() {
        for id in former_ids(connection, shard)? {
            part.items.push(item_of(connection, id)?);
        }
        for name in request_names(connection, shard)? {
            part.items.push(request_of(connection, name)?);
        }
        part.items.extend(released_of(connection, shard)?);
    }
    Ok(part)
}

/// The ids of a shard among the next rows, and the last row that was looked at, if there may be more.
fn scan(
    connection: &Connection,
    shard: ShardId,
    after: Option<&LinkId>,
) -> rusqlite::Result<(Vec<LinkId>, Option<LinkId>)> {
    let (domain, key) = after.map_or((-1, ""), |id| (i64::from(id.domain.0), id.key.as_str()));
    let mut statement = connection.prepare_cached(
        "SELECT domain, key FROM links WHERE (domain, key) > (?1, ?2) ORDER BY domain, key LIMIT ?3",
    )?;
    let mut rows = statement.query((domain, key, ROWS_SCANNED))?;
    let (mut ids, mut last, mut scanned) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let id = record::id_of(row)?;
        scanned += 1;
        last = (scanned == ROWS_SCANNED).then(|| id.clone());
        if ShardId::of(&id) == shard {
            ids.push(id);
        }
    }
    Ok((ids, last))
}

pub(super) fn item_of(connection: &Connection, id: LinkId) -> rusqlite::Result<ShardItem> {
    let stored = match record::find(connection, &id)? {
        None => None,
        Some(stored) => {
            let token = connection
                .prepare_cached("SELECT request_token FROM links WHERE id = ?1")?
                .query_row([stored.row_id], |row| row.get::<_, Option<[u8; 16]>>(0))?;
            Some(Box::new(StoredRow {
                clicks_spent: spend::spent_by(connection, stored.row_id)?,
                link: stored.link,
                was_permanent: stored.was_permanent,
                token: token.map(RequestToken),
            }))
        }
    };
    Ok(ShardItem::Link {
        former_generation: generations::former(connection, &id)?,
        id,
        stored,
    })
}

fn former_ids(connection: &Connection, shard: ShardId) -> rusqlite::Result<Vec<LinkId>> {
    let mut statement = connection.prepare_cached("SELECT domain, key FROM key_generations")?;
    let ids = statement.query_map((), record::id_of)?;
    let mut own = ids.collect::<rusqlite::Result<Vec<LinkId>>>()?;
    own.retain(|id| ShardId::of(id) == shard);
    Ok(own)
}

fn request_names(connection: &Connection, shard: ShardId) -> rusqlite::Result<Vec<RequestName>> {
    let mut statement = connection.prepare_cached("SELECT owner, key FROM idempotency")?;
    let names = statement.query_map((), |row| {
        Ok((OwnerId(row.get::<_, i64>(0)?.cast_unsigned()), row.get(1)?))
    })?;
    let mut own = names.collect::<rusqlite::Result<Vec<RequestName>>>()?;
    own.retain(|(owner, key)| ShardId::of_request(*owner, key) == shard);
    Ok(own)
}

pub(super) fn request_of(
    connection: &Connection,
    (owner, key): RequestName,
) -> rusqlite::Result<ShardItem> {
    let request = IdempotentRequest {
        owner,
        key: key.clone(),
        fingerprint: [0; 32],
    };
    let record = idempotency::find(connection, &request)?;
    Ok(ShardItem::Request {
        owner,
        key,
        record: record.map(Box::new),
    })
}

fn released_of(connection: &Connection, shard: ShardId) -> rusqlite::Result<Vec<ShardItem>> {
    connection
        .prepare_cached("SELECT origin, count FROM released_keys WHERE shard = ?1")?
        .query_map([shard.number()], |row| {
            Ok(ShardItem::Released {
                origin: decode::number(row, 0, KeyOrigin::from_stored)?,
                count: row.get::<_, i64>(1)?.cast_unsigned(),
            })
        })?
        .collect()
}

/// Ids of links and names of requests that have changed, of any shard, and the numbers by which that is remembered.
pub(super) fn changed_names(
    connection: &Connection,
    limit: u32,
) -> rusqlite::Result<(BTreeSet<LinkId>, BTreeSet<(u64, Box<str>)>, Vec<i64>)> {
    let mut statement = connection.prepare_cached(
        "SELECT number, holder, is_link, name FROM shard_changes ORDER BY number LIMIT ?1",
    )?;
    let mut rows = statement.query([limit])?;
    let (mut ids, mut requests, mut numbers) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    while let Some(row) = rows.next()? {
        numbers.push(row.get(0)?);
        let name: Box<str> = row.get(3)?;
        if row.get(2)? {
            let key = Key::parse(&name).map_err(|_| decode::unknown(3, Type::Text, &name))?;
            ids.insert(LinkId::new(DomainId(row.get(1)?), key));
        } else {
            requests.insert((row.get::<_, i64>(1)?.cast_unsigned(), name));
        }
    }
    Ok((ids, requests, numbers))
}

pub(super) fn changes(connection: &Connection, shard: ShardId) -> rusqlite::Result<ChangedItems> {
    let (ids, requests, numbers) = changed_names(connection, CHANGES_AT_ONCE)?;
    let mut changed = ChangedItems {
        is_end: numbers.len() < CHANGES_AT_ONCE as usize,
        numbers,
        ..ChangedItems::default()
    };
    for id in ids.into_iter().filter(|id| ShardId::of(id) == shard) {
        changed.items.push(item_of(connection, id)?);
    }
    for (owner, key) in requests {
        if ShardId::of_request(OwnerId(owner), &key) == shard {
            changed
                .items
                .push(request_of(connection, (OwnerId(owner), key))?);
        }
    }
    changed.items.extend(released_of(connection, shard)?);
    Ok(changed)
}

pub(super) fn forget_changes(connection: &Connection, numbers: &[i64]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("DELETE FROM shard_changes WHERE number = ?1")?;
    for number in numbers {
        statement.execute([number])?;
    }
    Ok(())
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
