//! Clicks of links that have only so many.

use curt_core::ports::SpendReply;
use curt_core::{LinkId, PortResult, Revision};

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

pub(super) async fn spent(engine: &Engine, id: &LinkId) -> PortResult<u64> {
    const OP: &str = "count spent clicks";
    let values: [Value<'_>; 2] = [&i64::from(id.domain.0), &id.key.as_str()];
    let rows = engine.read_latest(OP, sql::SPENT, &values).await?;
    let spent: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
    Ok(spent.cast_unsigned())
}
