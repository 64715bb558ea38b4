//! Edits, tombstones and what becomes of them.

use curt_core::ports::{ChangeReply, LinkChange};
use curt_core::{Link, LinkId, OwnerId, PortError, PortResult, Revision, ShardMap, UnixMillis};

use super::record::{change_of, epoch_of, epochs, revision_of, shard_of, status};
use super::sql;
use crate::decode::{link_id, rows_max};
use crate::engine::{Engine, Value, column};
use crate::failure::BACKEND;

pub(super) async fn update(
    engine: &Engine,
    op: &'static str,
    link: &Link,
    (seen, epoch): (Revision, i64),
) -> PortResult<ChangeReply> {
    let tags: Option<Vec<&str>> =
        (!link.tags.is_empty()).then(|| link.tags.iter().map(|tag| &**tag).collect());
    let values: [Value<'_>; 19] = [
        &i64::from(link.id.domain.0),
        &link.id.key.as_str(),
        &i64::from(seen.generation),
        &i64::from(seen.version),
        &i64::from(seen.edited().version),
        &link.target.as_str(),
        &(link.state as i16),
        &link.updated_at.0,
        &link.expires_at.map(|at| at.0),
        &link.valid_since.map(|at| at.0),
        &link.max_clicks.map(u64::cast_signed),
        &(link.visibility as i16),
        &link.password_hash.as_deref(),
        &status(link),
        &link.status.is_permanent(),
        &link.forward_query,
        &link.title.as_deref(),
        &tags,
        &epoch,
    ];
    let rows = engine.write(op, sql::UPDATE, &values).await?;
    match rows.first() {
        Some(_) => Ok(ChangeReply::Changed(LinkChange {
            id: link.id.clone(),
            revision: seen.edited(),
        })),
        None => refusal(engine, op, &link.id, epoch).await,
    }
}

/// Gives a link to another owner.
pub(super) async fn hand_over(
    engine: &Engine,
    map: &ShardMap,
    id: &LinkId,
    seen: Revision,
    (owner, now): (OwnerId, UnixMillis),
) -> PortResult<ChangeReply> {
    const OP: &str = "hand over a link";
    let (epoch, revision) = (epoch_of(map, id), seen.edited());
    let values: [Value<'_>; 8] = [
        &i64::from(id.domain.0),
        &id.key.as_str(),
        &i64::from(seen.generation),
        &i64::from(seen.version),
        &i64::from(revision.version),
        &owner.0.cast_signed(),
        &now.0,
        &epoch,
    ];
    let rows = engine.write(OP, sql::HAND_OVER, &values).await?;
    match rows.first() {
        Some(_) => Ok(ChangeReply::Changed(LinkChange {
            id: id.clone(),
            revision,
        })),
        None => refusal(engine, OP, id, epoch).await,
    }
}

pub(super) async fn delete(
    engine: &Engine,
    map: &ShardMap,
    id: &LinkId,
    seen: Revision,
    now: UnixMillis,
) -> PortResult<ChangeReply> {
    const OP: &str = "delete a link";
    let changes = to_tombstones(engine, OP, map, &[(id.clone(), seen)], (now, None)).await?;
    match changes.into_iter().next() {
        Some(change) => Ok(ChangeReply::Changed(change)),
        None => refusal(engine, OP, id, epoch_of(map, id)).await,
    }
}

/// Why a change that was routed at `epoch` found no link at the revision that it was for.
pub(super) async fn refusal(
    engine: &Engine,
    op: &'static str,
    id: &LinkId,
    epoch: i64,
) -> PortResult<ChangeReply> {
    let (domain, key) = (i64::from(id.domain.0), id.key.as_str());
    let values: [Value<'_>; 4] = [&domain, &key, &shard_of(id), &epoch];
    let rows = engine.read_latest(op, sql::REVISION, &values).await?;
    match rows.first() {
        // Asked first: a former owner may have given its links away.
        Some(row) if column(op, row, 2)? => Err(PortError::stale_epoch(BACKEND, op)),
        Some(row) if column::<Option<i64>>(op, row, 0)?.is_some() => {
            Ok(ChangeReply::Stale(revision_of(op, row, 0)?))
        }
        _ => Ok(ChangeReply::Absent),
    }
}

pub(super) async fn ended(
    engine: &Engine,
    before: UnixMillis,
    limit: usize,
) -> PortResult<Vec<(LinkId, Revision)>> {
    const OP: &str = "find ended links";
    let rows = engine
        .read(OP, sql::ENDED, &[&before.0, &rows_max(limit)])
        .await?;
    rows.iter()
        .map(|row| Ok((link_id(OP, row)?, revision_of(OP, row, 2)?)))
        .collect()
}

/// Turns links that are still at these revisions into tombstones; with `ended_before`, only those that expired or were
/// deleted at or before it. Passes over links that have another owner.
pub(super) async fn to_tombstones(
    engine: &Engine,
    op: &'static str,
    map: &ShardMap,
    batch: &[(LinkId, Revision)],
    (now, ended_before): (UnixMillis, Option<UnixMillis>),
) -> PortResult<Vec<LinkChange>> {
    // Everybody locks in the order of ids, and nobody waits in a circle.
    let mut batch: Vec<&(LinkId, Revision)> = batch.iter().collect();
    batch.sort_unstable();
    let column = |of: fn(&(LinkId, Revision)) -> i64| -> Vec<i64> {
        batch.iter().map(|item| of(item)).collect()
    };
    let keys: Vec<&str> = batch.iter().map(|(id, _)| id.key.as_str()).collect();
    let epochs: Vec<i64> = batch.iter().map(|(id, _)| epoch_of(map, id)).collect();
    let values: [Value<'_>; 7] = [
        &now.0,
        &column(|(id, _)| id.domain.0.into()),
        &keys,
        &column(|(_, seen)| seen.generation.into()),
        &column(|(_, seen)| seen.version.into()),
        &ended_before.map(|at| at.0),
        &epochs,
    ];
    let rows = engine.write(op, sql::TOMBSTONE, &values).await?;
    rows.iter().map(|row| change_of(op, row)).collect()
}

pub(super) async fn release(
    engine: &Engine,
    map: &ShardMap,
    before: UnixMillis,
    limit: usize,
) -> PortResult<Vec<LinkChange>> {
    const OP: &str = "release keys";
    let values: [Value<'_>; 3] = [&before.0, &rows_max(limit), &epochs(map)];
    engine.write(OP, sql::REMEMBER_GENERATIONS, &values).await?;
    let rows = engine.write(OP, sql::RELEASE, &values).await?;
    rows.iter().map(|row| change_of(OP, row)).collect()
}
