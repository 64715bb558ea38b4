//! What a node has of a shard, in parts.

use curt_core::ports::{RequestToken, ShardItem, ShardPart, StoredRow};
use curt_core::{DomainId, KeyOrigin, LinkId, OwnerId, PortResult, ShardId};
use tokio_postgres::Row;

use super::{CHANGES_AT_ONCE, CHANGES_AT_ONCE_ROWS, ROWS_SCANNED, scan, shard_number};
use crate::decode::{corrupt, link_id, number, parse_key, small};
use crate::engine::{Engine, Value, column};
use crate::links::idempotency::record_of;
use crate::links::record::{id_columns, link_of, shard_of};
use crate::links::{invalid, sql};

const OP_EXPORT: &str = "export a shard";

/// Where an export goes on.
pub(super) enum Position {
    Links(Option<LinkId>),
    Generations(Option<LinkId>),
    Requests(Option<(OwnerId, Box<str>)>),
}

impl Position {
    pub(super) fn read(text: Option<&str>) -> PortResult<Self> {
        let Some(text) = text else {
            return Ok(Self::Links(None));
        };
        let id = |text: &str| match text {
            "" => Some(None),
            text => LinkId::parse(text).map(Some),
        };
        let found = match text.split_at_checked(1) {
            Some(("l", rest)) => id(rest).map(Self::Links),
            Some(("g", rest)) => id(rest).map(Self::Generations),
            Some(("r", "")) => Some(Self::Requests(None)),
            Some(("r", rest)) => rest.split_once(':').and_then(|(owner, name)| {
                let owner = OwnerId(owner.parse().ok()?);
                Some(Self::Requests(Some((owner, name.into()))))
            }),
            _ => None,
        };
        found.ok_or_else(|| invalid(OP_EXPORT, "the position is not one of an export"))
    }
}

pub(in crate::links) async fn export(
    engine: &Engine,
    shard: ShardId,
    after: Option<&str>,
) -> PortResult<ShardPart> {
    match Position::read(after)? {
        Position::Links(after) => export_links(engine, shard, after).await,
        Position::Generations(after) => export_generations(engine, shard, after).await,
        Position::Requests(after) => export_requests(engine, shard, after).await,
    }
}

async fn export_links(
    engine: &Engine,
    shard: ShardId,
    after: Option<LinkId>,
) -> PortResult<ShardPart> {
    let (ids, last) = scan(engine, OP_EXPORT, shard, after.as_ref()).await?;
    let scanned = match last.is_some() {
        true => ROWS_SCANNED.cast_unsigned(),
        false => ids.len() as u64,
    };
    Ok(ShardPart {
        items: items_of(engine, OP_EXPORT, &ids).await?,
        next: Some(last.map_or("g".into(), |id| format!("l{id}").into())),
        scanned,
    })
}

