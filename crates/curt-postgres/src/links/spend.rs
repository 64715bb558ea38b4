//! Clicks of links that have only so many.

use curt_core::ports::SpendReply;
use curt_core::{LinkId, PortResult, Revision};

use super::record::id_columns;
use super::{change, sql};
use crate::engine::{Engine, Value, column};

pub(super) async fn spend(
    engine: &Engine,
    id: &LinkId,
    (seen, epoch): (Revision, i64),
) -> PortResult<SpendReply> {
    const OP: &str = "spend a click";
    let values: [Value<'_>; 5] = [
        &i64::from(id.domain.0),
        &id.key.as_str(),
        &i64::from(seen.generation),
        &i64::from(seen.version),
        &epoch,
    ];
    let rows = engine.write(OP, sql::SPEND, &values).await?;
    let Some(row) = rows.first() else {
        let refusal = change::refusal(engine, OP, id, epoch).await;
        return refusal.map(|_| SpendReply::Stale);
    };
    let (most, taken): (Option<i64>, i64) = (column(OP, row, 0)?, column(OP, row, 1)?);
    Ok(match (most, taken) {
        (Some(_), 0) => SpendReply::Exhausted,
        _ => SpendReply::Granted,
    })
}

/// How many clicks were taken from each link, in the order of `ids`.
pub(super) async fn spent(engine: &Engine, ids: &[LinkId]) -> PortResult<Vec<u64>> {
    const OP: &str = "count spent clicks";
    let (domains, keys) = id_columns(ids);
    let rows = engine
        .read_latest(OP, sql::SPENT, &[&domains, &keys])
        .await?;
    rows.iter()
        .map(|row| Ok(column::<i64>(OP, row, 0)?.cast_unsigned()))
        .collect()
}
