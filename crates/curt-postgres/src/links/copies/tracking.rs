//! What changes while a shard is copied.

use std::collections::HashSet;

use curt_core::ports::ChangedItems;
use curt_core::{DomainId, LinkId, OwnerId, PortResult, ShardId};

use super::export::{items_of, released_of, requests_of};
use super::{CHANGES_AT_ONCE, CHANGES_AT_ONCE_ROWS, shard_number, stale};
use crate::decode::{parse_key, small};
use crate::engine::{Engine, Value, column};
use crate::links::sql;

const OP_TRACK: &str = "track changes of a shard";

/// Switches the triggers on, which waits for writes that have begun.
pub(in crate::links) async fn track(engine: &Engine, shard: ShardId, fence: u64) -> PortResult<()> {
    let values: [Value<'_>; 2] = [&shard_number(shard), &fence.cast_signed()];
    let noted = engine.write(OP_TRACK, sql::TRACK, &values).await?;
    if noted.is_empty() {
        return Err(stale(OP_TRACK));
    }
    engine.run_script(OP_TRACK, sql::ENABLE_TRACKING).await
}

pub(in crate::links) async fn stop_tracking(
    engine: &Engine,
    shard: ShardId,
    fence: u64,
) -> PortResult<()> {
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
        false => engine.run_script(OP_TRACK, sql::DISABLE_TRACKING).await,
    }
}

/// What has changed, of any shard, and the numbers by which that is remembered.
#[derive(Default)]
pub(in crate::links) struct ChangedNames {
    pub(in crate::links) ids: HashSet<LinkId>,
    pub(in crate::links) requests: HashSet<(OwnerId, Box<str>)>,
    pub(in crate::links) numbers: Vec<i64>,
}

pub(in crate::links) async fn changed_names(
    engine: &Engine,
    op: &'static str,
    limit: i64,
) -> PortResult<ChangedNames> {
    let rows = engine.read(op, sql::CHANGES, &[&limit]).await?;
    let mut changed = ChangedNames::default();
    for row in &rows {
        changed.numbers.push(column(op, row, 0)?);
        let (holder, name): (i64, &str) = (column(op, row, 1)?, column(op, row, 3)?);
        if column(op, row, 2)? {
            let id = LinkId::new(DomainId(small(op, holder)?), parse_key(op, name)?);
            changed.ids.insert(id);
        } else {
            let owner = OwnerId(holder.cast_unsigned());
            changed.requests.insert((owner, name.into()));
        }
    }
    Ok(changed)
}

pub(in crate::links) async fn changes(engine: &Engine, shard: ShardId) -> PortResult<ChangedItems> {
    const OP: &str = "read changes of a shard";
    let ChangedNames {
        mut ids,
        mut requests,
        numbers,
    } = changed_names(engine, OP, CHANGES_AT_ONCE).await?;
    // Clicks and requests are remembered of all shards.
    ids.retain(|id| ShardId::of(id) == shard);
    requests.retain(|(owner, name)| ShardId::of_request(*owner, name) == shard);
    let (ids, requests) = (Vec::from_iter(ids), Vec::from_iter(requests));
    let mut items = items_of(engine, OP, &ids).await?;
    items.extend(requests_of(engine, OP, &requests).await?);
    items.extend(released_of(engine, OP, shard).await?);
    Ok(ChangedItems {
        items,
        is_end: numbers.len() < CHANGES_AT_ONCE_ROWS,
        numbers,
    })
}

pub(in crate::links) async fn forget_changes(
    engine: &Engine,
    changes: &ChangedItems,
) -> PortResult<()> {
    let values: [Value<'_>; 1] = [&changes.numbers];
    let forgotten = engine.write("forget changes of a shard", sql::FORGET_CHANGES, &values);
    forgotten.await.map(drop)
}
