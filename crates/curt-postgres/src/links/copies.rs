//! Copies of shards that move: what [`LinkShards`](curt_core::ports::LinkShards) says about moves.
//!
//! Nothing of it costs anything while no shard moves. Changes are remembered by triggers that are
//! switched on for the move. Rows
//! have no index by shard, which every create would pay for: an export reads the table in the order of its primary key,
//! some thousand rows at a time, and takes those of the shard.

use std::collections::HashSet;

use curt_core::ports::{ChangedItems, LinkCounts, ShardItem, ShardPart, StoredRow};
use curt_core::{
    DomainId, Epoch, KeyOrigin, Link, LinkId, LinkState, OwnerId, PortError, PortResult, ShardId,
};
use tokio_postgres::Row;

use super::idempotency::record_of;
use super::record::{Columns, id_columns, link_of};
use super::sql;
use crate::decode::{corrupt, link_id, number, parse_key, small};
use crate::engine::{Engine, Step, Value, column};
use crate::failure::BACKEND;

/// Rows that one export, or one part of a removal, looks at.
const ROWS_SCANNED: i64 = 10_000;
/// Changes, generations and requests that are read at once.
const CHANGES_AT_ONCE: i64 = 1_000;
const CHANGES_AT_ONCE_ROWS: usize = 1_000;
const OP_EXPORT: &str = "export a shard";
const OP_IMPORT: &str = "import a shard";
const OP_TRACK: &str = "track changes of a shard";

/// Where an export goes on.
enum Position {
    Links(Option<LinkId>),
    Generations(Option<LinkId>),
    Requests(Option<(OwnerId, Box<str>)>),
}

impl Position {
    fn read(text: Option<&str>) -> PortResult<Self> {
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
        found.ok_or_else(|| super::invalid(OP_EXPORT, "the position is not one of an export"))
    }
}

fn shard_number(shard: ShardId) -> i16 {
    shard.number().cast_signed()
}

fn stale(op: &'static str) -> PortError {
    let mut refused = PortError::stale_epoch(BACKEND, op);
    refused.detail = "another mover has taken over, or the shard has another state".to_owned();
    refused
}

/// Switches the triggers on, which waits for writes that have begun.
pub(super) async fn track(engine: &Engine, shard: ShardId, fence: u64) -> PortResult<()> {
    let values: [Value<'_>; 2] = [&shard_number(shard), &fence.cast_signed()];
    let noted = engine.write(OP_TRACK, sql::TRACK, &values).await?;
    if noted.is_empty() {
        return Err(stale(OP_TRACK));
    }
    engine.batch(OP_TRACK, sql::ENABLE_TRACKING).await
}

pub(super) async fn stop_tracking(engine: &Engine, shard: ShardId, fence: u64) -> PortResult<()> {
    let values: [Value<'_>; 2] = [&shard_number(shard), &fence.cast_signed()];
    let noted = engine.write(OP_TRACK, sql::STOP_TRACKING, &values).await?;
    let flag = |index| {
        noted
            .first()
            .map_or(Ok(false), |row| column(OP_TRACK, row, index))
    };
    if flag(0)? {
        return Err(stale(OP_TRACK));
    }
    match flag(1)? {
        // Another shard of this node moves.
        true => Ok(()),
        false => engine.batch(OP_TRACK, sql::DISABLE_TRACKING).await,
    }
}

pub(super) async fn export(
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

/// The ids of a shard's rows among the next ones of the table, and the last id that was looked at, if there may be more.
async fn scan(
    engine: &Engine,
    op: &'static str,
    shard: ShardId,
    after: Option<&LinkId>,
) -> PortResult<(Vec<LinkId>, Option<LinkId>)> {
    let (domain, key) = after.map_or((-1, ""), |id| (i64::from(id.domain.0), id.key.as_str()));
    let values: [Value<'_>; 4] = [&shard_number(shard), &domain, &key, &ROWS_SCANNED];
    let rows = engine.read(op, sql::SCAN_SHARD, &values).await?;
    let (mut ids, mut last) = (Vec::new(), None);
    for row in &rows {
        match column(op, row, 2)? {
            true => last = Some(link_id(op, row)?),
            false => ids.push(link_id(op, row)?),
        }
    }
    Ok((ids, last))
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
async fn items_of(engine: &Engine, op: &'static str, ids: &[LinkId]) -> PortResult<Vec<ShardItem>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (domains, keys) = id_columns(ids);
    let shards: Vec<i16> = ids.iter().map(super::record::shard_of).collect();
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
                token: token.transpose()?.map(curt_core::ports::RequestToken),
            }))
        }
    };
    Ok(ShardItem::Link {
        id,
        stored,
        former_generation: former.map(|former| small(op, former)).transpose()?,
    })
}

