//! Edits, tombstones and what becomes of them, one row at a time.

use curt_core::ports::{ChangeReply, LinkChange, SpendReply};
use curt_core::{Link, LinkId, OwnerId, PortResult, Revision, UnixMillis};
use futures_util::StreamExt as _;
use futures_util::stream;

use super::insert::tags_lower;
use super::sql;
use crate::decode::{link_id, rows_max};
use crate::engine::{Engine, Value, column};
use crate::links::record::{change_of, revision_of, status};

const OP_RELEASE: &str = "release keys";
/// Rows that are changed at the same time.
const AT_ONCE: usize = 4;

pub(super) async fn update(
    engine: &Engine,
    op: &'static str,
    link: &Link,
    seen: Revision,
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
        &tags_lower(link),
    ];
    let rows = engine.write(op, sql::UPDATE, &values).await?;
    reply(engine, op, &link.id, seen, !rows.is_empty()).await
}

pub(super) async fn hand_over(
    engine: &Engine,
    id: &LinkId,
    seen: Revision,
    (owner, now): (OwnerId, UnixMillis),
) -> PortResult<ChangeReply> {
    const OP: &str = "hand over a link";
    let values: [Value<'_>; 7] = [
        &i64::from(id.domain.0),
        &id.key.as_str(),
        &i64::from(seen.generation),
        &i64::from(seen.version),
        &i64::from(seen.edited().version),
        &owner.0.cast_signed(),
        &now.0,
    ];
    let rows = engine.write(OP, sql::HAND_OVER, &values).await?;
    reply(engine, OP, id, seen, !rows.is_empty()).await
}

async fn reply(
    engine: &Engine,
    op: &'static str,
    id: &LinkId,
    seen: Revision,
    is_changed: bool,
) -> PortResult<ChangeReply> {
    match is_changed {
        true => Ok(ChangeReply::Changed(LinkChange {
            id: id.clone(),
            revision: seen.edited(),
        })),
        false => refusal(engine, op, id).await,
    }
}

/// Why a change found no link at the revision that it was for.
pub(super) async fn refusal(
    engine: &Engine,
    op: &'static str,
    id: &LinkId,
) -> PortResult<ChangeReply> {
    let (domain, key) = (i64::from(id.domain.0), id.key.as_str());
    let rows = engine
        .read_latest(op, sql::REVISION, &[&domain, &key])
        .await?;
    match rows.first() {
        Some(row) => Ok(ChangeReply::Stale(revision_of(op, row, 0)?)),
        None => Ok(ChangeReply::Absent),
    }
}

/// With a time, only a link that expired or was deleted by then.
pub(super) async fn to_tombstone(
    engine: &Engine,
    op: &'static str,
    id: &LinkId,
    seen: Revision,
    (now, ended_before): (UnixMillis, Option<UnixMillis>),
) -> PortResult<Option<LinkChange>> {
    let values: [Value<'_>; 6] = [
        &i64::from(id.domain.0),
        &id.key.as_str(),
        &i64::from(seen.generation),
        &i64::from(seen.version),
        &now.0,
        &ended_before.map(|at| at.0),
    ];
    let rows = engine.write(op, sql::TOMBSTONE, &values).await?;
    rows.first().map(|row| change_of(op, row)).transpose()
}

pub(super) async fn purge(
    engine: &Engine,
    batch: &[(LinkId, Revision)],
    (now, before): (UnixMillis, UnixMillis),
) -> PortResult<Vec<LinkChange>> {
    const OP: &str = "purge links";
    let purge = |(id, seen): &(LinkId, Revision)| {
        let (id, seen) = (id.clone(), *seen);
        async move { to_tombstone(engine, OP, &id, seen, (now, Some(before))).await }
    };
    changed(
        stream::iter(batch.iter().map(purge))
            .buffered(AT_ONCE)
            .collect()
            .await,
    )
}

/// What was changed is told, whatever became of the rest: it comes up again.
fn changed(answers: Vec<PortResult<Option<LinkChange>>>) -> PortResult<Vec<LinkChange>> {
    let (mut changes, mut failure) = (Vec::new(), None);
    for answer in answers {
        match answer {
            Ok(change) => changes.extend(change),
            Err(error) => failure = Some(error),
        }
    }
    match (changes.is_empty(), failure) {
        (true, Some(failure)) => Err(failure),
        _ => Ok(changes),
    }
}

/// Others may release the same ones at the same time: each is told to one of them, and the rest is looked for again.
pub(super) async fn release(
    engine: &Engine,
    before: UnixMillis,
    limit: usize,
) -> PortResult<Vec<LinkChange>> {
    let mut released = Vec::new();
    while released.len() < limit {
        let due = releasable(engine, before, limit - released.len()).await;
        // Once keys are released they must be told.
        let due = match due {
            Err(error) if released.is_empty() => return Err(error),
            Ok(due) if !due.is_empty() => due,
            _ => break,
        };
        let tries = stream::iter(due).map(|due| release_one(engine, due));
        match changed(tries.buffered(AT_ONCE).collect().await) {
            Ok(changes) => released.extend(changes),
            Err(error) if released.is_empty() => return Err(error),
            Err(_) => break,
        }
    }
    Ok(released)
}

/// A tombstone whose quarantine has ended: id, generation and origin.
type Releasable = (LinkId, i64, i16);

async fn releasable(
    engine: &Engine,
    before: UnixMillis,
    limit: usize,
) -> PortResult<Vec<Releasable>> {
    let values: [Value<'_>; 2] = [&before.0, &rows_max(limit)];
    let rows = engine.read(OP_RELEASE, sql::RELEASABLE, &values).await?;
    let due = rows.iter().map(|row| {
        let (generation, origin) = (column(OP_RELEASE, row, 2)?, column(OP_RELEASE, row, 4)?);
        Ok((link_id(OP_RELEASE, row)?, generation, origin))
    });
    due.collect()
}

async fn release_one(
    engine: &Engine,
    (id, generation, origin): Releasable,
) -> PortResult<Option<LinkChange>> {
    let (domain, key) = (i64::from(id.domain.0), id.key.as_str());
    let former: [Value<'_>; 4] = [&domain, &key, &generation, &origin];
    engine.write(OP_RELEASE, sql::REMEMBER, &former).await?;
    let rows = engine.write(OP_RELEASE, sql::RELEASE, &former[..3]).await?;
    rows.first()
        .map(|row| change_of(OP_RELEASE, row))
        .transpose()
}

pub(super) async fn spend(engine: &Engine, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
    const OP: &str = "spend a click";
    let values: [Value<'_>; 4] = [
        &i64::from(id.domain.0),
        &id.key.as_str(),
        &i64::from(seen.generation),
        &i64::from(seen.version),
    ];
    if !engine.write(OP, sql::SPEND, &values).await?.is_empty() {
        return Ok(SpendReply::Granted);
    }
    let rows = engine.read_latest(OP, sql::IS_EXHAUSTED, &values).await?;
    let exhausted = rows.first().map_or(Ok(false), |row| column(OP, row, 0))?;
    Ok(match exhausted {
        true => SpendReply::Exhausted,
        false => SpendReply::Stale,
    })
}
