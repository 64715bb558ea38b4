//! Edits, tombstones and what becomes of them.

use curt_core::ports::{ChangeReply, LinkChange};
use curt_core::{KeyOrigin, Link, LinkId, LinkState, OwnerId, Revision, ShardMap, UnixMillis};
use rusqlite::Connection;

use super::record::{self, StoredLink};
use super::{generations, shards, spend, totals};
use crate::decode;
use crate::engine::writer::Work;

pub(super) fn update(
    work: &mut Work<'_>,
    link: &Link,
    seen: Revision,
) -> rusqlite::Result<ChangeReply> {
    let Some(before) = find_kept(work.connection, &link.id)? else {
        return Ok(ChangeReply::Absent);
    };
    if before.link.revision != seen {
        return Ok(ChangeReply::Stale(before.link.revision));
    }
    let after = Link {
        owner: before.link.owner,
        made_with: before.link.made_with,
        origin: before.link.origin,
        created_at: before.link.created_at,
        revision: seen.edited(),
        ..link.clone()
    };
    record::replace(work.connection, &before, &after)?;
    count_change(work, &before.link, &after);
    Ok(ChangeReply::Changed(LinkChange::of(&after)))
}

/// Gives a link to another owner.
pub(super) fn hand_over(
    work: &mut Work<'_>,
    id: &LinkId,
    seen: Revision,
    (owner, now): (OwnerId, UnixMillis),
) -> rusqlite::Result<ChangeReply> {
    let Some(before) = find_kept(work.connection, id)? else {
        return Ok(ChangeReply::Absent);
    };
    if before.link.revision != seen {
        return Ok(ChangeReply::Stale(before.link.revision));
    }
    let revision = seen.edited();
    work.connection
        .prepare_cached("UPDATE links SET owner = ?1, version = ?2, updated_at = ?3 WHERE id = ?4")?
        .execute((
            owner.0.cast_signed(),
            revision.version,
            now.0,
            before.row_id,
        ))?;
    Ok(ChangeReply::Changed(LinkChange {
        id: id.clone(),
        revision,
    }))
}

pub(super) fn delete(
    work: &mut Work<'_>,
    id: &LinkId,
    seen: Revision,
    now: UnixMillis,
) -> rusqlite::Result<ChangeReply> {
    let Some(before) = find_kept(work.connection, id)? else {
        return Ok(ChangeReply::Absent);
    };
    if seen != before.link.revision {
        return Ok(ChangeReply::Stale(before.link.revision));
    }
    Ok(ChangeReply::Changed(to_tombstone(work, &before, now)?))
}

const EXPIRED: &str = "SELECT domain, key, generation, version, expires_at FROM links INDEXED BY links_by_expiry \
     WHERE state = 0 AND expires_at <= ?1 ORDER BY expires_at, id LIMIT ?2";
const DELETED: &str = "SELECT domain, key, generation, version, updated_at FROM links INDEXED BY links_by_deletion \
     WHERE state >= 4 AND updated_at <= ?1 ORDER BY updated_at, id LIMIT ?2";

pub(super) fn ended(
    connection: &Connection,
    before: UnixMillis,
    limit: usize,
) -> rusqlite::Result<Vec<(LinkId, Revision)>> {
    let rows_max = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut ended: Vec<(i64, (LinkId, Revision))> = Vec::new();
    for sql in [EXPIRED, DELETED] {
        let mut statement = connection.prepare_cached(sql)?;
        let found = statement.query_map((before.0, rows_max), |row| {
            let revision = Revision {
                generation: row.get(2)?,
                version: row.get(3)?,
            };
            Ok((row.get(4)?, (record::id_of(row)?, revision)))
        })?;
        for one in found {
            ended.push(one?);
        }
    }
    ended.sort_by_key(|(at, _)| *at);
    ended.truncate(limit);
    Ok(ended.into_iter().map(|(_, link)| link).collect())
}