async fn requests_of(
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

async fn released_of(
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

pub(super) async fn changes(engine: &Engine, shard: ShardId) -> PortResult<ChangedItems> {
    const OP: &str = "read changes of a shard";
    let rows = engine.read(OP, sql::CHANGES, &[&CHANGES_AT_ONCE]).await?;
    let mut changed = ChangedItems {
        is_end: rows.len() < CHANGES_AT_ONCE_ROWS,
        ..ChangedItems::default()
    };
    let (mut ids, mut requests) = (HashSet::new(), HashSet::new());
    for row in &rows {
        changed.numbers.push(column(OP, row, 0)?);
        let (holder, name): (i64, &str) = (column(OP, row, 1)?, column(OP, row, 3)?);
        if column(OP, row, 2)? {
            let id = LinkId::new(DomainId(small(OP, holder)?), parse_key(OP, name)?);
            ids.insert(id);
        } else {
            requests.insert((OwnerId(holder.cast_unsigned()), Box::<str>::from(name)));
        }
    }
    // Clicks and requests are remembered of all shards.
    ids.retain(|id| ShardId::of(id) == shard);
    requests.retain(|(owner, name)| ShardId::of_request(*owner, name) == shard);
    let (ids, requests): (Vec<_>, Vec<_>) =
        (ids.into_iter().collect(), requests.into_iter().collect());
    changed.items = items_of(engine, OP, &ids).await?;
    changed
        .items
        .extend(requests_of(engine, OP, &requests).await?);
    changed.items.extend(released_of(engine, OP, shard).await?);
    Ok(changed)
}

pub(super) async fn forget_changes(engine: &Engine, changes: &ChangedItems) -> PortResult<()> {
    let values: [Value<'_>; 1] = [&changes.numbers];
    let forgotten = engine.write("forget changes of a shard", sql::FORGET_CHANGES, &values);
    forgotten.await.map(drop)
}

/// What the totals hold of a shard, some thousand rows at a time.
pub(super) async fn shard_counts(engine: &Engine, shard: ShardId) -> PortResult<LinkCounts> {
    const OP: &str = "count links";
    let mut counts = LinkCounts::default();
    let mut after: Option<LinkId> = None;
    loop {
        let (domain, key) = match &after {
            Some(id) => (i64::from(id.domain.0), id.key.as_str()),
            None => (-1, ""),
        };
        let values: [Value<'_>; 4] = [&shard_number(shard), &domain, &key, &ROWS_SCANNED];
        for row in engine.read(OP, sql::COUNT_SHARD, &values).await? {
            let origin = number(OP, &row, 0, KeyOrigin::from_stored)?;
            let state = number(OP, &row, 1, LinkState::from_stored)?;
            add_rows(
                &mut counts,
                origin,
                state,
                column::<i64>(OP, &row, 2)?.cast_unsigned(),
            );
        }
        let last = engine.read(OP, sql::LAST_SCANNED, &values[1..]).await?;
        match last.first() {
            Some(row) => after = Some(link_id(OP, row)?),
            None => break,
        }
    }
    for item in released_of(engine, OP, shard).await? {
        if let ShardItem::Released { origin, count } = item {
            counts.created.push((origin, count));
            if origin == KeyOrigin::Ledger {
                counts.released_from_ledger += count;
            }
        }
    }
    let created = KeyOrigin::ALL.map(|origin| (origin, counts.created_from(origin)));
    counts.created = created
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    Ok(counts)
}

fn add_rows(counts: &mut LinkCounts, origin: KeyOrigin, state: LinkState, rows: u64) {
    match state {
        LinkState::Active | LinkState::Disabled => counts.live += rows,
        LinkState::Seeded => counts.seeded += rows,
        LinkState::Tombstone | LinkState::Deleted | LinkState::DeletedDisabled => {
            counts.deleted += rows;
            if origin == KeyOrigin::Ledger {
                counts.deleted_from_ledger += rows;
            }
        }
    }
    if state != LinkState::Seeded {
        counts.created.push((origin, rows));
    }
}

pub(super) async fn begin_import(
    engine: &Engine,
    shard: ShardId,
    fence: u64,
    epoch: Epoch,
) -> PortResult<()> {
    let (number, fence, epoch) = (
        shard_number(shard),
        fence.cast_signed(),
        epoch.0.cast_signed(),
    );
    let values: [Value<'_>; 3] = [&number, &fence, &epoch];
    let begun = engine.write(OP_IMPORT, sql::BEGIN_IMPORT, &values).await?;
    match begun.is_empty() {
        true => Err(stale(OP_IMPORT)),
        false => Ok(()),
    }
}

/// The items of an import by column.
#[derive(Default)]
struct Items<'a> {
    ids: Vec<&'a LinkId>,
    rows: Vec<&'a StoredRow>,
    former: Vec<(&'a LinkId, u32)>,
    requests: Vec<(i64, &'a str)>,
    records: Vec<(i64, &'a str, &'a curt_core::ports::IdempotencyRecord)>,
    released: Vec<(i16, i64)>,
}

impl<'a> Items<'a> {
    fn of(items: &'a [ShardItem]) -> Self {
        let mut sorted = Self::default();
        for item in items {
            match item {
                ShardItem::Link {
                    id,
                    stored,
                    former_generation,
                } => {
                    sorted.ids.push(id);
                    sorted.rows.extend(stored.as_deref());
                    sorted
                        .former
                        .extend(former_generation.map(|former| (id, former)));
                }
                ShardItem::Request { owner, key, record } => {
                    let owner = owner.0.cast_signed();
                    sorted.requests.push((owner, key));
                    sorted
                        .records
                        .extend(record.as_deref().map(|record| (owner, &**key, record)));
                }
                ShardItem::Released { origin, count } => {
                    sorted.released.push((*origin as i16, count.cast_signed()));
                }
            }
        }
        sorted
    }
}

pub(super) async fn import(
    engine: &Engine,
    shard: ShardId,
    fence: u64,
    items: &[ShardItem],
) -> PortResult<()> {
    let items = Items::of(items);
    let (number, fence) = (shard_number(shard), fence.cast_signed());
    let guard: [Value<'_>; 2] = [&number, &fence];
    let (domains, keys) = id_columns(items.ids.iter().copied());
    let remove: [Value<'_>; 4] = [&number, &fence, &domains, &keys];
    let links: Vec<&Link> = items.rows.iter().map(|row| &row.link).collect();
    let columns = Columns::of(items.rows.iter().map(|row| (&row.link, row.token)));
    let permanent: Vec<bool> = items.rows.iter().map(|row| row.was_permanent).collect();
    let mut put = columns.values();
    put.extend([&number as Value<'_>, &fence, &permanent]);
    let (spent_domains, spent_keys) = id_columns(links.iter().map(|link| &link.id));
    let spent: Vec<i64> = items
        .rows
        .iter()
        .map(|row| row.clicks_spent.cast_signed())
        .collect();
    let spend: [Value<'_>; 5] = [&number, &fence, &spent_domains, &spent_keys, &spent];
    let (former_domains, former_keys) = id_columns(items.former.iter().map(|(id, _)| *id));
    let generations: Vec<i64> = items
        .former
        .iter()
        .map(|(_, former)| (*former).into())
        .collect();
    let former: [Value<'_>; 5] = [&number, &fence, &former_domains, &former_keys, &generations];
    let (owners, names): (Vec<i64>, Vec<&str>) = items.requests.iter().copied().unzip();
    let forget: [Value<'_>; 4] = [&number, &fence, &owners, &names];
    let records = RecordColumns::of(&items.records);
    let mut record = records.values();
    record.extend([&number as Value<'_>, &fence]);
    let (origins, counts): (Vec<i16>, Vec<i64>) = items.released.iter().copied().unzip();
    let released: [Value<'_>; 4] = [&number, &fence, &origins, &counts];
    let steps: [(&str, &[Value<'_>]); 10] = [
        (sql::GUARD_IMPORT, &guard),
        (sql::IMPORT_UNTAG, &remove),
        (sql::IMPORT_REMOVE, &remove),
        (sql::IMPORT_LINKS, &put),
        (sql::IMPORT_SPENT, &spend),
        (sql::IMPORT_FORGET_FORMER, &remove),
        (sql::IMPORT_FORMER, &former),
        (sql::IMPORT_FORGET_REQUESTS, &forget),
        (sql::IMPORT_REQUESTS, &record),
        (sql::IMPORT_RELEASED, &released),
    ];
    let steps = steps.map(|(sql, values)| Step { sql, values });
    let answers = engine.transact(OP_IMPORT, &steps).await?;
    match answers.first().is_some_and(|guard| !guard.is_empty()) {
        true => Ok(()),
        false => Err(stale(OP_IMPORT)),
    }
}

/// Records of requests by column.
#[derive(Default)]
struct RecordColumns<'a> {
    owner: Vec<i64>,
    name: Vec<&'a str>,
    fingerprint: Vec<&'a [u8]>,
    token: Vec<&'a [u8]>,
    version: Vec<i64>,
    created_at: Vec<i64>,
    plan: Vec<String>,
    outcome: Vec<Option<String>>,
}

impl<'a> RecordColumns<'a> {
    fn of(records: &[(i64, &'a str, &'a curt_core::ports::IdempotencyRecord)]) -> Self {
        let mut columns = Self::default();
        for (owner, name, record) in records {
            columns.owner.push(*owner);
            columns.name.push(name);
            columns.fingerprint.push(&record.fingerprint);
            columns.token.push(&record.plan.token.0);
            columns.version.push(record.plan.version.into());
            columns.created_at.push(record.plan.at.0);
            columns.plan.push(record.plan.keys_to_text());
            let outcome = record.outcome.as_ref().map(|outcome| outcome.ids_to_text());
            columns.outcome.push(outcome);
        }
        columns
    }

    fn values(&self) -> Vec<Value<'_>> {
        vec![
            &self.owner,
            &self.name,
            &self.fingerprint,
            &self.token,
            &self.version,
            &self.created_at,
            &self.plan,
            &self.outcome,
        ]
    }
}

/// The change of totals, one column after the other, as they are added to a row of them.
fn total_values(counts: &LinkCounts, sign: i64) -> Vec<i64> {
    let created = KeyOrigin::ALL.map(|origin| counts.created_from(origin));
    let rest = [
        counts.live,
        counts.deleted,
        counts.deleted_from_ledger,
        counts.seeded,
    ];
    let all = created.into_iter().chain(rest);
    all.map(|count| count.cast_signed() * sign).collect()
}

/// States of a shard, as they are stored.
const COPYING: i16 = 1;
const OWN: i16 = 2;
const RETIRED: i16 = 3;
const DISCOUNTED: i16 = 4;

pub(super) async fn adopt(
    engine: &Engine,
    shard: ShardId,
    fence: u64,
    counts: &LinkCounts,
) -> PortResult<()> {
    let (number, fence) = (shard_number(shard), fence.cast_signed());
    let totals = total_values(counts, 1);
    let values: [Value<'_>; 5] = [&number, &fence, &totals, &COPYING, &OWN];
    require_done(engine, "adopt a shard", sql::SETTLE, &values).await
}

pub(super) async fn discount(
    engine: &Engine,
    shard: ShardId,
    fence: u64,
    counts: &LinkCounts,
) -> PortResult<()> {
    let (number, fence) = (shard_number(shard), fence.cast_signed());
    let totals = total_values(counts, -1);
    let values: [Value<'_>; 5] = [&number, &fence, &totals, &RETIRED, &DISCOUNTED];
    require_done(engine, "discount a shard", sql::SETTLE, &values).await
}

pub(super) async fn retire(
    engine: &Engine,
    shard: ShardId,
    fence: u64,
    epoch: Epoch,
) -> PortResult<()> {
    let (number, fence, epoch) = (
        shard_number(shard),
        fence.cast_signed(),
        epoch.0.cast_signed(),
    );
    let values: [Value<'_>; 3] = [&number, &fence, &epoch];
    require_done(engine, "retire a shard", sql::RETIRE, &values).await
}

/// Runs a statement that says whether the shard is in the state that it leads to.
async fn require_done(
    engine: &Engine,
    op: &'static str,
    sql: &'static str,
    values: &[Value<'_>],
) -> PortResult<()> {
    let rows = engine.write(op, sql, values).await?;
    match rows.first().map_or(Ok(false), |row| column(op, row, 0))? {
        true => Ok(()),
        false => Err(stale(op)),
    }
}

pub(super) async fn drop_copy(
    engine: &Engine,
    shard: ShardId,
    fence: u64,
    after: Option<&str>,
) -> PortResult<Option<Box<str>>> {
    const OP: &str = "drop a copy of a shard";
    let Position::Links(after) = Position::read(after)? else {
        return Err(super::invalid(OP, "the position is not one of a removal"));
    };
    let (ids, last) = scan(engine, OP, shard, after.as_ref()).await?;
    let (number, fence) = (shard_number(shard), fence.cast_signed());
    let guard: [Value<'_>; 2] = [&number, &fence];
    let (domains, keys) = id_columns(&ids);
    let remove: [Value<'_>; 4] = [&number, &fence, &domains, &keys];
    let mut steps = vec![
        (sql::GUARD_DROP, &guard[..]),
        (sql::DROP_TAGS, &remove),
        (sql::DROP_LINKS, &remove),
    ];
    let names = match last.is_none() {
        // With the last rows goes what is kept beside them.
        true => request_names(engine, OP, shard).await?,
        false => Vec::new(),
    };
    let owners: Vec<i64> = names
        .iter()
        .map(|(owner, _)| owner.0.cast_signed())
        .collect();
    let texts: Vec<&str> = names.iter().map(|(_, name)| &**name).collect();
    let forget: [Value<'_>; 4] = [&number, &fence, &owners, &texts];
    if last.is_none() {
        steps.extend([
            (sql::DROP_FORMER, &guard[..]),
            (sql::DROP_RELEASED, &guard),
            (sql::DROP_REQUESTS, &forget),
            (sql::DROPPED, &guard),
        ]);
    }
    let steps: Vec<_> = steps
        .into_iter()
        .map(|(sql, values)| Step { sql, values })
        .collect();
    let answers = engine.transact(OP, &steps).await?;
    if answers.first().is_none_or(Vec::is_empty) {
        return Err(stale(OP));
    }
    Ok(last.map(|id| format!("l{id}").into()))
}

/// Every request of the shard; there is a day's worth of them at most.
async fn request_names(
    engine: &Engine,
    op: &'static str,
    shard: ShardId,
) -> PortResult<Vec<(OwnerId, Box<str>)>> {
    let mut names = Vec::new();
    let mut after: (i64, Box<str>) = (i64::MIN, "".into());
    loop {
        let (owner, name) = (after.0, &*after.1);
        let values: [Value<'_>; 3] = [&owner, &name, &CHANGES_AT_ONCE];
        let rows = engine.read(op, sql::SCAN_REQUESTS, &values).await?;
        for row in &rows {
            let (owner, name): (i64, &str) = (column(op, row, 0)?, column(op, row, 1)?);
            after = (owner, name.into());
            let owner = OwnerId(owner.cast_unsigned());
            if ShardId::of_request(owner, name) == shard {
                names.push((owner, name.into()));
            }
        }
        if rows.len() < CHANGES_AT_ONCE_ROWS {
            return Ok(names);
        }
    }
}
