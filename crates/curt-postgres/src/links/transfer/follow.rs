//! What changes while the database is copied.

use curt_core::ports::{FOLLOWER_MIN, FollowedChanges, LinkItem};
use curt_core::{PortError, PortResult};

use super::export::released;
use super::{LIMIT, ROWS_AT_ONCE, sql};
use crate::engine::{Engine, column};
use crate::failure::BACKEND;
use crate::links::copies::{ChangedNames, changed_names, items_of, requests_of};
use crate::links::sql::{DISABLE_TRACKING, ENABLE_TRACKING, FORGET_CHANGES};

const OP: &str = "follow changes";
/// Every shard is followed.
const SHARDS: i64 = 1_024;

/// Switches the triggers on, which waits for writes that have begun.
pub(super) async fn follow(engine: &Engine, follower: u64) -> PortResult<()> {
    let number = follower.cast_signed();
    engine.write(OP, sql::FOLLOW, &[&number]).await?;
    require_follower(engine, follower).await?;
    engine.run_script(OP, ENABLE_TRACKING).await
}

async fn require_follower(engine: &Engine, follower: u64) -> PortResult<()> {
    match find_follower(engine).await? == Some((follower, follower, SHARDS)) {
        true => Ok(()),
        false => Err(followed_by_another()),
    }
}

async fn find_follower(engine: &Engine) -> PortResult<Option<(u64, u64, i64)>> {
    let rows = engine.read(OP, sql::FOLLOWER, &[]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let fence = |index| column::<Option<i64>>(OP, row, index);
    let (Some(lowest), Some(highest)) = (fence(0)?, fence(1)?) else {
        return Ok(None);
    };
    let shards = column(OP, row, 2)?;
    Ok(Some((
        lowest.cast_unsigned(),
        highest.cast_unsigned(),
        shards,
    )))
}

fn followed_by_another() -> PortError {
    let mut refused = PortError::stale_epoch(BACKEND, OP);
    refused.detail = "another copy follows changes, or a shard moves".to_owned();
    refused
}

pub(super) async fn changes(engine: &Engine, follower: u64) -> PortResult<FollowedChanges> {
    require_follower(engine, follower).await?;
    let ChangedNames {
        ids,
        requests,
        numbers,
    } = changed_names(engine, OP, LIMIT).await?;
    let (ids, requests) = (Vec::from_iter(ids), Vec::from_iter(requests));
    let mut items = items_of(engine, OP, &ids).await?;
    items.extend(requests_of(engine, OP, &requests).await?);
    let mut items: Vec<LinkItem> = items.into_iter().filter_map(LinkItem::new).collect();
    items.extend(released(engine, OP).await?);
    Ok(FollowedChanges {
        items,
        is_end: numbers.len() < ROWS_AT_ONCE,
        numbers,
    })
}

pub(super) async fn forget(engine: &Engine, numbers: &[i64]) -> PortResult<()> {
    engine
        .write(OP, FORGET_CHANGES, &[&numbers])
        .await
        .map(drop)
}

pub(super) async fn stop(engine: &Engine, follower: Option<u64>) -> PortResult<()> {
    let Some((_, known, _)) = find_follower(engine).await? else {
        return Ok(());
    };
    match follower {
        Some(follower) if follower != known => return Err(followed_by_another()),
        None if known < FOLLOWER_MIN => return Ok(()),
        _ => {}
    }
    // The triggers first: after a crash in between there is still a row to stop by.
    engine.run_script(OP, DISABLE_TRACKING).await?;
    let number = known.cast_signed();
    engine.write(OP, sql::UNFOLLOW, &[&number]).await.map(drop)
}
