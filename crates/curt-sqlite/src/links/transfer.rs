//! The whole file, to be copied to another database or from one.

use async_trait::async_trait;
use curt_core::ports::{
    FOLLOWER_MIN, FollowedChanges, ImportReport, LinkItem, LinkTransfer, RequestToken, ShardItem,
    StoredRow, Transfer, TransferPart, Transferred,
};
use curt_core::{KeyOrigin, LinkState, OwnerId, PortError, PortResult, ShardId};
use rusqlite::{Connection, Row};

use super::record::StoredLink;
use super::{SqliteLinks, copies, generations, idempotency, record, spend, totals};
use crate::decode;
use crate::engine::writer::Work;
use crate::failure::BACKEND;

/// Rows of a part, and changes that are read at once.
const ROWS_AT_ONCE: u32 = 1_000;
const OP_EXPORT: &str = "export links";
const OP_IMPORT: &str = "import links";
const OP_FOLLOW: &str = "follow changes";

/// Where an export goes on.
enum Position {
    /// Behind a row, in the order in which rows came.
    Rows(i64),
    /// Behind a key that was released.
    Former(i64, Box<str>),
    Requests(i64, Box<str>),
}

impl Position {
    fn read(text: Option<&str>) -> PortResult<Self> {
        let Some(text) = text else {
            return Ok(Self::Rows(0));
        };
        let name = |rest: &str| {
            let (holder, name) = rest.split_once(':')?;
            Some((holder.parse().ok()?, name.into()))
        };
        let found = text
            .split_at_checked(1)
            .and_then(|(kind, rest)| match kind {
                "l" => rest.parse().ok().map(Self::Rows),
                "g" => name(rest).map(|(domain, key)| Self::Former(domain, key)),
                "r" => name(rest).map(|(owner, key)| Self::Requests(owner, key)),
                _ => None,
            });
        found.ok_or_else(|| super::invalid(OP_EXPORT, "the position is not one of this database"))
    }

    fn to_text(&self) -> Box<str> {
        match self {
            Self::Rows(row) => format!("l{row}"),
            Self::Former(domain, key) => format!("g{domain}:{key}"),
            Self::Requests(owner, key) => format!("r{owner}:{key}"),
        }
        .into()
    }
}

const FORMER_FIRST: (i64, &str) = (-1, "");
const REQUESTS_FIRST: (i64, &str) = (i64::MIN, "");

fn export(connection: &Connection, after: &Position) -> rusqlite::Result<TransferPart<LinkItem>> {
    match after {
        Position::Rows(row) => export_rows(connection, *row),
        Position::Former(domain, key) => export_former(connection, (*domain, key)),
        Position::Requests(owner, key) => export_requests(connection, (*owner, key)),
    }
}

fn export_rows(connection: &Connection, after: i64) -> rusqlite::Result<TransferPart<LinkItem>> {
    let select = format!("{}WHERE id > ?1 ORDER BY id LIMIT ?2", record::SELECT);
    let mut statement = connection.prepare_cached(&select)?;
    let rows = statement.query_map((after, ROWS_AT_ONCE), record::stored_of)?;
    let mut last = after;
    let mut items = Vec::new();
    for stored in rows {
        let stored = stored?;
        last = stored.row_id;
        items.extend(LinkItem::new(item_of(connection, stored)?));
    }
    let next = match items.len() == ROWS_AT_ONCE as usize {
        true => Position::Rows(last),
        false => Position::Former(FORMER_FIRST.0, FORMER_FIRST.1.into()),
    };
    Ok(part(items, Some(&next)))
}

/// A row with what is kept beside it.
fn item_of(connection: &Connection, stored: StoredLink) -> rusqlite::Result<ShardItem> {
    let token = connection
        .prepare_cached("SELECT request_token FROM links WHERE id = ?1")?
        .query_row([stored.row_id], |row| row.get::<_, Option<[u8; 16]>>(0))?;
    let id = stored.link.id.clone();
    Ok(ShardItem::Link {
        former_generation: generations::former(connection, &id)?,
        id,
        stored: Some(Box::new(StoredRow {
            clicks_spent: spend::spent_by(connection, stored.row_id)?,
            link: stored.link,
            was_permanent: stored.was_permanent,
            token: token.map(RequestToken),
        })),
    })
}

