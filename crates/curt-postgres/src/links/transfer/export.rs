//! Everything, part by part: links that lists show by their age, so that an engine that lists rows as they came keeps the
//! order; then the others by their keys, then what is kept beside links.

use std::collections::HashMap;

use curt_core::ports::{LinkItem, ShardItem, TransferPart};
use curt_core::{KeyOrigin, LinkId, OwnerId, PortResult, ShardId};
use tokio_postgres::Row;

use super::{LIMIT, ROWS_AT_ONCE, sql};
use crate::decode::{corrupt, link_id, number};
use crate::engine::{Engine, Value, column};
use crate::links::copies::{items_of, requests_of};
use crate::links::invalid;
use crate::links::sql::SCAN_REQUESTS;

const OP: &str = "export links";
/// Rows that are looked at for tombstones and seeds.
const ROWS_SCANNED: i64 = 10_000;

/// Where an export goes on.
enum Position {
    Live(Option<(i64, LinkId)>),
    Deleted(Option<(i64, LinkId)>),
    Others(Option<LinkId>),
    Former(Option<LinkId>),
    Requests(Option<(i64, Box<str>)>),
}

impl Position {
    fn read(text: Option<&str>) -> PortResult<Self> {
        let Some(text) = text else {
            return Ok(Self::Live(None));
        };
        let found = text
            .split_at_checked(1)
            .and_then(|(kind, rest)| Self::of_kind(kind, rest));
        found.ok_or_else(|| invalid(OP, "the position is not one of this database"))
    }

    fn of_kind(kind: &str, rest: &str) -> Option<Self> {
        let aged = |rest: &str| match rest {
            "" => Some(None),
            rest => {
                let (at, id) = rest.split_once(':')?;
                Some(Some((at.parse().ok()?, LinkId::parse(id)?)))
            }
        };
        let id = |rest: &str| match rest {
            "" => Some(None),
            rest => LinkId::parse(rest).map(Some),
        };
        let name = |rest: &str| match rest {
            "" => Some(None),
            rest => {
                let (owner, name) = rest.split_once(':')?;
                Some(Some((owner.parse().ok()?, name.into())))
            }
        };
        match kind {
            "l" => aged(rest).map(Self::Live),
            "d" => aged(rest).map(Self::Deleted),
            "o" => id(rest).map(Self::Others),
            "g" => id(rest).map(Self::Former),
            "r" => name(rest).map(Self::Requests),
            _ => None,
        }
    }
}

pub(super) async fn export(
    engine: &Engine,
    after: Option<&str>,
) -> PortResult<TransferPart<LinkItem>> {
    match Position::read(after)? {
        Position::Live(after) => by_age(engine, sql::EXPORT_LIVE, after, ("l", "d")).await,
        Position::Deleted(after) => by_age(engine, sql::EXPORT_DELETED, after, ("d", "o")).await,
        Position::Others(after) => others(engine, after).await,
        Position::Former(after) => former(engine, after).await,
        Position::Requests(after) => requests(engine, after).await,
    }
}

