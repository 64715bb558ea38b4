//! What changes while a shard is copied.

use std::collections::BTreeSet;

use curt_core::ports::ChangedItems;
use curt_core::{DomainId, Key, LinkId, OwnerId, ShardId};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension};

use super::export::{item_of, released_of, request_of};
use crate::decode;
use crate::engine::writer::Work;

/// Changes that are read at once.
const CHANGES_AT_ONCE: u32 = 1_000;

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

/// `false`: a mover with a greater fence tracks the shard.
pub(in crate::links) fn track(
    work: &mut Work<'_>,
    shard: ShardId,
    fence: u64,
) -> rusqlite::Result<bool> {
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

pub(in crate::links) fn stop_tracking(
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

/// What has changed, of any shard, and the numbers by which that is remembered.
#[derive(Default)]
pub(in crate::links) struct ChangedNames {
    pub(in crate::links) ids: BTreeSet<LinkId>,
    /// By owner and key.
    pub(in crate::links) requests: BTreeSet<(u64, Box<str>)>,
    pub(in crate::links) numbers: Vec<i64>,
}

pub(in crate::links) fn changed_names(
    connection: &Connection,
    limit: u32,
) -> rusqlite::Result<ChangedNames> {
    let mut statement = connection.prepare_cached(
        "SELECT number, holder, is_link, name FROM shard_changes ORDER BY number LIMIT ?1",
    )?;
    let mut rows = statement.query([limit])?;
    let mut changed = ChangedNames::default();
    while let Some(row) = rows.next()? {
        changed.numbers.push(row.get(0)?);
        let name: Box<str> = row.get(3)?;
        if row.get(2)? {
            let key = Key::parse(&name).map_err(|_| decode::unknown(3, Type::Text, &name))?;
            changed.ids.insert(LinkId::new(DomainId(row.get(1)?), key));
        } else {
            let owner = row.get::<_, i64>(1)?.cast_unsigned();
            changed.requests.insert((owner, name));
        }
    }
    Ok(changed)
}

pub(in crate::links) fn changes(
    connection: &Connection,
    shard: ShardId,
) -> rusqlite::Result<ChangedItems> {
    let ChangedNames {
        ids,
        requests,
        numbers,
    } = changed_names(connection, CHANGES_AT_ONCE)?;
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

pub(in crate::links) fn forget_changes(
    connection: &Connection,
    numbers: &[i64],
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("DELETE FROM shard_changes WHERE number = ?1")?;
    for number in numbers {
        statement.execute([number])?;
    }
    Ok(())
}
