//! A shard that has another owner: totals, and what is left.

use curt_core::ports::{LinkCounts, ShardItem};
use curt_core::{Epoch, KeyOrigin, LinkId, LinkState, OwnerId, PortResult, ShardId};

use super::export::{Position, released_of};
use super::{
    CHANGES_AT_ONCE, CHANGES_AT_ONCE_ROWS, ROWS_SCANNED, scan, shard_number, stale,
    transact_guarded,
};
use crate::decode::{link_id, number};
use crate::engine::{Engine, Value, column};
use crate::links::record::id_columns;
use crate::links::{invalid, sql};

/// What the totals hold of a shard, some thousand rows at a time.
pub(in crate::links) async fn shard_counts(
    engine: &Engine,
    shard: ShardId,
) -> PortResult<LinkCounts> {
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

pub(in crate::links) async fn adopt(
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

pub(in crate::links) async fn discount(
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

pub(in crate::links) async fn retire(
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

pub(in crate::links) async fn drop_copy(
    engine: &Engine,
    shard: ShardId,
    fence: u64,
    after: Option<&str>,
) -> PortResult<Option<Box<str>>> {
    const OP: &str = "drop a copy of a shard";
    let Position::Links(after) = Position::read(after)? else {
        return Err(invalid(OP, "the position is not one of a removal"));
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
    transact_guarded(engine, OP, &steps).await?;
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
