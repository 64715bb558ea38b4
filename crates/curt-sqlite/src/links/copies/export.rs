//! What a file has of a shard, in parts.

use curt_core::ports::{IdempotentRequest, RequestToken, ShardItem, ShardPart, StoredRow};
use curt_core::{KeyOrigin, LinkId, OwnerId, ShardId};
use rusqlite::Connection;

use crate::decode;
use crate::links::{generations, idempotency, record, spend};

/// Rows that one export, or one part of a removal, looks at.
const ROWS_SCANNED: u32 = 5_000;

/// A name under which a record of a request is kept.
pub(in crate::links) type RequestName = (OwnerId, Box<str>);

pub(in crate::links) fn export(
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
pub(super) fn scan(
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

pub(in crate::links) fn item_of(
    connection: &Connection,
    id: LinkId,
) -> rusqlite::Result<ShardItem> {
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

pub(super) fn former_ids(connection: &Connection, shard: ShardId) -> rusqlite::Result<Vec<LinkId>> {
    let mut statement = connection.prepare_cached("SELECT domain, key FROM key_generations")?;
    let ids = statement.query_map((), record::id_of)?;
    let mut own = ids.collect::<rusqlite::Result<Vec<LinkId>>>()?;
    own.retain(|id| ShardId::of(id) == shard);
    Ok(own)
}

pub(super) fn request_names(
    connection: &Connection,
    shard: ShardId,
) -> rusqlite::Result<Vec<RequestName>> {
    let mut statement = connection.prepare_cached("SELECT owner, key FROM idempotency")?;
    let names = statement.query_map((), |row| {
        Ok((OwnerId(row.get::<_, i64>(0)?.cast_unsigned()), row.get(1)?))
    })?;
    let mut own = names.collect::<rusqlite::Result<Vec<RequestName>>>()?;
    own.retain(|(owner, key)| ShardId::of_request(*owner, key) == shard);
    Ok(own)
}

pub(in crate::links) fn request_of(
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

pub(super) fn released_of(
    connection: &Connection,
    shard: ShardId,
) -> rusqlite::Result<Vec<ShardItem>> {
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