/// Generations of keys that no row has; those of others are beside their rows.
fn export_former(
    connection: &Connection,
    after: (i64, &str),
) -> rusqlite::Result<TransferPart<LinkItem>> {
    let mut statement = connection.prepare_cached(
        "SELECT domain, key, generation, EXISTS (SELECT 1 FROM links AS l WHERE l.domain = g.domain AND l.key = g.key) \
         FROM key_generations AS g WHERE (domain, key) > (?1, ?2) ORDER BY domain, key LIMIT ?3",
    )?;
    let mut rows = statement.query((after.0, after.1, ROWS_AT_ONCE))?;
    let (mut items, mut scanned, mut next) = (Vec::new(), 0, None);
    while let Some(row) = rows.next()? {
        let id = record::id_of(row)?;
        scanned += 1;
        if scanned == ROWS_AT_ONCE {
            next = Some(Position::Former(id.domain.0.into(), id.key.as_str().into()));
        }
        let has_row: bool = row.get(3)?;
        if !has_row {
            items.extend(LinkItem::new(ShardItem::Link {
                id,
                stored: None,
                former_generation: Some(row.get(2)?),
            }));
        }
    }
    let first = || Position::Requests(REQUESTS_FIRST.0, REQUESTS_FIRST.1.into());
    Ok(part(items, Some(&next.unwrap_or_else(first))))
}

fn export_requests(
    connection: &Connection,
    after: (i64, &str),
) -> rusqlite::Result<TransferPart<LinkItem>> {
    let mut statement = connection.prepare_cached(
        "SELECT owner, key FROM idempotency WHERE (owner, key) > (?1, ?2) ORDER BY owner, key LIMIT ?3",
    )?;
    let names = statement.query_map((after.0, after.1, ROWS_AT_ONCE), |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Box<str>>(1)?))
    })?;
    let names = names.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut items = Vec::with_capacity(names.len());
    for (owner, key) in &names {
        let name = (OwnerId(owner.cast_unsigned()), key.clone());
        items.extend(LinkItem::new(copies::request_of(connection, name)?));
    }
    let last = names
        .last()
        .filter(|_| names.len() == ROWS_AT_ONCE as usize);
    let next = last.map(|(owner, key)| Position::Requests(*owner, key.clone()));
    if next.is_none() {
        items.extend(released(connection)?);
    }
    Ok(part(items, next.as_ref()))
}

fn released(connection: &Connection) -> rusqlite::Result<Vec<LinkItem>> {
    let read = |row: &Row<'_>| {
        let shard: u16 = row.get(0)?;
        let item = ShardItem::Released {
            origin: decode::number(row, 1, KeyOrigin::from_stored)?,
            count: row.get::<_, i64>(2)?.cast_unsigned(),
        };
        Ok(ShardId::new(shard).map(|shard| LinkItem { shard, item }))
    };
    let mut statement =
        connection.prepare_cached("SELECT shard, origin, count FROM released_keys")?;
    let items = statement.query_map((), read)?;
    items.filter_map(Result::transpose).collect()
}

fn part(items: Vec<LinkItem>, next: Option<&Position>) -> TransferPart<LinkItem> {
    let next = next.map(Position::to_text);
    TransferPart { items, next }
}

/// What is stored under the same name.
fn there(connection: &Connection, item: &LinkItem) -> rusqlite::Result<LinkItem> {
    let shard = item.shard;
    let item = match &item.item {
        ShardItem::Link { id, .. } => copies::item_of(connection, id.clone())?,
        ShardItem::Request { owner, key, .. } => {
            copies::request_of(connection, (*owner, key.clone()))?
        }
        ShardItem::Released { origin, .. } => ShardItem::Released {
            origin: *origin,
            count: super::shards::released(connection, Some(shard), *origin)?,
        },
    };
    Ok(LinkItem { shard, item })
}

fn write(work: &mut Work<'_>, item: &LinkItem) -> rusqlite::Result<()> {
    let connection = work.connection;
    match &item.item {
        ShardItem::Link {
            id,
            stored,
            former_generation,
        } => {
            let before = record::find(connection, id)?;
            if let Some(before) = &before {
                count_row(work, (before.link.state, before.link.origin), -1);
            }
            if let Some(stored) = stored {
                count_row(work, (stored.link.state, stored.link.origin), 1);
            }
            put_row(connection, before.as_ref(), item, stored.as_deref())?;
            match former_generation {
                Some(_) => generations::set(connection, id, *former_generation),
                None => Ok(()),
            }
        }
        ShardItem::Request { owner, key, record } => {
            idempotency::import(connection, *owner, key, record.as_deref())
        }
        ShardItem::Released { origin, count } => {
            let before = super::shards::released(connection, Some(item.shard), *origin)?;
            let more = count.cast_signed() - before.cast_signed();
            totals::add_created(work.counters, *origin, more);
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO released_keys (shard, origin, count) VALUES (?1, ?2, ?3)",
                )?
                .execute((item.shard.number(), *origin as u8, count.cast_signed()))
                .map(drop)
        }
    }
}

/// A link that was changed keeps its place among the others; a new one under the same key comes last.
fn put_row(
    connection: &Connection,
    before: Option<&StoredLink>,
    item: &LinkItem,
    stored: Option<&StoredRow>,
) -> rusqlite::Result<()> {
    match (before, stored) {
        (Some(before), Some(after))
            if before.link.revision.generation == after.link.revision.generation =>
        {
            record::overwrite(connection, before, after)
        }
        (_, after) => {
            if let ShardItem::Link { id, .. } = &item.item {
                record::remove(connection, id)?;
            }
            after.map_or(Ok(()), |after| record::import(connection, after))
        }
    }
}