pub(super) fn purge(
    work: &mut Work<'_>,
    map: &ShardMap,
    batch: &[(LinkId, Revision)],
    (before, now): (UnixMillis, UnixMillis),
) -> rusqlite::Result<Vec<LinkChange>> {
    let mut purged = Vec::new();
    for (id, revision) in batch {
        if !work.seals.admit(work.connection, map, id)? {
            continue;
        }
        let Some(stored) = record::find(work.connection, id)? else {
            continue;
        };
        let is_due = stored.link.ended_at(before).is_some_and(|at| at <= before);
        if is_due && stored.link.revision == *revision {
            purged.push(to_tombstone(work, &stored, now)?);
        }
    }
    Ok(purged)
}

pub(super) fn release(
    work: &mut Work<'_>,
    map: &ShardMap,
    before: UnixMillis,
    limit: usize,
) -> rusqlite::Result<Vec<LinkChange>> {
    let connection = work.connection;
    let due: Vec<(LinkChange, KeyOrigin, i64)> = connection
        .prepare_cached(
            "SELECT domain, key, origin, id, generation, version FROM links INDEXED BY links_in_quarantine \
             WHERE state = 2 AND origin <> 0 AND was_permanent = 0 AND updated_at <= ?1 \
             ORDER BY updated_at, id",
        )?
        .query_map([before.0], |row| {
            let origin = decode::number(row, 2, KeyOrigin::from_stored)?;
            let released = LinkChange {
                id: record::id_of(row)?,
                revision: Revision {
                    generation: row.get(4)?,
                    version: row.get(5)?,
                },
            };
            Ok((released, origin, row.get(3)?))
        })?
        .filter_map(|row| {
            keep_if(row, |(released, ..)| {
                work.seals.admit(connection, map, &released.id)
            })
        })
        .take(limit)
        .collect::<rusqlite::Result<_>>()?;
    let mut remove = connection.prepare_cached("DELETE FROM links WHERE id = ?1")?;
    for (released, origin, row_id) in &due {
        generations::remember(work.connection, released)?;
        remove.execute([row_id])?;
        spend::forget(work.connection, *row_id)?;
        totals::add_in_state(work.counters, LinkState::Tombstone, *origin, -1);
        shards::count_released(connection, &released.id, *origin)?;
    }
    Ok(due.into_iter().map(|(released, _, _)| released).collect())
}

/// The row if it is to be kept, or why that cannot be told.
pub(super) fn keep_if<T>(
    row: rusqlite::Result<T>,
    is_kept: impl FnOnce(&T) -> rusqlite::Result<bool>,
) -> Option<rusqlite::Result<T>> {
    match row.and_then(|row| Ok((is_kept(&row)?, row))) {
        Ok((true, row)) => Some(Ok(row)),
        Ok((false, _)) => None,
        Err(error) => Some(Err(error)),
    }
}

/// The link under `id` unless it is a tombstone or nobody's yet.
fn find_kept(connection: &Connection, id: &LinkId) -> rusqlite::Result<Option<StoredLink>> {
    let found = record::find(connection, id)?;
    Ok(found.filter(|stored| stored.link.state.is_kept()))
}

/// Moves the totals where a link was deleted or restored.
fn count_change(work: &mut Work<'_>, before: &Link, after: &Link) {
    if before.state != after.state {
        totals::add_in_state(work.counters, before.state, before.origin, -1);
        totals::add_in_state(work.counters, after.state, after.origin, 1);
    }
}

/// Turns a link into its tombstone (L-3).
fn to_tombstone(
    work: &mut Work<'_>,
    before: &StoredLink,
    now: UnixMillis,
) -> rusqlite::Result<LinkChange> {
    let tombstone = Link {
        state: LinkState::Tombstone,
        revision: before.link.revision.edited(),
        updated_at: now,
        title: None,
        tags: Vec::new(),
        password_hash: None,
        ..before.link.clone()
    };
    record::replace(work.connection, before, &tombstone)?;
    count_change(work, &before.link, &tombstone);
    Ok(LinkChange::of(&tombstone))
}
