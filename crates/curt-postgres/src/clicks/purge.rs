//! Removing what is too old. Every process does so; rows that another one is looking at are left to it.

use curt_core::{Day, PortResult};

use super::subject::stored_day;
use crate::decode::rows_max;
use crate::engine::{Engine, Value, column};

const ROLLUPS: &str = "WITH old AS MATERIALIZED (SELECT kind, number, name, day FROM click_days \
     WHERE day < $1 ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED), \
     gone AS (DELETE FROM click_days AS d USING old \
     WHERE (d.kind, d.number, d.name, d.day) = (old.kind, old.number, old.name, old.day) RETURNING 1) \
     SELECT count(*) FROM gone";

pub(super) async fn purge_rollups(engine: &Engine, before: Day, limit: usize) -> PortResult<u64> {
    const OP: &str = "purge click rollups";
    let values: [Value<'_>; 2] = [&stored_day(before), &rows_max(limit)];
    let rows = engine.write(OP, ROLLUPS, &values).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
    Ok(count.cast_unsigned())
}