/// `names` are those of this kind of position and of the next.
async fn by_age(
    engine: &Engine,
    sql: &str,
    after: Option<(i64, LinkId)>,
    names: (&str, &str),
) -> PortResult<TransferPart<LinkItem>> {
    let (at, domain, key) = match &after {
        Some((at, id)) => (*at, i64::from(id.domain.0), id.key.as_str()),
        None => (i64::MIN, -1, ""),
    };
    let values: [Value<'_>; 4] = [&at, &domain, &key, &LIMIT];
    let rows = engine.read(OP, sql, &values).await?;
    let ids = ids_of(&rows)?;
    let next = match (rows.last(), ids.last()) {
        (Some(row), Some(id)) if rows.len() == ROWS_AT_ONCE => {
            format!("{}{}:{id}", names.0, column::<i64>(OP, row, 2)?)
        }
        _ => names.1.to_owned(),
    };
    part(in_order(engine, &ids).await?, Some(next))
}

async fn others(engine: &Engine, after: Option<LinkId>) -> PortResult<TransferPart<LinkItem>> {
    let (domain, key) = after
        .as_ref()
        .map_or((-1, ""), |id| (i64::from(id.domain.0), id.key.as_str()));
    let values: [Value<'_>; 3] = [&domain, &key, &ROWS_SCANNED];
    let rows = engine.read(OP, sql::EXPORT_OTHERS, &values).await?;
    let (mut ids, mut next) = (Vec::new(), "g".to_owned());
    for row in &rows {
        let id = link_id(OP, row)?;
        match column(OP, row, 2)? {
            true => next = format!("o{id}"),
            false => ids.push(id),
        }
    }
    part(in_order(engine, &ids).await?, Some(next))
}

/// Generations of keys that no row has; those of others are beside their rows.
async fn former(engine: &Engine, after: Option<LinkId>) -> PortResult<TransferPart<LinkItem>> {
    let (shard, domain, key) = match &after {
        Some(id) => (
            crate::links::record::shard_of(id),
            i64::from(id.domain.0),
            id.key.as_str(),
        ),
        None => (-1, -1, ""),
    };
    let values: [Value<'_>; 4] = [&shard, &domain, &key, &LIMIT];
    let rows = engine.read(OP, sql::EXPORT_FORMER, &values).await?;
    let ids = ids_of(&rows)?;
    let last = ids.last().filter(|_| rows.len() == ROWS_AT_ONCE);
    let next = last.map_or("r".to_owned(), |id| format!("g{id}"));
    let mut items = in_order(engine, &ids).await?;
    items.retain(|item| matches!(&item.item, ShardItem::Link { stored: None, .. }));
    part(items, Some(next))
}

async fn requests(
    engine: &Engine,
    after: Option<(i64, Box<str>)>,
) -> PortResult<TransferPart<LinkItem>> {
    let (owner, name) = match &after {
        Some((owner, name)) => (*owner, &**name),
        None => (i64::MIN, ""),
    };
    let values: [Value<'_>; 3] = [&owner, &name, &LIMIT];
    let rows = engine.read(OP, SCAN_REQUESTS, &values).await?;
    let mut names: Vec<(OwnerId, Box<str>)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let owner = OwnerId(column::<i64>(OP, row, 0)?.cast_unsigned());
        names.push((owner, column::<&str>(OP, row, 1)?.into()));
    }
    let last = names.last().filter(|_| rows.len() == ROWS_AT_ONCE);
    let next = last.map(|(owner, name)| format!("r{}:{name}", owner.0.cast_signed()));
    let found = requests_of(engine, OP, &names).await?;
    // One that was forgotten meanwhile is nothing.
    let found = found
        .into_iter()
        .filter(|item| !matches!(item, ShardItem::Request { record: None, .. }));
    let mut items: Vec<LinkItem> = found.filter_map(LinkItem::new).collect();
    if next.is_none() {
        items.extend(released(engine, OP).await?);
    }
    part(items, next)
}

pub(super) async fn released(engine: &Engine, op: &'static str) -> PortResult<Vec<LinkItem>> {
    let rows = engine.read(op, sql::RELEASED, &[]).await?;
    let released = |row: &Row| {
        let shard = ShardId::new(column::<i16>(op, row, 0)?.cast_unsigned());
        Ok(LinkItem {
            shard: shard.ok_or_else(|| corrupt(op, "a shard"))?,
            item: ShardItem::Released {
                origin: number(op, row, 1, KeyOrigin::from_stored)?,
                count: column::<i64>(op, row, 2)?.cast_unsigned(),
            },
        })
    };
    rows.iter().map(released).collect()
}

fn ids_of(rows: &[Row]) -> PortResult<Vec<LinkId>> {
    rows.iter().map(|row| link_id(OP, row)).collect()
}

/// What is stored under these ids, in their order. A row that went meanwhile is left out.
async fn in_order(engine: &Engine, ids: &[LinkId]) -> PortResult<Vec<LinkItem>> {
    let mut found = HashMap::with_capacity(ids.len());
    for item in items_of(engine, OP, ids).await? {
        if let ShardItem::Link { id, .. } = &item {
            found.insert(id.clone(), item);
        }
    }
    let items = ids.iter().filter_map(|id| found.remove(id));
    Ok(items.filter_map(LinkItem::new).collect())
}

fn part(items: Vec<LinkItem>, next: Option<String>) -> PortResult<TransferPart<LinkItem>> {
    let next = next.map(String::into_boxed_str);
    Ok(TransferPart { items, next })
}