fn count_row(work: &mut Work<'_>, (state, origin): (LinkState, KeyOrigin), count: i64) {
    if state != LinkState::Seeded {
        totals::add_created(work.counters, origin, count);
    }
    totals::add_in_state(work.counters, state, origin, count);
}

/// The mover of a shard, or the copy, for which changes are remembered.
fn follower(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let fence: Option<i64> =
        connection.query_row("SELECT max(fence) FROM shard_tracking", (), |row| {
            row.get(0)
        })?;
    Ok(fence.map(i64::cast_unsigned))
}

fn changes(connection: &Connection) -> rusqlite::Result<FollowedChanges> {
    let copies::ChangedNames {
        ids,
        requests,
        numbers,
    } = copies::changed_names(connection, ROWS_AT_ONCE)?;
    let mut items = Vec::with_capacity(ids.len() + requests.len());
    for id in ids {
        items.extend(LinkItem::new(copies::item_of(connection, id)?));
    }
    for (owner, key) in requests {
        let name = (OwnerId(owner), key);
        items.extend(LinkItem::new(copies::request_of(connection, name)?));
    }
    items.extend(released(connection)?);
    Ok(FollowedChanges {
        items,
        is_end: numbers.len() < ROWS_AT_ONCE as usize,
        numbers,
    })
}

fn followed_by_another() -> PortError {
    let mut refused = PortError::stale_epoch(BACKEND, OP_FOLLOW);
    refused.detail = "another copy follows changes, or a shard moves".to_owned();
    refused
}

#[async_trait]
impl Transfer<LinkItem> for SqliteLinks {
    async fn export_all(&self, after: Option<&str>) -> PortResult<TransferPart<LinkItem>> {
        let after = Position::read(after)?;
        self.db
            .readers
            .scan_in_background(OP_EXPORT, move |connection| export(connection, &after))
            .await
    }

    async fn import_all(&self, items: &[LinkItem]) -> PortResult<ImportReport> {
        let (items, map) = (items.to_vec(), self.map.clone());
        let import = move |work: &mut Work<'_>| {
            for item in &items {
                if !work.seals.admit_shard(work.connection, &map, item.shard)? {
                    return Ok(None);
                }
            }
            let mut report = ImportReport::default();
            for item in &items {
                let there = there(work.connection, item)?;
                if report.count(item, item.replaces(&there)) {
                    write(work, item)?;
                }
            }
            Ok(Some(report))
        };
        let imported = self
            .db
            .writer
            .write(OP_IMPORT, ROWS_AT_ONCE as usize, import);
        let imported = imported.await?;
        imported.ok_or_else(|| PortError::stale_epoch(BACKEND, OP_IMPORT))
    }
}

#[async_trait]
impl LinkTransfer for SqliteLinks {
    async fn follow_changes(&self, follower: u64) -> PortResult<()> {
        let follow = move |work: &mut Work<'_>| {
            if self::follower(work.connection)?.is_some_and(|known| known != follower) {
                return Ok(false);
            }
            for shard in ShardId::all() {
                copies::track(work, shard, follower)?;
            }
            Ok(true)
        };
        match self.db.writer.write(OP_FOLLOW, 1, follow).await? {
            true => Ok(()),
            false => Err(followed_by_another()),
        }
    }

    async fn followed_changes(&self, follower: u64) -> PortResult<FollowedChanges> {
        let read =
            move |connection: &Connection| match self::follower(connection)? == Some(follower) {
                true => changes(connection).map(Some),
                false => Ok(None),
            };
        let changes = self.db.readers.scan_in_background(OP_FOLLOW, read).await?;
        changes.ok_or_else(followed_by_another)
    }

    async fn forget_followed(&self, numbers: &[i64]) -> PortResult<()> {
        let numbers = numbers.to_vec();
        self.db
            .writer
            .write(OP_FOLLOW, numbers.len(), move |work| {
                copies::forget_changes(work.connection, &numbers)
            })
            .await
    }

    async fn stop_following(&self, follower: Option<u64>) -> PortResult<()> {
        let stop = move |work: &mut Work<'_>| {
            let Some(known) = self::follower(work.connection)? else {
                return Ok(true);
            };
            match follower {
                Some(follower) if follower != known => return Ok(false),
                None if known < FOLLOWER_MIN => return Ok(true),
                _ => {}
            }
            for shard in ShardId::all() {
                copies::stop_tracking(work, shard, known)?;
            }
            Ok(true)
        };
        match self.db.writer.write(OP_FOLLOW, 1, stop).await? {
            true => Ok(()),
            false => Err(followed_by_another()),
        }
    }
}
