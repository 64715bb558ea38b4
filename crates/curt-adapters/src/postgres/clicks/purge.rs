//! Removing what is too old. Every process does so; rows that another one is looking at are left to it.

use curt_core::{Day, PortResult, UnixMillis};

use super::subject::stored_day;
use crate::postgres::decode::rows_max;
use crate::postgres::engine::{Engine, Value, column};

const VISITS: &str = "WITH old AS MATERIALIZED (SELECT at, id FROM click_visits \
     WHERE at < $1 ORDER BY at, id LIMIT $2 FOR UPDATE SKIP LOCKED), \
     gone AS (DELETE FROM click_visits AS v USING old WHERE (v.at, v.id) = (old.at, old.id) RETURNING 1) \
     SELECT count(*) FROM gone";

const SUMS: &str = "WITH old AS MATERIALIZED (SELECT kind, number, name, day FROM click_days \
     WHERE day < $1 ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED), \
     gone AS (DELETE FROM click_days AS d USING old \
     WHERE (d.kind, d.number, d.name, d.day) = (old.kind, old.number, old.name, old.day) RETURNING 1) \
     SELECT count(*) FROM gone";

pub(super) async fn visits(engine: &Engine, before: UnixMillis, limit: usize) -> PortResult<u64> {
    count(
        engine,
        "purge visits",
        VISITS,
        &[&before.0, &rows_max(limit)],
    )
    .await
}

pub(super) async fn sums(engine: &Engine, before: Day, limit: usize) -> PortResult<u64> {
    let values: [Value<'_>; 2] = [&stored_day(before), &rows_max(limit)];
    count(engine, "purge click sums", SUMS, &values).await
}

async fn count(
    engine: &Engine,
    op: &'static str,
    sql: &str,
    values: &[Value<'_>],
) -> PortResult<u64> {
    let rows = engine.write(op, sql, values).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| column(op, row, 0))?;
    Ok(count.cast_unsigned())
}
