//! Edits, tombstones and what becomes of them.

use curt_core::ports::{ChangeReply, Released};
use curt_core::{Link, LinkId, PortResult, Revision, UnixMillis};

use super::record::{link_of, revision_of, status};
use super::sql;
use crate::decode::{link_id, rows_max, small};
use crate::engine::{Engine, Value, column};

pub(super) async fn update(
    engine: &Engine,
    op: &'static str,
    link: &Link,
    seen: Revision,
) -> PortResult<ChangeReply> {
    let tags: Option<Vec<&str>> =
        (!link.tags.is_empty()).then(|| link.tags.iter().map(|tag| &**tag).collect());
    let values: [Value<'_>; 18] = [
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
    ];
    let rows = engine.write(op, sql::UPDATE, &values).await?;
    match rows.first() {
        Some(row) => Ok(ChangeReply::Changed(Box::new(link_of(op, row)?))),
        None => refusal(engine, op, &link.id).await,
    }
}

pub(super) async fn delete(
    engine: &Engine,
    op: &'static str,
    id: &LinkId,
    seen: Option<Revision>,
    now: UnixMillis,
) -> PortResult<ChangeReply> {
    let values: [Value<'_>; 5] = [
        &now.0,
        &i64::from(id.domain.0),
        &id.key.as_str(),
        &seen.map(|seen| i64::from(seen.generation)),
        &seen.map(|seen| i64::from(seen.version)),
    ];
    let rows = engine.write(op, sql::DELETE, &values).await?;
    match rows.first() {
        Some(row) => Ok(ChangeReply::Changed(Box::new(link_of(op, row)?))),
        None => refusal(engine, op, id).await,
    }
}

/// Why a change found no link at the revision that it was for.
async fn refusal(engine: &Engine, op: &'static str, id: &LinkId) -> PortResult<ChangeReply> {
    let values: [Value<'_>; 2] = [&i64::from(id.domain.0), &id.key.as_str()];
    let rows = engine.read_latest(op, sql::REVISION, &values).await?;
    match rows.first() {
        Some(row) => Ok(ChangeReply::Stale(revision_of(op, row, 0)?)),
        None => Ok(ChangeReply::Absent),
    }
}

pub(super) async fn expired(
    engine: &Engine,
    now: UnixMillis,
    limit: usize,
) -> PortResult<Vec<(LinkId, Revision)>> {
    const OP: &str = "find expired links";
    let rows = engine
        .read(OP, sql::EXPIRED, &[&now.0, &rows_max(limit)])
        .await?;
    rows.iter()
        .map(|row| Ok((link_id(OP, row)?, revision_of(OP, row, 2)?)))
        .collect()
}

pub(super) async fn purge(
    engine: &Engine,
    op: &'static str,
    batch: &[(LinkId, Revision)],
    now: UnixMillis,
) -> PortResult<Vec<LinkId>> {
    // Everybody locks in the order of ids, and nobody waits in a circle.
    let mut batch: Vec<&(LinkId, Revision)> = batch.iter().collect();
    batch.sort_unstable();
    let column = |of: fn(&(LinkId, Revision)) -> i64| -> Vec<i64> {
        batch.iter().map(|item| of(item)).collect()
    };
    let keys: Vec<&str> = batch.iter().map(|(id, _)| id.key.as_str()).collect();
    let values: [Value<'_>; 5] = [
        &now.0,
        &column(|(id, _)| id.domain.0.into()),
        &keys,
        &column(|(_, seen)| seen.generation.into()),
        &column(|(_, seen)| seen.version.into()),
    ];
    let rows = engine.write(op, sql::PURGE, &values).await?;
    rows.iter().map(|row| link_id(op, row)).collect()
}

pub(super) async fn release(
    engine: &Engine,
    before: UnixMillis,
    limit: usize,
) -> PortResult<Vec<Released>> {
    const OP: &str = "release keys";
    let values: [Value<'_>; 2] = [&before.0, &rows_max(limit)];
    engine.write(OP, sql::REMEMBER_GENERATIONS, &values).await?;
    let rows = engine.write(OP, sql::RELEASE, &values).await?;
    rows.iter()
        .map(|row| {
            Ok(Released {
                id: link_id(OP, row)?,
                generation: small(OP, column(OP, row, 2)?)?,
            })
        })
        .collect()
}
