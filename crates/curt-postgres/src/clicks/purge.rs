//! Removing what is too old. Every process does so; rows that another one is looking at are left to it.

use curt_core::{Day, PortResult, UnixMillis};

use super::single_clicks::click_bytes;
use super::subject::stored_day;
use crate::decode::rows_max;
use crate::engine::{Engine, Value, column};

/// Rows that are locked by another process are its to remove; then the size, which is everybody's.
macro_rules! remove {
    ($old:expr) => {
        concat!(
            "WITH old AS MATERIALIZED (",
            $old,
            "), gone AS (DELETE FROM clicks AS v USING old WHERE (v.at, v.id) = (old.at, old.id) RETURNING ",
            click_bytes!(),
            " AS bytes), \
             less AS (UPDATE clicks_size SET bytes = greatest(bytes - (SELECT coalesce(sum(bytes), 0) FROM gone), 0)) \
             SELECT count(*) FROM gone"
        )
    };
}

const CLICKS: &str = remove!(
    "SELECT at, id FROM clicks WHERE at < $1 ORDER BY at, id LIMIT $2 FOR UPDATE SKIP LOCKED"
);
/// The oldest `$2` rows at most, until the rest takes `$1` bytes.
const TRIM: &str = remove!(concat!(
    "SELECT at, id FROM (SELECT at, id, sum(bytes) OVER (ORDER BY at, id) - bytes AS gone FROM \
     (SELECT at, id, ",
    click_bytes!(),
    " AS bytes FROM clicks ORDER BY at, id LIMIT $2 FOR UPDATE SKIP LOCKED) AS oldest) AS summed \
     WHERE gone < (SELECT bytes - $1 FROM clicks_size)"
));
const SIZE: &str = "SELECT bytes FROM clicks_size";
const ROLLUPS: &str = "WITH old AS MATERIALIZED (SELECT kind, number, name, day FROM click_days \
     WHERE day < $1 ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED), \
     gone AS (DELETE FROM click_days AS d USING old \
     WHERE (d.kind, d.number, d.name, d.day) = (old.kind, old.number, old.name, old.day) RETURNING 1) \
     SELECT count(*) FROM gone";

pub(super) async fn clicks(engine: &Engine, before: UnixMillis, limit: usize) -> PortResult<u64> {
    count(
        engine,
        "purge clicks",
        CLICKS,
        &[&before.0, &rows_max(limit)],
    )
    .await
}

pub(super) async fn trim(engine: &Engine, bytes_max: u64, limit: usize) -> PortResult<u64> {
    const OP: &str = "trim clicks";
    let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
    let rows = engine.read(OP, SIZE, &[]).await?;
    let bytes: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
    if bytes <= bytes_max {
        return Ok(0);
    }
    count(engine, OP, TRIM, &[&bytes_max, &rows_max(limit)]).await
}

pub(super) async fn rollups(engine: &Engine, before: Day, limit: usize) -> PortResult<u64> {
    let values: [Value<'_>; 2] = [&stored_day(before), &rows_max(limit)];
    count(engine, "purge click rollups", ROLLUPS, &values).await
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
