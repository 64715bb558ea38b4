//! Copies of shards that move: what [`LinkShards`](curt_core::ports::LinkShards) says about moves.
//!
//! Nothing of it costs anything while no shard moves. Changes are remembered by triggers that are
//! switched on for the move. Rows
//! have no index by shard, which every create would pay for: an export reads the table in the order of its primary key,
//! some thousand rows at a time, and takes those of the shard.

mod export;
mod import;
mod settle;
mod tracking;

pub(super) use export::{export, items_of, requests_of};
pub(super) use import::{RecordColumns, begin_import, import};
pub(super) use settle::{adopt, discount, drop_copy, retire, shard_counts};
pub(super) use tracking::{
    ChangedNames, changed_names, changes, forget_changes, stop_tracking, track,
};

use curt_core::{LinkId, PortError, PortResult, ShardId};

use super::sql;
use crate::decode::link_id;
use crate::engine::{Engine, Step, Value, column};
use crate::failure::BACKEND;

/// Rows that one export, or one part of a removal, looks at.
const ROWS_SCANNED: i64 = 10_000;
/// Changes, generations and requests that are read at once.
const CHANGES_AT_ONCE: i64 = 1_000;
const CHANGES_AT_ONCE_ROWS: usize = 1_000;

fn shard_number(shard: ShardId) -> i16 {
    shard.number().cast_signed()
}

fn stale(op: &'static str) -> PortError {
    let mut refused = PortError::stale_epoch(BACKEND, op);
    refused.detail = "another mover has taken over, or the shard has another state".to_owned();
    refused
}

/// Runs statements in one transaction, of which the first finds nothing where they are not to be run.
async fn transact_guarded(
    engine: &Engine,
    op: &'static str,
    steps: &[(&str, &[Value<'_>])],
) -> PortResult<()> {
    let steps = steps.iter().map(|(sql, values)| Step { sql, values });
    let steps: Vec<Step<'_>> = steps.collect();
    let answers = engine.transact(op, &steps).await?;
    match answers.first().is_some_and(|guard| !guard.is_empty()) {
        true => Ok(()),
        false => Err(stale(op)),
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