async fn export_generations(
    engine: &Engine,
    shard: ShardId,
    after: Option<LinkId>,
) -> PortResult<ShardPart> {
    let (domain, key) = match &after {
        Some(id) => (i64::from(id.domain.0), id.key.as_str()),
        None => (-1, ""),
    };
    let values: [Value<'_>; 4] = [&shard_number(shard), &domain, &key, &CHANGES_AT_ONCE];
    let rows = engine
        .read(OP_EXPORT, sql::SCAN_GENERATIONS, &values)
        .await?;
    let ids = rows.iter().map(|row| link_id(OP_EXPORT, row));
    let ids: Vec<LinkId> = ids.collect::<PortResult<_>>()?;
    let is_full = rows.len() == CHANGES_AT_ONCE_ROWS;
    let last = ids.last().filter(|_| is_full);
    Ok(ShardPart {
        items: items_of(engine, OP_EXPORT, &ids).await?,
        next: Some(last.map_or("r".into(), |id| format!("g{id}").into())),
        scanned: 0,
    })
}

async fn export_requests(
    engine: &Engine,
    shard: ShardId,
    after: Option<(OwnerId, Box<str>)>,
) -> PortResult<ShardPart> {
    let (owner, name) = match &after {
        Some((owner, name)) => (owner.0.cast_signed(), &**name),
        None => (i64::MIN, ""),
    };
    let values: [Value<'_>; 3] = [&owner, &name, &CHANGES_AT_ONCE];
    let rows = engine.read(OP_EXPORT, sql::SCAN_REQUESTS, &values).await?;
    let mut names = Vec::new();
    for row in &rows {
        let owner = OwnerId(column::<i64>(OP_EXPORT, row, 0)?.cast_unsigned());
        names.push((owner, column::<&str>(OP_EXPORT, row, 1)?.into()));
    }
    let is_full = rows.len() == CHANGES_AT_ONCE_ROWS;
    let next = names.last().filter(|_| is_full);
    let next =
        next.map(|(owner, name): &(OwnerId, Box<str>)| format!("r{}:{name}", owner.0).into());
    names.retain(|(owner, name)| ShardId::of_request(*owner, name) == shard);
    let mut items = requests_of(engine, OP_EXPORT, &names).await?;
    if next.is_none() {
        items.extend(released_of(engine, OP_EXPORT, shard).await?);
    }
    Ok(ShardPart {
        items,
        next,
        scanned: 0,
    })
}

/// What is stored under these ids, whether or not there is a row.
pub(in crate::links) async fn items_of(
    engine: &Engine,
    op: &'static str,
    ids: &[LinkId],
) -> PortResult<Vec<ShardItem>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (domains, keys) = id_columns(ids);
    let shards: Vec<i16> = ids.iter().map(shard_of).collect();
    let values: [Value<'_>; 3] = [&domains, &keys, &shards];
    let rows = engine.read(op, sql::FIND_ITEMS, &values).await?;
    rows.iter().map(|row| item_of(op, row)).collect()
}

/// The columns of a link, its token, its spent clicks, then domain and key asked for, and the former generation.
fn item_of(op: &'static str, row: &Row) -> PortResult<ShardItem> {
    let domain = DomainId(small(op, column(op, row, 23)?)?);
    let id = LinkId::new(domain, parse_key(op, column(op, row, 24)?)?);
    let former = column::<Option<i64>>(op, row, 25)?;
    let stored = match column::<Option<i64>>(op, row, 0)? {
        None => None,
        Some(_) => {
            let token = column::<Option<&[u8]>>(op, row, 21)?;
            let token = token.map(|token| token.try_into().map_err(|_| corrupt(op, "a token")));
            Some(Box::new(StoredRow {
                link: link_of(op, row)?,
                was_permanent: column(op, row, 16)?,
                clicks_spent: column::<i64>(op, row, 22)?.cast_unsigned(),
                token: token.transpose()?.map(RequestToken),
            }))
        }
    };
    Ok(ShardItem::Link {
        id,
        stored,
        former_generation: former.map(|former| small(op, former)).transpose()?,
    })
}

pub(in crate::links) async fn requests_of(
    engine: &Engine,
    op: &'static str,
    names: &[(OwnerId, Box<str>)],
) -> PortResult<Vec<ShardItem>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let owners: Vec<i64> = names
        .iter()
        .map(|(owner, _)| owner.0.cast_signed())
        .collect();
    let texts: Vec<&str> = names.iter().map(|(_, name)| &**name).collect();
    let values: [Value<'_>; 2] = [&owners, &texts];
    let rows = engine.read(op, sql::FIND_REQUESTS, &values).await?;
    let request = |row: &Row| {
        let record = match column::<Option<&[u8]>>(op, row, 0)? {
            Some(_) => Some(Box::new(record_of(op, row)?)),
            None => None,
        };
        Ok(ShardItem::Request {
            owner: OwnerId(column::<i64>(op, row, 6)?.cast_unsigned()),
            key: column::<&str>(op, row, 7)?.into(),
            record,
        })
    };
    rows.iter().map(request).collect()
}

pub(super) async fn released_of(
    engine: &Engine,
    op: &'static str,
    shard: ShardId,
) -> PortResult<Vec<ShardItem>> {
    let rows = engine
        .read(op, sql::RELEASED_OF_SHARD, &[&shard_number(shard)])
        .await?;
    let released = |row: &Row| {
        Ok(ShardItem::Released {
            origin: number(op, row, 0, KeyOrigin::from_stored)?,
            count: column::<i64>(op, row, 1)?.cast_unsigned(),
        })
    };
    rows.iter().map(released).collect()
}
